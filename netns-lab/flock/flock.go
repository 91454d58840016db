// SPDX-License-Identifier: Apache-2.0

// Package flock takes advisory locks between processes. A lock vanishes with the process that holds it, whatever ends it;
// its file stays.
package flock

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"golang.org/x/sys/unix"
)

// ErrHeld is when another holds the lock.
var ErrHeld = errors.New("the lock is held")

// Lock is a lock that is held.
type Lock struct{ f *os.File }

// Try takes the lock of the file, which is made if it is not there. It does not wait: the error wraps [ErrHeld] if another
// process holds it, or this one by another Lock.
func Try(path string) (*Lock, error) {
	f, err := open(path)
	if err != nil {
		return nil, fmt.Errorf("lock: %w", err)
	}
	err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	if err == nil {
		return &Lock{f}, nil
	}
	f.Close()
	if errors.Is(err, unix.EWOULDBLOCK) {
		err = ErrHeld
	}
	return nil, fmt.Errorf("lock %s: %w", path, err)
}

// open opens the file, or makes it. A kernel with fs.protected_regular lets nobody, root included, open with O_CREAT what
// another user made in a folder like /tmp.
func open(path string) (*os.File, error) {
	f, err := os.Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, 0o444)
	if errors.Is(err, fs.ErrExist) { // another was faster
		return os.Open(path)
	}
	return f, err
}

// Release gives the lock up.
func (l *Lock) Release() error {
	if err := l.f.Close(); err != nil {
		return fmt.Errorf("release lock: %w", err)
	}
	return nil
}

// MachineDir is a folder for the locks that all processes of the machine share: /run/lock. Where that is not writable,
// it is one that at least the user's processes share.
func MachineDir() string {
	for _, dir := range []string{"/run/lock", os.Getenv("XDG_RUNTIME_DIR")} {
		if dir != "" && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir
		}
	}
	return os.TempDir()
}
