// SPDX-License-Identifier: Apache-2.0

package result

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Names of what programs leave in the folder of a run.
const (
	programsFile   = "programs.json"
	programsFolder = "programs"
	capturesFolder = "captures"
	countersFolder = "counters"
	// StdoutFile and StderrFile are in the folder of each program.
	StdoutFile = "stdout"
	StderrFile = "stderr"
)

// Program is what became of a program.
type Program struct {
	Name string `json:"name"`
	Host string `json:"host"`
	// StartNs and EndNs are in virtual time, from t = 0; nil if it did not start or end.
	StartNs *int64 `json:"start_ns"`
	EndNs   *int64 `json:"end_ns"`
	// ExitCode is 128 plus the signal that ended it, as in a shell; nil if it did not end.
	ExitCode *int `json:"exit_code"`
	// Stopped tells that it was a server, or still ran at the end of the run, and was stopped.
	Stopped bool `json:"stopped"`
	// Why tells why it did not start, or that it was killed at its limit.
	Why string `json:"why,omitempty"`
	// Files are what it wrote: its output, and the files that were asked for.
	Files map[string][]byte `json:"-"`
}

// CaptureFile returns the path of a host's packets in the folder of a run.
func CaptureFile(host string) string { return filepath.Join(capturesFolder, host+".pcapng") }

// programFiles are all files of programs and captures, by their paths in the folder of the run.
func (r *Run) programFiles() map[string][]byte {
	files := map[string][]byte{}
	for _, p := range r.Programs {
		for name, data := range p.Files {
			files[filepath.Join(programsFolder, p.Name, name)] = data
		}
	}
	for host, data := range r.Captures {
		files[CaptureFile(host)] = data
	}
	for name, data := range r.Counters {
		files[filepath.Join(countersFolder, name)] = data
	}
	return files
}

// writePrograms writes what programs left, in place of what an earlier run's left.
func (r *Run) writePrograms(dir string) error {
	for _, name := range []string{programsFile, programsFolder, capturesFolder, countersFolder} {
		if err := os.RemoveAll(filepath.Join(dir, name)); err != nil {
			return fmt.Errorf("replace earlier result: %w", err)
		}
	}
	files := r.programFiles()
	if len(r.Programs) > 0 {
		list, err := json.MarshalIndent(r.Programs, "", "  ")
		if err != nil {
			return fmt.Errorf("encode %s: %w", programsFile, err)
		}
		files[programsFile] = append(list, '\n')
	}
	for name, data := range files {
		path := filepath.Join(dir, name)
		err := os.MkdirAll(filepath.Dir(path), 0o755)
		if err := errors.Join(err, os.WriteFile(path, data, 0o644)); err != nil {
			return fmt.Errorf("write result: %w", err)
		}
	}
	return nil
}

// readPrograms reads what [Run.writePrograms] wrote.
func (r *Run) readPrograms(files Files) error {
	list, err := files.Read(programsFile)
	if err == nil {
		err = json.Unmarshal(list, &r.Programs)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read result: %s: %w", programsFile, err)
	}
	for i := range r.Programs {
		p := &r.Programs[i]
		if p.Files, err = files.Below(filepath.Join(programsFolder, p.Name)); err != nil {
			return err
		}
	}
	counters, err := files.Below(countersFolder)
	if err != nil {
		return err
	}
	if len(counters) > 0 {
		r.Counters = counters
	}
	captures, err := files.Below(capturesFolder)
	for name, data := range captures {
		if r.Captures == nil {
			r.Captures = map[string][]byte{}
		}
		r.Captures[strings.TrimSuffix(name, ".pcapng")] = data
	}
	return err
}

// readFolder returns the files of a folder by name; none if there is no such folder.
func readFolder(dir string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		name, err := filepath.Rel(dir, path)
		if err != nil {
			return err
		}
		files[name], err = os.ReadFile(path)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("read result: %w", err)
	}
	return files, nil
}

