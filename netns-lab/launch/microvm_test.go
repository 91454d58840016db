// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// TestMemory: networks of about the same size share a state of a microVM.
func TestMemory(t *testing.T) {
	for nodes, wantMiB := range map[int]int{2: 2048, 128: 2048, 129: 4096, 640: 4096, 641: 6144} {
		qt.Check(t, qt.Equals(memoryFor(nodes), wantMiB), qt.Commentf("%d nodes", nodes))
	}
}
