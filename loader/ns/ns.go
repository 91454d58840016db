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
func Do(h netns.NsHandle, fn func() error) error {
	if !h.IsOpen() {
		return fn()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		done <- inside(h, fn)
	}()
	return <-done
}

// inside runs fn in the namespace and returns to the old one. Returning matters on the main thread:
// Go never ends it, and /proc/self shows its namespace as the process's.
func inside(h netns.NsHandle, fn func() error) error {
	home, err := netns.Get()
	if err != nil {
		return fmt.Errorf("get the network namespace to return to: %w", err)
	}
	defer home.Close()
	defer netns.Set(home)
	if err := netns.Set(h); err != nil {
		return fmt.Errorf("enter network namespace %s: %w", h, err)
	}
	return fn()
}
