// SPDX-License-Identifier: Apache-2.0

package suite

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// Suite is a list of experiments whose metrics say what TCP does.
type Suite struct {
	Name        string
	Experiments []*experiment.Experiment
}

// Check fails if the suite can't be run on kernels, or would measure nothing.
func (s Suite) Check() error {
	seen := map[string]bool{}
	for _, e := range s.Experiments {
		if err := e.CheckEngine(experiment.EngineKernel); err != nil {
			return fmt.Errorf("experiment %s: %w", e.Name, err)
		}
		if len(e.Metrics) == 0 {
			return fmt.Errorf("experiment %s measures nothing: give it metrics", e.Name)
		}
		if seen[e.Name] {
			return fmt.Errorf("suite %s has two experiments %s: give one another name", s.Name,
				e.Name)
		}
		seen[e.Name] = true
	}
	return nil
}

// only leaves those experiments in the suite that are named, all if none is.
func (s Suite) only(names []string) (Suite, error) {
	if len(names) == 0 {
		return s, nil
	}
	var all []string
	part := Suite{Name: s.Name}
	for _, e := range s.Experiments {
		all = append(all, e.Name)
		if slices.Contains(names, e.Name) {
			part.Experiments = append(part.Experiments, e)
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return s, fmt.Errorf("suite %s has no experiment %q: want some of %s", s.Name, name,
				strings.Join(all, ", "))
		}
	}
	return part, nil
}

// checkSchemes fails if the suite has no run of one of the schemes.
func (s Suite) checkSchemes(names []string) error {
	var all []string
	for _, e := range s.Experiments {
		jobs, err := launch.Jobs(e)
		if err != nil {
			return err
		}
		for _, j := range jobs {
			if !slices.Contains(all, j.Scheme) {
				all = append(all, j.Scheme)
			}
		}
	}
	for _, name := range names {
		if !slices.Contains(all, name) {
			return fmt.Errorf("suite %s has no run of scheme %q: want some of %s", s.Name, name,
				strings.Join(all, ", "))
		}
	}
	return nil
}

// recordFile is the file of a folder of results with its [Record].
const recordFile = "suite.json"

// Record is what a suite came to on one kernel.
type Record struct {
	Suite        string `json:"suite"`
	Tool         string `json:"tool"`
	Kernel       string `json:"kernel"` // what it was asked for by, or its release
	Release      string `json:"release"`
	KernelSHA256 string `json:"kernel_sha256"`
	GuestSHA256  string `json:"guest_sha256"` // of the program that ran in it
	// Only are the experiments that were run; none stands for all.
	Only []string `json:"only,omitempty"`
	// Algo are the schemes that were run; none stands for all.
	Algo []string `json:"algo,omitempty"`
	Runs []Run    `json:"runs"`
}

// Run is a scheme in a case of an experiment, with one seed after another.
type Run struct {
	Experiment string    `json:"experiment"`
	Case       string    `json:"case,omitempty"`
	Scheme     string    `json:"scheme"`
	Seeds      []SeedRun `json:"seeds"`
}

// Name returns EXPERIMENT/CASE/SCHEME, which is also the folder of the run with its first seed.
func (r Run) Name() string {
	return filepath.Join(r.Experiment, result.LabelOf(r.Case, r.Scheme))
}

// SeedRun is one run.
type SeedRun struct {
	Seed             uint64 `json:"seed"`
	ExperimentSHA256 string `json:"experiment_sha256,omitempty"`
	// Failed says why it has no result, or none to be believed.
	Failed string `json:"failed,omitempty"`
	// Tables is a digest of all tables, and Flows of what they say of each flow.
	Tables string            `json:"tables,omitempty"`
	Flows  map[string]string `json:"flows,omitempty"`
	Values []Value           `json:"values,omitempty"` // a metric each
}

// Value is what a metric came to.
type Value struct {
	Metric string          `json:"metric"`
	Unit   experiment.Unit `json:"unit"`
	Value  *float64        `json:"value"` // null if there is none, such as of a time not reached
}

