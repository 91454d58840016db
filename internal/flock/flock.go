// SPDX-License-Identifier: Apache-2.0

// Package flock takes advisory locks between processes. A lock vanishes with the process that holds
// it, whatever ends it; its file stays.
package flock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// ErrHeld is when another holds the lock.
var ErrHeld = errors.New("the lock is held")

// Lock is a lock that is held.
type Lock struct{ f *os.File }

// Try takes the lock of a folder or a file, which is made if it is not there. It does not wait: the
// error wraps [ErrHeld] if another process holds it, or this one by another Lock. Every user may take
// it, if the folder lets them.
func Try(path string) (*Lock, error) { return try(path, 0o444) }

// TryPrivate takes the lock as [Try] does. A file that it makes is this user's: no other can take
// the lock, and keep this user out.
func TryPrivate(path string) (*Lock, error) { return try(path, 0o400) }

func try(path string, mode fs.FileMode) (*Lock, error) {
	f, err := open(path, mode)
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

// Wait takes the lock as [Try] does, and tries again until the context ends. The error then wraps
// [ErrHeld].
func Wait(ctx context.Context, path string) (*Lock, error) {
	const pause = 5 * time.Millisecond // what locks guard takes tens of milliseconds
	for {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(pause):
		}
	}
}

// open opens the file, or makes it. A kernel with fs.protected_regular lets nobody, root included,
// open with O_CREAT what another user made in a folder like /tmp.
func open(path string, mode fs.FileMode) (*os.File, error) {
	f, err := os.Open(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return f, err
	}
	f, err = os.OpenFile(path, os.O_RDONLY|os.O_CREATE|os.O_EXCL, mode)
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

// MachineDir returns a folder for the locks that all processes of the machine share: /run/lock. Where
// that is not writable, it is one that at least the user's processes share.
func MachineDir() string {
	for _, dir := range []string{"/run/lock", os.Getenv("XDG_RUNTIME_DIR")} {
		if dir != "" && unix.Access(dir, unix.W_OK|unix.X_OK) == nil {
			return dir
		}
	}
	return os.TempDir()
}
