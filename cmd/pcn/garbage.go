// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"runtime"
	"runtime/debug"
	"runtime/metrics"
)

// usualHeap is the size up to which the heap grows before Go collects garbage. By itself Go does so
// at 4 MB, then at twice what was in use: a short simulation would collect more often, for a heap
// that is as large in the end.
const usualHeap = 10 << 20

// runCommands are the commands that run experiments. They may use more memory than those that
// watch, or that stay on a host.
var runCommands = []string{"run", "sweep", "reproduce", "rerun"}

// collectLate has Go collect no garbage while the heap has fewer than usualHeap bytes. It does
// nothing if the user has chosen.
func collectLate() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	const first = 4 << 20 // where Go begins with 100%
	debug.SetGCPercent(100 * usualHeap / first)
	followCollections()
}

// followCollections chooses after each collection how far the heap may grow until the next.
func followCollections() {
	collected := new([16]byte) // not smaller: Go keeps small values together, and longer
	runtime.AddCleanup(collected, func(struct{}) {
		live := []metrics.Sample{{Name: "/gc/heap/live:bytes"}}
		metrics.Read(live)
		debug.SetGCPercent(growth(live[0].Value.Uint64()))
		followCollections()
	}, struct{}{})
}

// mostGarbage is how much garbage a large heap may have, or a quarter of what is in use if that is
// more.
const mostGarbage = 256 << 20

// growth returns by how many percent a heap with so many bytes in use may grow: up to usualHeap, or
// to twice as many as Go by itself. Large heaps grow by less: they have flows and results, which
// stay, and little is allocated while packets are on their way.
func growth(live uint64) int {
	live = max(live, 1<<20)
	switch {
	case live < usualHeap/2:
		return int(100 * (usualHeap - live) / live)
	case live > mostGarbage:
		return int(max(100*mostGarbage/live, 25))
	}
	return 100
}
