// SPDX-License-Identifier: Apache-2.0

// Package ns runs code inside a network namespace.
package ns

import (
	"fmt"
	"runtime"

	"github.com/vishvananda/netns"
)

// Do runs fn on a thread that has entered the namespace. The thread is thrown away after: a goroutine that ends
// locked takes its thread along, so no later code can run in the wrong namespace.
//
// fn must not start goroutines that rely on the namespace. A closed handle means the current namespace.
func Do(h netns.NsHandle, fn func() error) error {
	if !h.IsOpen() {
		return fn()
	}
	done := make(chan error, 1)
	go func() {
		runtime.LockOSThread()
		if err := netns.Set(h); err != nil {
			done <- fmt.Errorf("enter network namespace %s: %w", h, err)
			return
		}
		done <- fn()
	}()
	return <-done
}
