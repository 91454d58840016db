// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime"
	"runtime/debug"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

func TestGrowth(t *testing.T) {
	for _, tc := range []struct {
		live uint64
		want int
	}{
		{0, 900}, {1 << 20, 900}, {4 << 20, 150}, {usualHeap / 2, 100}, {64 << 20, 100},
		{mostGarbage, 100}, {2 * mostGarbage, 50}, {4 * mostGarbage, 25}, {1 << 40, 25},
	} {
		qt.Check(t, qt.Equals(growth(tc.live), tc.want), qt.Commentf("%d bytes", tc.live))
	}
}

// A heap that has become large goes on as Go's do. What the user chose stays.
func TestCollectLate(t *testing.T) {
	before := debug.SetGCPercent(77)
	t.Cleanup(func() { debug.SetGCPercent(before) })
	percent := func() int {
		p := debug.SetGCPercent(100)
		debug.SetGCPercent(p)
		return p
	}
	t.Setenv("GOGC", "77")
	collectLate()
	qt.Check(t, qt.Equals(percent(), 77))

	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	collectLate()
	qt.Check(t, qt.Equals(percent(), 250))
	used := make([]byte, usualHeap)
	const most = 10_000 // collections, of which the first or the second is enough
	for n := 0; percent() != 100; n++ {
		qt.Assert(t, qt.IsTrue(n < most))
		runtime.GC()
		time.Sleep(time.Millisecond)
	}
	runtime.KeepAlive(used)
}
