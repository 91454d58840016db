// SPDX-License-Identifier: Apache-2.0

package sim

import (
	goruntime "runtime"
	"testing"
	"time"
)

// The memory of a run is free when it has ended, although its simulator keeps machine code.
func TestRunsAreForgotten(t *testing.T) {
	e := parse(t, retiring)
	freed := make(chan struct{})
	func() {
		w := worldsOf(t, e, "dcqcn", 1) // with the cache of all tests
		goruntime.AddCleanup(w.transport.control.module, func(int) { close(freed) }, 0)
		w.forget()
	}()
	for range 100 {
		goruntime.GC()
		select {
		case <-freed:
			return
		case <-time.After(50 * time.Millisecond):
		}
	}
	t.Error("the control's module is in use when its run is over")
}