// recordOf sums up a run.
func recordOf(e *experiment.Experiment, r *result.Run) (SeedRun, error) {
	s := SeedRun{Seed: r.Manifest.Seed, ExperimentSHA256: r.Manifest.ExperimentSHA256}
	if r.Manifest.Verdict != result.Valid {
		s.Failed = r.Manifest.Reasons[0]
	}
	var err error
	if s.Tables, err = digest(r.Flows, r.Ports, r.Series, r.PFC, r.Completions); err != nil {
		return s, err
	}
	if s.Flows, err = flowDigests(r); err != nil {
		return s, err
	}
	for _, m := range result.Judge(e, []*result.Run{r}).Runs[0].Metrics {
		v := Value{Metric: m.Name, Unit: m.Measured.Unit}
		if m.Err == nil {
			v.Value = &m.Measured.Value
		}
		s.Values = append(s.Values, v)
	}
	return s, nil
}

// flowDigests returns a digest of all that a run's tables say of each flow.
func flowDigests(r *result.Run) (map[string]string, error) {
	series := map[string][]result.Sample{}
	for _, s := range r.Series {
		if s.Kind != result.KindPort {
			series[s.Name] = append(series[s.Name], s)
		}
	}
	completed := map[string]result.Completion{}
	for _, c := range r.Completions {
		completed[c.Flow] = c
	}
	digests := map[string]string{}
	for _, f := range r.Flows {
		var err error
		digests[f.Name], err = digest(f, series[f.Name], completed[f.Name])
		if err != nil {
			return nil, err
		}
	}
	return digests, nil
}

// digest returns a hash of values, of which 64 bits do: they are compared in pairs.
func digest(values ...any) (string, error) {
	text, err := json.Marshal(values)
	if err != nil {
		return "", fmt.Errorf("encode a run: %w", err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:8]), nil
}

// Write writes the record into a folder.
func (r *Record) Write(dir string) error {
	var text bytes.Buffer
	to := json.NewEncoder(&text)
	to.SetIndent("", " ")
	if err := to.Encode(r); err != nil {
		return fmt.Errorf("encode the suite's results: %w", err)
	}
	if err := os.WriteFile(filepath.Join(dir, recordFile), text.Bytes(), 0o644); err != nil {
		return fmt.Errorf("write the suite's results: %w", err)
	}
	return nil
}

// Read reads what pcn suite run left in a folder.
func Read(dir string) (*Record, error) {
	path := filepath.Join(dir, recordFile)
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%s has no %s: want the folder of results of pcn suite run", dir,
			recordFile)
	}
	if err != nil {
		return nil, fmt.Errorf("read a suite's results: %w", err)
	}
	r := &Record{}
	if err := result.DecodeJSON(text, r); err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	for _, run := range r.Runs {
		if len(run.Seeds) == 0 {
			return nil, fmt.Errorf("%s: run %s has no seeds", path, run.Name())
		}
	}
	return r, nil
}

// Seeds returns the seeds of the record, those of its runs with the most.
func (r *Record) Seeds() (seeds experiment.Seeds) {
	for _, run := range r.Runs {
		if len(run.Seeds) > len(seeds) {
			seeds = nil
			for _, s := range run.Seeds {
				seeds = append(seeds, s.Seed)
			}
		}
	}
	return seeds
}

// has reports whether a run of this name was to be made.
func (r *Record) has(run Run) bool {
	return (len(r.Only) == 0 || slices.Contains(r.Only, run.Experiment)) && r.hasScheme(run.Scheme)
}

func (r *Record) hasScheme(name string) bool {
	return len(r.Algo) == 0 || slices.Contains(r.Algo, name)
}

// find returns the run of a name; nil if there is none.
func (r *Record) find(name string) *Run {
	i := slices.IndexFunc(r.Runs, func(x Run) bool { return x.Name() == name })
	if i < 0 {
		return nil
	}
	return &r.Runs[i]
}

// seed returns what a run came to with a seed; nil if that did not run.
func (r *Run) seed(seed uint64) *SeedRun {
	i := slices.IndexFunc(r.Seeds, func(s SeedRun) bool { return s.Seed == seed })
	if i < 0 {
		return nil
	}
	return &r.Seeds[i]
}
