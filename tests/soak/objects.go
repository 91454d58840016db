// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// objectID names a BPF object of the machine.
type objectID struct {
	Kind string // "map", "prog" or "link"
	ID   uint32
}

// objects are BPF objects with their names.
type objects map[objectID]string

// readObjects lists them, again if another program was just making one.
func readObjects() (objects, error) {
	for try := 0; ; try++ {
		all, err := listObjects()
		if !errors.Is(err, unix.EAGAIN) || try == 50 {
			return all, err
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func listObjects() (objects, error) {
	all := objects{}
	var maps ebpf.MapID
	for {
		next, err := ebpf.MapGetNextID(maps)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list BPF maps: %w", err)
		}
		maps = next
		all[objectID{"map", uint32(next)}] = mapName(next)
	}
	var progs ebpf.ProgramID
	for {
		next, err := ebpf.ProgramGetNextID(progs)
		if errors.Is(err, fs.ErrNotExist) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("list BPF programs: %w", err)
		}
		progs = next
		all[objectID{"prog", uint32(next)}] = programName(next)
	}
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		all[objectID{"link", uint32(it.ID)}] = ""
	}
	if err := it.Err(); err != nil {
		return nil, fmt.Errorf("list BPF links: %w", err)
	}
	return all, nil
}

func mapName(id ebpf.MapID) string {
	m, err := ebpf.NewMapFromID(id)
	if err != nil {
		return ""
	}
	defer m.Close()
	if info, err := m.Info(); err == nil {
		return info.Name
	}
	return ""
}

func programName(id ebpf.ProgramID) string {
	p, err := ebpf.NewProgramFromID(id)
	if err != nil {
		return ""
	}
	defer p.Close()
	if info, err := p.Info(); err == nil {
		return info.Name
	}
	return ""
}

// retries are more than TCP takes to give up a closed connection, which has its control until its
// FIN is acknowledged: where a busy machine was late, it is sent 8 times more, over 51 s.
const retries = 3 * time.Minute

// objectsLeft waits until the machine has no new BPF objects, and returns those that stay. The
// kernel frees objects some time after their last use. Those that other processes hold do not
// count, nor those of tests that ran meanwhile and end within the patience. Such a test may make
// and free objects all the time, some between the list of objects and that of who holds them: only
// what two looks in a row find without a holder stays.
func objectsLeft(before objects, proc string, patience time.Duration) ([]string, error) {
	earlier := objects{}
	for deadline := time.Now().Add(patience); ; time.Sleep(100 * time.Millisecond) {
		now, err := readObjects()
		if err != nil {
			return nil, err
		}
		held := heldObjects(proc)
		var left []string
		loose := objects{} // without a holder
		for id, name := range now {
			if _, old := before[id]; old || held[id] {
				continue
			}
			loose[id] = name
			if _, twice := earlier[id]; twice {
				left = append(left, fmt.Sprintf("%s %d %s", id.Kind, id.ID, name))
			}
		}
		if len(loose) == 0 || len(earlier) > 0 && len(left) == 0 || time.Now().After(deadline) {
			return left, nil
		}
		earlier = loose
	}
}

// heldObjects returns the objects that open files of any process name, and the maps of such
// programs: nobody else may have those of constants.
func heldObjects(proc string) map[objectID]bool {
	held := map[objectID]bool{}
	files, _ := filepath.Glob(proc + "/[0-9]*/fdinfo/*")
	for _, file := range files {
		target, err := os.Readlink(strings.Replace(file, "fdinfo", "fd", 1))
		if err != nil || !strings.HasPrefix(target, "anon_inode:bpf") {
			continue
		}
		addHeld(file, held)
	}
	for id := range held {
		if id.Kind == "prog" {
			addMaps(ebpf.ProgramID(id.ID), held)
		}
	}
	return held
}

func addMaps(program ebpf.ProgramID, held map[objectID]bool) {
	p, err := ebpf.NewProgramFromID(program)
	if err != nil {
		return
	}
	defer p.Close()
	info, err := p.Info()
	if err != nil {
		return
	}
	ids, _ := info.MapIDs()
	for _, id := range ids {
		held[objectID{"map", uint32(id)}] = true
	}
}

func addHeld(file string, held map[objectID]bool) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, _ := strings.Cut(lines.Text(), ":")
		kind, ok := strings.CutSuffix(key, "_id")
		var id uint32
		if _, err := fmt.Sscan(value, &id); err == nil && ok {
			held[objectID{kind, id}] = true
		}
	}
}
