// SPDX-License-Identifier: Apache-2.0

package network

import "math"

// Bisection returns how much the first half of the hosts can send to the second, in bit/s, over all
// paths. The second half has one host more if their number is odd.
func (n *Network) Bisection() uint64 {
	f := &flowGraph{from: make([][]int, len(n.Hosts)+len(n.Switches)+2)}
	number := n.Numbers()
	source, sink := len(f.from)-2, len(f.from)-1
	for h := range n.Hosts {
		if h < len(n.Hosts)/2 {
			f.add(source, h, math.MaxInt64, 0)
		} else {
			f.add(h, sink, math.MaxInt64, 0)
		}
	}
	for _, l := range n.Links {
		f.add(number[l.A], number[l.B], int64(l.RateBps), int64(l.RateBps))
	}
	total := int64(0)
	for f.layer(source, sink) {
		f.next = make([]int, len(f.from))
		for {
			sent := f.send(source, sink, math.MaxInt64)
			if sent == 0 {
				break
			}
			total += sent
		}
	}
	return uint64(total)
}

// flowGraph finds a maximum flow by Dinic's algorithm. Edge i^1 is edge i backwards.
type flowGraph struct {
	to    []int   // of each edge
	left  []int64 // capacity of each edge
	from  [][]int // edges of each node
	depth []int   // of each node in this round; -1 if it is not reached
	next  []int   // of each node: the first edge that this round has not used up
}

func (f *flowGraph) add(a, b int, there, back int64) {
	f.from[a] = append(f.from[a], len(f.to))
	f.from[b] = append(f.from[b], len(f.to)+1)
	f.to = append(f.to, b, a)
	f.left = append(f.left, there, back)
}

// layer finds the depth of each node over edges with capacity left, and reports whether the sink is
// reached.
func (f *flowGraph) layer(source, sink int) bool {
	f.depth = make([]int, len(f.from))
	for i := range f.depth {
		f.depth[i] = -1
	}
	f.depth[source] = 0
	for queue := []int{source}; len(queue) > 0; queue = queue[1:] {
		for _, e := range f.from[queue[0]] {
			if f.left[e] > 0 && f.depth[f.to[e]] < 0 {
				f.depth[f.to[e]] = f.depth[queue[0]] + 1
				queue = append(queue, f.to[e])
			}
		}
	}
	return f.depth[sink] >= 0
}

// send finds one more path to the sink, each edge of which leads one layer deeper, and returns how
// much flow it takes.
func (f *flowGraph) send(at, sink int, limit int64) int64 {
	if at == sink {
		return limit
	}
	for ; f.next[at] < len(f.from[at]); f.next[at]++ {
		e := f.from[at][f.next[at]]
		if f.left[e] == 0 || f.depth[f.to[e]] != f.depth[at]+1 {
			continue
		}
		if sent := f.send(f.to[e], sink, min(limit, f.left[e])); sent > 0 {
			f.left[e] -= sent
			f.left[e^1] += sent
			return sent
		}
	}
	return 0
}
