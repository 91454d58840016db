// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

const someMemory = 64 << 20

// someState is a state with data at both ends of its memory, and a hole between.
func someState(t *testing.T) *machineState {
	s, err := newState(someMemory)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(s.close)
	for at, text := range map[int64]string{
		5000: "first", someMemory - 4: "last", someMemory: "devices",
	} {
		_, err := s.file.WriteAt([]byte(text), at)
		qt.Assert(t, qt.IsNil(err))
	}
	return s
}

func textAt(t *testing.T, f io.ReaderAt, at int64, length int) string {
	b := make([]byte, length)
	_, err := f.ReadAt(b, at)
	qt.Assert(t, qt.IsNil(err))
	return string(b)
}

func TestKeptState(t *testing.T) {
	name := filepath.Join(t.TempDir(), "new", "folder", "a.state")
	qt.Check(t, qt.IsNil(openState(name, someMemory))) // it is not there
	qt.Assert(t, qt.IsNil(keepState(someState(t), name)))
	s := openState(name, someMemory)
	qt.Assert(t, qt.IsNotNil(s))
	defer s.close()
	qt.Check(t, qt.IsTrue(s.kept))
	qt.Check(t, qt.Equals(textAt(t, s.file, 5000, 5), "first"))
	qt.Check(t, qt.Equals(textAt(t, s.file, someMemory-4, 11), "lastdevices"))
	data, err := dataOf(s.file)
	qt.Assert(t, qt.IsNil(err))
	var bytes int64
	for _, part := range data {
		bytes += part[1] - part[0]
	}
	qt.Check(t, qt.IsTrue(bytes < 1<<20), qt.Commentf("%d bytes: the hole is not one", bytes))
}

// What is not a whole state of such a machine is removed, whatever is wrong with it.
func TestBrokenStates(t *testing.T) {
	dir := t.TempDir()
	good := filepath.Join(dir, "good.state")
	qt.Assert(t, qt.IsNil(keepState(someState(t), good)))
	whole, err := os.ReadFile(good)
	qt.Assert(t, qt.IsNil(err))
	flip := func(at int) []byte {
		b := bytes.Clone(whole)
		b[(at+len(b))%len(b)] ^= 1
		return b
	}
	for name, data := range map[string][]byte{
		"empty":      nil,
		"short":      whole[:10],
		"cut off":    whole[:someMemory],
		"memory":     flip(5001),
		"devices":    flip(someMemory + 2),
		"index":      flip(-30),
		"length":     flip(-1),
		"magic":      flip(-24),
		"other size": flip(-15),
		"other file": bytes.Repeat([]byte("x"), 1<<20),
	} {
		t.Run(name, func(t *testing.T) {
			file := filepath.Join(dir, "broken.state")
			qt.Assert(t, qt.IsNil(os.WriteFile(file, data, 0o600)))
			qt.Check(t, qt.IsNil(openState(file, someMemory)))
			_, err := os.Stat(file)
			qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
		})
	}
	qt.Check(t, qt.IsNil(openState(good, 2*someMemory)))
}

// Whoever keeps the same state at the same time, one whole file is there at any time.
func TestKeepAtTheSameTime(t *testing.T) {
	dir := t.TempDir()
	name := filepath.Join(dir, "a.state")
	var all sync.WaitGroup
	for range 8 {
		s := someState(t)
		all.Go(func() {
			for range 5 {
				qt.Check(t, qt.IsNil(keepState(s, name)))
				opened := openState(name, someMemory)
				if qt.Check(t, qt.IsNotNil(opened)) {
					opened.close()
				}
			}
		})
	}
	all.Wait()
	qt.Check(t, qt.DeepEquals(namesIn(t, dir), []string{"a.state"}))
}

