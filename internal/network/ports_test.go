// SPDX-License-Identifier: Apache-2.0

package network

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestPortNames(t *testing.T) {
	for _, c := range []struct{ port, node, peer string }{
		{"S0->S1", "S0", "S1"},
		{"T3->L0.1", "T3", "L0"},
	} {
		node, peer, ok := SplitPort(c.port)
		qt.Check(t, qt.DeepEquals([]any{node, peer, ok}, []any{c.node, c.peer, true}))
	}
	_, _, ok := SplitPort("S0")
	qt.Check(t, qt.IsFalse(ok))
}
