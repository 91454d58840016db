// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// Events come in the order of time, then of kind, then of their pushes, then of what they are
// about; near and far ones, many and few at a time, and those that are pushed while others of their
// time are handled.
func TestEventsInOrder(t *testing.T) {
	for _, horizon := range []int64{100, 5_000, 200_000} {
		for _, spread := range []int{1, 5, 50, 3000, 1_000_000} {
			rng := rand.New(rand.NewPCG(uint64(horizon), uint64(spread)))
			var q eventQueue
			var want []event
			const start = 1_000_000_123
			q.begin(start, horizon)
			pushed := 0
			push := func(now int64) {
				pushed++
				e := newEvent(now, now+rng.Int64N(int64(spread)), kind(rng.IntN(int(evEnd)+1)),
					0, rng.Uint32()>>rng.IntN(32))
				q.push(e.at, e.kind(), e.arg)
				want = append(want, e)
			}
			for range 500 {
				push(start)
			}
			for len(want) > 0 {
				i := 0
				for k := range want {
					if want[k].before(&want[i]) {
						i = k
					}
				}
				got, ok := q.pop()
				qt.Assert(t, qt.IsTrue(ok))
				qt.Assert(t, qt.Equals(got, want[i]))
				want = slices.Delete(want, i, i+1)
				for pushed < 2000 && rng.IntN(3) > 0 {
					push(got.at)
				}
			}
			_, ok := q.pop()
			qt.Check(t, qt.IsFalse(ok))
		}
	}
}

func TestPacketsAreReused(t *testing.T) {
	s := newSlab()
	a, b := s.alloc(), s.alloc()
	s.packets[a].size = 9
	s.release(a)
	qt.Check(t, qt.Equals(s.alloc(), a))
	qt.Check(t, qt.Equals(s.packets[a].size, 0))
	f := fifo{list: newList()}
	s.packets[b].size = 5
	f.push(&s, b)
	f.push(&s, a)
	qt.Check(t, qt.Equals(f.bytes, 5))
	qt.Check(t, qt.Equals(f.pop(&s), b))
	qt.Check(t, qt.Equals(f.pop(&s), a))
	qt.Check(t, qt.Equals(f.head, none))
}
