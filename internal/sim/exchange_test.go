// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"math/rand/v2"
	"slices"
	"testing"
)

// pushedOnce is an event of TestRank: with the part where it happens, and its place among what that
// part pushes in the window.
type pushedOnce struct {
	event
	part  int
	local uint64 // 0: it was pushed before the window
}

// before is the order of events: time, kind, sequence number.
func (e *pushedOnce) before(other *pushedOnce) bool { return e.event.before(&other.event) }

// Parts find the sequence numbers that one queue gives, with many events at the same ns.
func TestRank(t *testing.T) {
	const windowNs, first = 40, 50
	rng := rand.New(rand.NewPCG(1, 2))
	kinds := []kind{evArrive, evWake, evDecide}
	for try := range 300 {
		parts := 2 + try%2
		worlds := make([]*world, parts)
		tm := &team{worlds: worlds}
		for i := range worlds {
			worlds[i] = &world{part: &part{
				team: tm, ranks: make([][]uint64, parts), heads: make([]pushedLog, parts),
				base: first,
			}}
		}
		var queue []pushedOnce // what one part would have
		for n := range uint64(first) {
			queue = append(queue, pushedOnce{event: event{
				at:    rng.Int64N(windowNs),
				order: uint64(kinds[rng.IntN(len(kinds))])<<kindShift | (n + 1),
			}, part: rng.IntN(parts)})
		}
		next, locals := uint64(first), make([]uint64, parts)
		want := make([][]uint64, parts) // by part and push
		for len(queue) > 0 {
			i := 0
			for k := range queue {
				if queue[k].before(&queue[i]) {
					i = k
				}
			}
			e := queue[i]
			queue = slices.Delete(queue, i, i+1)
			children := rng.IntN(4)
			for range children {
				next++
				locals[e.part]++
				want[e.part] = append(want[e.part], next)
				child := pushedOnce{event: event{
					at:    e.at + rng.Int64N(windowNs/2),
					order: uint64(kinds[rng.IntN(len(kinds))])<<kindShift | next,
				}, part: e.part, local: locals[e.part]}
				if child.at == e.at && child.kind() <= e.kind() {
					child.at++
				}
				if child.at < windowNs {
					queue = append(queue, child)
				}
			}
			if children == 0 {
				continue
			}
			order := e.order
			if e.local != 0 {
				order = order&^(sequence|provisional) | provisional | e.local
			}
			s := worlds[e.part].part.sent()
			s.pushed = append(s.pushed, pushed{e.at, order, provisional | locals[e.part]})
		}
		for i, w := range worlds {
			w.part.rank()
			for k := range want {
				if slices.Compare(w.part.ranks[k], want[k]) != 0 {
					t.Fatalf("part %d finds %d for the pushes of part %d, want %d",
						i, w.part.ranks[k], k, want[k])
				}
			}
			if cmp.Compare(w.part.base, next) != 0 {
				t.Fatalf("part %d counts %d pushes, want %d", i, w.part.base, next)
			}
		}
	}
}
