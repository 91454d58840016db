// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// clockIn runs the guest's clock with a state of the folder, and returns what it printed.
func clockIn(t *testing.T, dir string, seed uint64) string {
	var said strings.Builder
	c := resumedConfig(t, "clock", &said, dir)
	c.Seed = seed
	res, err := Run(t.Context(), c)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(res.ExitCode, 0))
	qt.Check(t, qt.IsTrue(res.Deterministic))
	return said.String()
}

// theState returns the only file of a folder of states.
func theState(t *testing.T, dir string) string {
	names := namesIn(t, dir)
	qt.Assert(t, qt.HasLen(names, 1))
	return filepath.Join(dir, names[0])
}

// TestResume: whoever makes the state, and whether it is kept, all runs have the same bytes, also
// on a loaded machine, and those of another seed have others.
func TestResume(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	first := clockIn(t, dir, 1)
	qt.Assert(t, qt.HasLen(strings.Split(first, "\n"), 11))
	made, err := os.Stat(theState(t, dir))
	qt.Assert(t, qt.IsNil(err))

	// a file in place of a folder can't be written to
	file := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o600)))
	var later, other, unkept, elsewhere string
	var all sync.WaitGroup
	all.Go(func() { later = clockIn(t, dir, 1) })
	all.Go(func() { other = clockIn(t, dir, 2) })
	all.Go(func() { unkept = clockIn(t, file, 1) })
	all.Go(func() { elsewhere = clockIn(t, t.TempDir(), 1) })
	all.Wait()
	qt.Check(t, qt.Equals(later, first))
	qt.Check(t, qt.Equals(unkept, first))
	qt.Check(t, qt.Equals(elsewhere, first))
	again, err := os.Stat(theState(t, dir))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(os.SameFile(made, again)), qt.Commentf("it was made twice"))

	// the seed reaches the random numbers
	_, random, _ := strings.Cut(first, " ")
	_, otherRandom, _ := strings.Cut(other, " ")
	qt.Check(t, qt.Not(qt.Equals(otherRandom[:16], random[:16])))
}

// TestResumeMakesAnew: a state that is whole, but not one that QEMU takes, is replaced.
func TestResumeMakesAnew(t *testing.T) {
	dir := t.TempDir()
	want := clockIn(t, dir, 1)
	file := theState(t, dir)
	s, err := newState(1024 << 20)
	qt.Assert(t, qt.IsNil(err))
	defer s.close()
	_, err = s.file.WriteAt([]byte("QEVM, but of another kind"), s.memory)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(keepState(s, file)))
	qt.Check(t, qt.Equals(clockIn(t, dir, 1), want))
	qt.Check(t, qt.Equals(theState(t, dir), file))
	qt.Check(t, qt.Equals(clockIn(t, dir, 1), want))
}

// TestCannotPause: with a QEMU that lacks the device for it, or does not take its own states, runs
// boot.
func TestCannotPause(t *testing.T) {
	real, err := exec.LookPath(qemu)
	qt.Assert(t, qt.IsNil(err))
	for option, complaint := range map[string]string{
		"i6300esb":  "-device i6300esb: 'i6300esb' is not a valid device model name",
		"-incoming": "load of migration failed: Invalid argument",
	} {
		t.Run(option, func(t *testing.T) {
			bin := t.TempDir()
			script := fmt.Sprintf(`#!/bin/sh
case "$*" in
*%s*) echo "%s" >&2; exit 1 ;;
esac
exec %s "$@"
`, option, complaint, real)
			qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(bin, qemu), []byte(script), 0o755)))
			t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
			res, err := Run(t.Context(), resumedConfig(t, "exit", nil, t.TempDir()))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsFalse(res.Resumed))
			qt.Check(t, qt.Equals(res.ExitCode, 3))
		})
	}
}

// TestCancelWhilePreparing: nothing stays of a microVM that is not ready yet.
func TestCancelWhilePreparing(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "state")
	c := resumedConfig(t, "exit", nil, dir)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	_, err := Run(ctx, c)
	qt.Check(t, qt.ErrorIs(err, context.DeadlineExceeded))
	qt.Check(t, qt.HasLen(children(t, os.Getpid()), 0))
	_, err = os.Stat(dir)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

// TestPreparingFails: the error has what QEMU or the guest said.
func TestPreparingFails(t *testing.T) {
	c := resumedConfig(t, "exit", nil, t.TempDir())
	c.Kernel.Image = filepath.Join(t.TempDir(), "vmlinux")
	_, err := Run(t.Context(), c)
	qt.Check(t, qt.ErrorMatches(err,
		`(?s)qemu-system-x86_64 failed: exit status 1.*could not open kernel file.*`))

	c = resumedConfig(t, "exit", nil, t.TempDir())
	c.Program = []byte("no program")
	_, err = Run(t.Context(), c)
	qt.Check(t, qt.ErrorMatches(err, "find the libraries of the guest program: .*"))
}
