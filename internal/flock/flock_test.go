// SPDX-License-Identifier: Apache-2.0

package flock

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// holdEnv names a file that the test binary locks, instead of running tests.
const holdEnv = "PCN_TEST_HOLD_LOCK"

func TestMain(m *testing.M) {
	path := os.Getenv(holdEnv)
	if path == "" {
		os.Exit(m.Run())
	}
	if _, err := Try(path); err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	select {}
}

func TestOneHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	first, err := Try(path)
	qt.Assert(t, qt.IsNil(err))
	_, err = Try(path)
	qt.Check(t, qt.ErrorIs(err, ErrHeld))
	other, err := Try(path + "-other")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(other.Release()))

	qt.Assert(t, qt.IsNil(first.Release()))
	second, err := Try(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(second.Release()))
}

// A lock is held against other processes, until its own is killed.
func TestKilledHolder(t *testing.T) {
	path := filepath.Join(t.TempDir(), "lock")
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), holdEnv+"="+path)
	out, err := cmd.StdoutPipe()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(cmd.Start()))
	line, err := bufio.NewReader(out).ReadString('\n')
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(line, "held\n"))

	_, err = Try(path)
	qt.Check(t, qt.ErrorIs(err, ErrHeld))
	qt.Assert(t, qt.IsNil(cmd.Process.Kill()))
	qt.Check(t, qt.IsNotNil(cmd.Wait()))
	l, err := Try(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(l.Release()))
}

// Wait gets the lock, here of a folder, as soon as it is released, and gives up with its context.
func TestWait(t *testing.T) {
	folder := t.TempDir()
	first, err := Try(folder)
	qt.Assert(t, qt.IsNil(err))
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	_, err = Wait(ended, folder)
	qt.Check(t, qt.ErrorIs(err, ErrHeld))

	got := make(chan error)
	go func() {
		second, err := Wait(t.Context(), folder)
		if err == nil {
			err = second.Release()
		}
		got <- err
	}()
	qt.Check(t, qt.IsNil(first.Release()))
	qt.Check(t, qt.IsNil(<-got))

	_, err = Wait(t.Context(), filepath.Join(folder, "none", "lock"))
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

// A private lock's file is closed to other users, and a shared one's open.
func TestPrivate(t *testing.T) {
	type takes func(path string) (*Lock, error)
	for mode, try := range map[os.FileMode]takes{0o444: Try, 0o400: TryPrivate} {
		path := filepath.Join(t.TempDir(), "lock")
		l, err := try(path)
		qt.Assert(t, qt.IsNil(err))
		t.Cleanup(func() { qt.Check(t, qt.IsNil(l.Release())) })
		info, err := os.Stat(path)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(info.Mode().Perm(), mode))
		_, err = try(path)
		qt.Check(t, qt.ErrorIs(err, ErrHeld))
	}
}

func TestNoFolder(t *testing.T) {
	_, err := Try(filepath.Join(t.TempDir(), "none", "lock"))
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

func TestMachineDirIsWritable(t *testing.T) {
	l, err := Try(filepath.Join(MachineDir(), fmt.Sprintf("pcn-test-%d.lock", os.Getpid())))
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { os.Remove(l.f.Name()) })
	qt.Check(t, qt.IsNil(l.Release()))
}
