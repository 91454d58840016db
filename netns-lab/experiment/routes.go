// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
)

// MaxPaths is how many paths of equal length a switch can spread flows over.
const MaxPaths = 16

// Routes are the shortest paths of a network, in links. Nodes are numbered as in [Network.Nodes], ports as in
// [Network.Ports].
type Routes struct {
	network *Network
	nodes   []string
	number  map[string]int   // of each node
	access  []endpoint       // of each host: its switch, and the link to it
	to      map[int]*towards // by switch that has hosts
}

// endpoint is the port of a node, and what is at the other end of its link.
type endpoint struct {
	port, peer int
	delay      Duration
}

// towards are the ways from each node to one switch.
type towards struct {
	hops  []int      // links; -1 if there is no way
	delay []Duration // of the longest of the ways
	ports [][]int    // that the ways start with
}

// Routes finds the shortest paths. It fails if a host does not have one link to a switch.
func (n *Network) Routes() (*Routes, error) {
	r := &Routes{network: n, nodes: n.Nodes(), number: make(map[string]int), to: make(map[int]*towards)}
	for i, name := range r.nodes {
		r.number[name] = i
	}
	ends := n.endpoints(r.number)
	for h, name := range n.Hosts {
		if len(ends[h]) != 1 {
			return nil, fmt.Errorf("host %s has %d links, want 1", name, len(ends[h]))
		}
		e := ends[h][0]
		if e.peer < len(n.Hosts) {
			return nil, fmt.Errorf("host %s is linked to host %s, want a switch", name, r.nodes[e.peer])
		}
		r.access = append(r.access, e)
	}
	for _, e := range r.access {
		if r.to[e.peer] == nil {
			r.to[e.peer] = waysTo(e.peer, ends, len(n.Hosts))
		}
	}
	return r, nil
}

// endpoints returns those of each node, in the order of the links.
func (n *Network) endpoints(number map[string]int) [][]endpoint {
	ends := make([][]endpoint, len(number))
	for k, l := range n.Links {
		a, b := number[l.A], number[l.B]
		ends[a] = append(ends[a], endpoint{2 * k, b, l.Delay})
		ends[b] = append(ends[b], endpoint{2*k + 1, a, l.Delay})
	}
	return ends
}

// waysTo finds the ways to a switch from all others, breadth first. Hosts, the first nodes, do not forward.
func waysTo(sw int, ends [][]endpoint, hosts int) *towards {
	t := &towards{hops: make([]int, len(ends)), delay: make([]Duration, len(ends)), ports: make([][]int, len(ends))}
	for i := range t.hops {
		t.hops[i] = -1
	}
	t.hops[sw] = 0
	for queue := []int{sw}; len(queue) > 0; queue = queue[1:] {
		at := queue[0]
		for _, e := range ends[at] {
			if e.peer < hosts {
				continue
			}
			switch {
			case t.hops[e.peer] < 0:
				t.hops[e.peer] = t.hops[at] + 1
				queue = append(queue, e.peer)
			case t.hops[e.peer] == t.hops[at]-1: // which are all known by now
				t.ports[at] = append(t.ports[at], e.port)
				t.delay[at] = max(t.delay[at], e.delay+t.delay[e.peer])
			}
		}
	}
	return t
}

// Ports returns the ports of a switch that shortest paths to a host start with; none if there is no path.
func (r *Routes) Ports(sw, host int) []int {
	e := r.access[host]
	if sw == e.peer {
		return []int{e.port ^ 1} // the other end
	}
	return r.to[e.peer].ports[sw]
}

// Hops returns how many links are between two hosts; 0 if there is no path.
func (r *Routes) Hops(from, to int) int {
	hops := r.to[r.access[to].peer].hops[r.access[from].peer]
	if hops < 0 {
		return 0
	}
	return hops + 2
}

// Delay returns the propagation delay between two hosts, of the longest of the shortest paths.
func (r *Routes) Delay(from, to int) Duration {
	a, b := r.access[from], r.access[to]
	return a.delay + r.to[b.peer].delay[a.peer] + b.delay
}

// firstHosts returns one host of each switch that has any: paths differ by switch only.
func (r *Routes) firstHosts() []int {
	var hosts []int
	seen := make(map[int]bool)
	for h, e := range r.access {
		if !seen[e.peer] {
			seen[e.peer] = true
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// check fails if a host can't reach another, or if there are more paths than a switch can take.
func (r *Routes) check() error {
	hosts := r.firstHosts()
	for _, to := range hosts {
		for _, from := range hosts {
			if r.Hops(from, to) == 0 {
				return fmt.Errorf("no path leads from %s to %s", r.nodes[from], r.nodes[to])
			}
		}
		widest := slices.MaxFunc(r.to[r.access[to].peer].ports, func(a, b []int) int { return len(a) - len(b) })
		if len(widest) > MaxPaths {
			return fmt.Errorf("%d shortest paths lead to %s from one switch, want at most %d", len(widest), r.nodes[to], MaxPaths)
		}
	}
	return nil
}
