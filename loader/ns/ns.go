// SPDX-License-Identifier: Apache-2.0

// Package ns runs code inside a network namespace.
package ns

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn on a thread that has entered the namespace. Afterwards the thread ends, because its
// goroutine ends locked to it. So no later code can run in the wrong namespace.
//
// fn must not start goroutines that rely on the namespace. With netns.None() fn runs in the
// caller's namespace.
func Do(h netns.NsHandle, fn func() error) error { return do(h, fn, true) }

// Visit is [Do] for a fn that changes nothing of the thread: it goes on in the old namespace, if it
// can return there. To end a thread and start another takes longer than most of what fn does.
func Visit(h netns.NsHandle, fn func() error) error { return do(h, fn, false) }

// New makes a namespace, and runs fn in it as [Do] does.
func New(fn func() error) (netns.NsHandle, error) {
	home, err := netns.Get()
	if err != nil {
		return netns.None(), fmt.Errorf("get the network namespace to return to: %w", err)
	}
	defer home.Close()
	h := netns.None()
	err = Do(home, func() (err error) { // the thread that makes a namespace stays in it
		if h, err = netns.New(); err != nil {
			return fmt.Errorf("make a network namespace: %w", err)
		}
		return fn()
	})
	if err != nil && h.IsOpen() {
		h.Close()
	}
	return h, err
}

func do(h netns.NsHandle, fn func() error, end bool) error {
	if !h.IsOpen() {
		return fn()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		home, err := inside(h, fn)
		if home && !end {
			runtime.UnlockOSThread()
		}
		done <- err
	}()
	return <-done
}

// inside runs fn in the namespace and returns to the old one. It reports whether that worked.
// Returning matters on the main thread: Go never ends it, and /proc/self shows its namespace as the
// process's.
func inside(h netns.NsHandle, fn func() error) (home bool, err error) {
	old, err := netns.Get()
	if err != nil {
		return true, fmt.Errorf("get the network namespace to return to: %w", err)
	}
	defer old.Close()
	defer func() { home = netns.Set(old) == nil }()
	if err := netns.Set(h); err != nil {
		return false, fmt.Errorf("enter network namespace %s: %w", h, err)
	}
	return false, fn()
}
