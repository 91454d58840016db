// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// TestMemory: a large network needs more.
func TestMemory(t *testing.T) {
	for nodes, wantMiB := range map[int]int{2: 1024, 128: 1024, 129: 1028, 640: 3072} {
		qt.Check(t, qt.Equals(memoryFor(nodes), wantMiB), qt.Commentf("%d nodes", nodes))
	}
}