func namesIn(t *testing.T, dir string) (names []string) {
	entries, err := os.ReadDir(dir)
	qt.Assert(t, qt.IsNil(err))
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// The states that were used last stay, and what killed processes left goes.
func TestRemoveOldStates(t *testing.T) {
	dir := t.TempDir()
	now := time.Now()
	for name, age := range map[string]time.Duration{
		"1.state": 6 * time.Hour, "2.state": 5 * time.Hour, "3.state": 4 * time.Hour,
		"4.state": 3 * time.Hour, "5.state": 2 * time.Hour,
		unfinishedPrefix + "killed": time.Hour, unfinishedPrefix + "writing": time.Minute,
		"other": 100 * time.Hour,
	} {
		file := filepath.Join(dir, name)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o600)))
		qt.Assert(t, qt.IsNil(os.Chtimes(file, now.Add(-age), now.Add(-age))))
	}
	qt.Assert(t, qt.IsNil(keepState(someState(t), filepath.Join(dir, "6.state"))))
	qt.Check(t, qt.DeepEquals(namesIn(t, dir), []string{
		unfinishedPrefix + "writing", "3.state", "4.state", "5.state", "6.state", "other",
	}))
	// to use one makes it young
	qt.Assert(t, qt.IsNil(keepState(someState(t), filepath.Join(dir, "0.state"))))
	used := openState(filepath.Join(dir, "0.state"), someMemory)
	used.close()
	qt.Assert(t, qt.IsNil(keepState(someState(t), filepath.Join(dir, "7.state"))))
	qt.Check(t, qt.DeepEquals(namesIn(t, dir), []string{
		unfinishedPrefix + "writing", "0.state", "5.state", "6.state", "7.state", "other",
	}))
}

func TestStateCannotBeKept(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o600)))
	err := keepState(someState(t), filepath.Join(file, "a.state"))
	qt.Check(t, qt.ErrorMatches(err, "make the folder of states: .*not a directory"))
	qt.Check(t, qt.IsNil(openState(filepath.Join(file, "a.state"), someMemory)))

	// nothing stays of a file that takes no data, as one on a full disk
	readOnly, err := os.Open(file)
	qt.Assert(t, qt.IsNil(err))
	defer readOnly.Close()
	qt.Check(t, qt.IsNotNil(writeState(readOnly, someState(t))))
}

// The name of a state changes with all that it is made of, and with nothing that comes later.
func TestStateNames(t *testing.T) {
	machine := Machine{GuestSHA256: "guest", KernelSHA256: "kernel", QEMU: "7.2",
		modules: [][2]string{{"veth.ko", "hash"}}}
	of := func(m Machine, c Config) string {
		name, err := (&States{Machine: m}).name(c)
		qt.Assert(t, qt.IsNil(err))
		return name
	}
	c := Config{MemoryMiB: 2048, Kernel: Kernel{Image: "/a/vmlinux"}}
	want := of(machine, c)
	qt.Check(t, qt.Equals(filepath.Ext(want), stateSuffix))
	same := c
	same.Args, same.Env, same.Dir = []string{"a"}, []string{"A=1"}, "/x"
	same.Files, same.Modules = []File{{Path: "/x"}}, []string{"tcp_bbr"}
	same.Seed, same.HostCPU, same.Kernel.Image = 7, 3, "/b/vmlinux"
	qt.Check(t, qt.Equals(of(machine, same), want))

	names := []string{want}
	for _, change := range []func(*Machine, *Config){
		func(m *Machine, _ *Config) { m.GuestSHA256 = "x" },
		func(m *Machine, _ *Config) { m.KernelSHA256 = "x" },
		func(m *Machine, _ *Config) { m.QEMU = "x" },
		func(m *Machine, _ *Config) { m.modules = nil },
		func(_ *Machine, c *Config) { c.MemoryMiB++ },
		func(_ *Machine, c *Config) { c.Tick = true },
	} {
		m, other := machine, c
		change(&m, &other)
		names = append(names, of(m, other))
	}
	slices.Sort(names)
	qt.Check(t, qt.HasLen(slices.Compact(names), 7))
}
