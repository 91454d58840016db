// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// Runs that wait for a CPU have one each; a run that is alone has all, up to eight.
func TestFreeThreads(t *testing.T) {
	for _, c := range []struct{ runs, cpus, want int }{
		{1, 1, 1}, {1, 2, 2}, {2, 2, 1}, {3, 2, 1}, {2, 16, 8}, {3, 16, 5}, {1, 64, 8}, {0, 16, 1},
	} {
		qt.Check(t, qt.Equals(engineFlags{runs: c.runs}.freeThreads(c.cpus), c.want),
			qt.Commentf("%d runs, %d CPUs", c.runs, c.cpus))
	}
}
