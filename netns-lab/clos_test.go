// SPDX-License-Identifier: Apache-2.0

package lab

import (
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// fullClosYAML is the fabric of PCN, section 7.4.
const fullClosYAML = `
name: full-clos
topology: {kind: clos, rate: 10Gbps, leaf_links: {rate: 40Gbps, parallel: 2}, spine_links: {rate: 40Gbps}}
schemes: [pcn]
duration: 1ms
flows: [{name: F, from: H0, to: H511}]
`

// freeKiB is how much memory could be had.
func freeKiB(t *testing.T) int {
	t.Helper()
	b, err := os.ReadFile("/proc/meminfo")
	qt.Assert(t, qt.IsNil(err))
	for line := range strings.Lines(string(b)) {
		if f := strings.Fields(line); f[0] == "MemAvailable:" {
			kib, err := strconv.Atoi(f[1])
			qt.Assert(t, qt.IsNil(err))
			return kib
		}
	}
	t.Fatal("no MemAvailable")
	return 0
}

// TestFullClos: 568 nodes and 768 links come up, go down, and leave nothing.
func TestFullClos(t *testing.T) {
	p := planOf(t, fullClosYAML)
	qt.Assert(t, qt.HasLen(p.nodes, 568))
	qt.Assert(t, qt.HasLen(p.ports, 1+2*768))
	leavesNothing(t, func() {
		before, began := freeKiB(t), time.Now()
		f := describeFabric(p, "pcn")
		for i, step := range f.steps() {
			stepBegan := time.Now()
			qt.Assert(t, qt.IsNil(step()))
			t.Logf("step %d: %.1f s", i, time.Since(stepBegan).Seconds())
		}
		up, used := time.Since(began), before-freeKiB(t)
		began = time.Now()
		qt.Assert(t, qt.IsNil(f.close()))
		down := time.Since(began)
		t.Logf("up in %.1f s, %.1f ms a node; down in %.1f s; %d MiB, %d KiB a node",
			up.Seconds(), up.Seconds()*1e3/568, down.Seconds(), used>>10, used/568)
		qt.Check(t, qt.IsTrue(up < 60*time.Second))
		qt.Check(t, qt.IsTrue(down < 20*time.Second))
	})
}
