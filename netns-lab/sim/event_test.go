// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// Events come in the order of time, then of kind, then as they were pushed.
func TestEventsInOrder(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var h eventHeap
	var want []event
	for i := range 2000 {
		at, k := int64(rng.IntN(50)), kind(rng.IntN(int(evEnd)+1))
		h.push(at, k, uint32(i))
		want = append(want, event{at, uint64(k)<<kindShift | uint64(i+1), uint32(i)})
	}
	slices.SortFunc(want, func(a, b event) int {
		if a.before(&b) {
			return -1
		}
		return 1
	})
	for _, w := range want {
		qt.Assert(t, qt.Equals(h.pop(), w))
	}
	qt.Check(t, qt.HasLen(h.events, 0))
}

func TestPacketsAreReused(t *testing.T) {
	s := newSlab()
	a, b := s.alloc(), s.alloc()
	s.packets[a].size = 9
	s.release(a)
	qt.Check(t, qt.Equals(s.alloc(), a))
	qt.Check(t, qt.Equals(s.packets[a].size, 0))
	f := newFIFO()
	s.packets[b].size = 5
	f.push(&s, b)
	f.push(&s, a)
	qt.Check(t, qt.Equals(f.bytes, 5))
	qt.Check(t, qt.Equals(f.pop(&s), b))
	qt.Check(t, qt.Equals(f.pop(&s), a))
	qt.Check(t, qt.Equals(f.head, none))
}