// program returns a program that ended.
func (r *Run) program(name string) (*Program, error) {
	i := slices.IndexFunc(r.Programs, func(p Program) bool { return p.Name == name })
	switch {
	case i < 0:
		return nil, fmt.Errorf("the run has no program %q", name)
	case r.Programs[i].StartNs == nil:
		return nil, fmt.Errorf("program %s did not start: %s", name, r.Programs[i].Why)
	}
	return &r.Programs[i], nil
}

func count(n float64) []experiment.Quantity {
	return []experiment.Quantity{{Value: n, Unit: experiment.UnitCount}}
}

func programExit(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
	p, err := r.program(m.Program)
	if err != nil {
		return nil, err
	}
	if p.ExitCode == nil {
		return nil, fmt.Errorf("program %s did not end", p.Name)
	}
	return count(float64(*p.ExitCode)), nil
}

func programSays(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
	p, err := r.program(m.Program)
	if err != nil {
		return nil, err
	}
	says, err := regexp.Compile("(?m)" + m.Says)
	if err != nil {
		return nil, err
	}
	n := len(says.FindAll(p.Files[StdoutFile], -1)) + len(says.FindAll(p.Files[StderrFile], -1))
	return count(float64(n)), nil
}

func programJSON(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
	p, err := r.program(m.Program)
	if err != nil {
		return nil, err
	}
	var value any
	if err := json.Unmarshal(p.Files[StdoutFile], &value); err != nil {
		return nil, fmt.Errorf("stdout of program %s is not JSON: %w", p.Name, err)
	}
	n, err := numberAt(value, m.JSON)
	if err != nil {
		return nil, fmt.Errorf("stdout of program %s: %w", p.Name, err)
	}
	return count(n), nil
}

// numberAt returns the number at a path of keys and indices with dots between them.
func numberAt(value any, path string) (float64, error) {
	for key := range strings.SplitSeq(path, ".") {
		var found bool
		switch v := value.(type) {
		case map[string]any:
			value, found = v[key]
		case []any:
			i, err := strconv.Atoi(key)
			if found = err == nil && i >= 0 && i < len(v); found {
				value = v[i]
			}
		}
		if !found {
			return 0, fmt.Errorf("%q of %s is not there", key, path)
		}
	}
	n, ok := value.(float64)
	if !ok {
		return 0, fmt.Errorf("%s is %v: want a number", path, value)
	}
	return n, nil
}

// diffPrograms returns the first difference of each program, and of each file.
func diffPrograms(a, b *Run) []Difference {
	var found []Difference
	for i := range min(len(a.Programs), len(b.Programs)) {
		d := diffColumns(columnsOf(a.Programs[i], "json"), columnsOf(b.Programs[i], "json"))
		for _, d := range d {
			if d.What != "-" { // of the files, below
				d.What = fmt.Sprintf("%s of program %s", d.What, a.Programs[i].Name)
				found = append(found, d)
			}
		}
	}
	one, other := a.programFiles(), b.programFiles()
	names := maps.Clone(one)
	maps.Copy(names, other)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		if !bytes.Equal(one[name], other[name]) && filepath.Ext(name) == ".pcapng" {
			found = append(found, Difference{What: name, A: fmt.Sprint(len(one[name]), " bytes"),
				B: fmt.Sprint(len(other[name]), " bytes")}) // firstPacket says more
		} else if !bytes.Equal(one[name], other[name]) {
			found = append(found, firstByte(name, one[name], other[name]))
		}
	}
	return found
}

// firstByte names the first difference of two files, with what follows it on its line.
func firstByte(name string, a, b []byte) Difference {
	at := 0
	for at < min(len(a), len(b)) && a[at] == b[at] {
		at++
	}
	line := 1 + bytes.Count(a[:at], []byte("\n"))
	begin := bytes.LastIndexByte(a[:at], '\n') + 1
	rest := func(data []byte) string {
		const most = 60
		text, _, _ := bytes.Cut(data[begin:], []byte("\n"))
		return fmt.Sprintf("%.*q", most, text)
	}
	return Difference{
		What: fmt.Sprintf("%s, byte %d, line %d", name, at, line), A: rest(a), B: rest(b),
	}
}
