// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"slices"
)

// How many paths of equal length a switch can spread flows over: in the simulator, and on Linux.
const (
	MaxPaths   = 64
	LinuxPaths = 16
)

// Routes are the shortest paths of a network, counted in links. Nodes are numbered as in
// [Network.Nodes], hosts as in [Network.Hosts], ports as in [Network.Ports].
type Routes struct {
	network *Network
	nodes   []string
	number  map[string]int    // of each node
	access  []endpoint        // by host: its first link to a switch
	links   [][]endpoint      // by host: all of them
	several bool              // a host has several links
	to      map[int]*pathTree // by switch that has hosts
	down    map[int]bool      // links that do not work
	// relayed has all shortest paths to each host where hosts forward; nil where they do not.
	relayed []*pathTree
}

// endpoint is one end of a link: the port there, and the node at the other end.
type endpoint struct {
	port, peer int
	delayNs    uint64
}

// pathTree is all shortest paths to one switch, by the node that they start from.
type pathTree struct {
	hops    []int    // links; -1 if no path leads to the switch
	delayNs []uint64 // of the slowest of the paths
	ports   [][]int  // first ports of the paths
}

// Routes finds the shortest paths. Hosts forward where there is no other path between some of them:
// with links to each other, or as in BCube. It fails if a host has no link.
func (n *Network) Routes() (*Routes, error) {
	r := &Routes{
		network: n, nodes: n.Nodes(), number: n.Numbers(), to: make(map[int]*pathTree),
	}
	ends := n.endpoints(r.number, nil)
	for h, name := range n.Hosts {
		if len(ends[h]) == 0 {
			return nil, fmt.Errorf("host %s has 0 links, want 1", name)
		}
		for _, e := range ends[h] {
			if r.to[e.peer] == nil {
				r.to[e.peer] = pathsTo(e.peer, ends, len(n.Hosts))
			}
		}
		r.access = append(r.access, ends[h][0])
		r.links = append(r.links, ends[h])
		r.several = r.several || len(ends[h]) > 1
	}
	if r.needRelays() {
		r.relay(ends)
	}
	return r, nil
}

// Relay reports whether hosts forward what is for other hosts.
func (r *Routes) Relay() bool { return r.relayed != nil }

// needRelays reports whether two hosts are linked to each other, or have no path by switches.
func (r *Routes) needRelays() bool {
	for _, ends := range r.links {
		if slices.ContainsFunc(ends, func(e endpoint) bool { return e.peer < len(r.links) }) {
			return true
		}
	}
	if !r.several { // no host can forward
		return false
	}
	for to := range r.links {
		for from := range r.links {
			if r.Hops(from, to) == 0 {
				return true
			}
		}
	}
	return false
}

// relay finds the paths to each host that lead through hosts, too.
func (r *Routes) relay(ends [][]endpoint) {
	r.several = true // no two hosts share their paths
	r.relayed = make([]*pathTree, len(r.links))
	for h := range r.links {
		r.relayed[h] = pathsTo(h, ends, 0)
	}
}

// Without returns the routes while some links, by their numbers, are down. There is no path to a
// host that is cut off.
func (r *Routes) Without(down map[int]bool) *Routes {
	out := *r
	out.to = make(map[int]*pathTree)
	ends := r.network.endpoints(r.number, down)
	for sw := range r.to {
		out.to[sw] = pathsTo(sw, ends, len(r.network.Hosts))
	}
	if r.Relay() {
		out.relay(ends)
	}
	out.down = down
	return &out
}

// endpoints returns the endpoints at each node of links that are not down, in the order of the
// links.
func (n *Network) endpoints(number map[string]int, down map[int]bool) [][]endpoint {
	ends := make([][]endpoint, len(number))
	for k, l := range n.Links {
		if down[k] {
			continue
		}
		a, b := number[l.A], number[l.B]
		ends[a] = append(ends[a], endpoint{2 * k, b, l.DelayNs})
		ends[b] = append(ends[b], endpoint{2*k + 1, a, l.DelayNs})
	}
	return ends
}

// pathsTo finds the paths to a node from all others, breadth first. The first nodes, so many hosts,
// do not forward.
func pathsTo(sw int, ends [][]endpoint, hosts int) *pathTree {
	t := &pathTree{
		hops: make([]int, len(ends)), delayNs: make([]uint64, len(ends)),
		ports: make([][]int, len(ends)),
	}
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
				t.delayNs[at] = max(t.delayNs[at], e.delayNs+t.delayNs[e.peer])
			}
		}
	}
	return t
}

// Ports returns the ports of a switch, or of a host that forwards, that shortest paths to a host
// start with; none if there is no path.
func (r *Routes) Ports(sw, host int) []int {
	if r.Relay() {
		return r.relayed[host].ports[sw]
	}
	if len(r.links[host]) > 1 {
		return r.portsToAny(sw, host)
	}
	e := r.access[host]
	if r.down[e.port/2] {
		return nil
	}
	if sw == e.peer {
		return []int{e.port ^ 1} // the other end
	}
	return r.to[e.peer].ports[sw]
}

// SwitchPorts returns the ports of a switch that shortest paths to another start with; none if
// there is no path, or if both are one.
func (r *Routes) SwitchPorts(from, to int) []int {
	return pathsTo(to, r.network.endpoints(r.number, r.down), len(r.network.Hosts)).ports[from]
}

// portsToAny is Ports for a host with several links.
func (r *Routes) portsToAny(sw, host int) []int {
	var ports []int
	add := func(port int) {
		if !slices.Contains(ports, port) {
			ports = append(ports, port)
		}
	}
	best := r.hopsFrom(sw, host)
	for _, e := range r.links[host] {
		switch t := r.to[e.peer]; {
		case r.down[e.port/2] || t.hops[sw] != best:
		case sw == e.peer:
			add(e.port ^ 1)
		default:
			for _, port := range t.ports[sw] {
				add(port)
			}
		}
	}
	return ports
}

// hopsFrom returns how many links are between two switches, of which the second is the nearest of a
// host's; -1 if there is no path.
func (r *Routes) hopsFrom(sw, host int) int {
	best := -1
	for _, e := range r.links[host] {
		if hops := r.to[e.peer].hops[sw]; hops >= 0 && !r.down[e.port/2] &&
			(best < 0 || hops < best) {
			best = hops
		}
	}
	return best
}

// HasSeveral reports whether a host has several links.
func (r *Routes) HasSeveral(host int) bool { return len(r.links[host]) > 1 }

// HostPorts returns the ports of a host that shortest paths to another start with; none if there is
// no path.
func (r *Routes) HostPorts(from, to int) []int {
	if r.Relay() {
		return r.relayed[to].ports[from]
	}
	var ports []int
	best := -1
	for _, e := range r.links[from] {
		hops := r.hopsFrom(e.peer, to)
		if hops < 0 || r.down[e.port/2] || best >= 0 && hops > best {
			continue
		}
		if hops != best {
			ports, best = nil, hops
		}
		ports = append(ports, e.port)
	}
	return ports
}

// Hops returns how many links are between two hosts; 0 if there is no path.
func (r *Routes) Hops(from, to int) int {
	if r.Relay() {
		return max(r.relayed[to].hops[from], 0)
	}
	best := -1
	for _, e := range r.links[from] {
		if hops := r.hopsFrom(e.peer, to); hops >= 0 && (best < 0 || hops < best) {
			best = hops
		}
	}
	if best < 0 {
		return 0
	}
	return best + 2
}

// BetweenNs is DelayNs of two hosts by their names.
func (r *Routes) BetweenNs(from, to string) uint64 {
	return r.DelayNs(r.number[from], r.number[to])
}

// DelayNs returns the propagation delay between two hosts, of the slowest of the shortest paths.
func (r *Routes) DelayNs(from, to int) uint64 {
	if r.Relay() {
		return r.relayed[to].delayNs[from]
	}
	if !r.several {
		a, b := r.access[from], r.access[to]
		return a.delayNs + r.to[b.peer].delayNs[a.peer] + b.delayNs
	}
	hops, longestNs := r.Hops(from, to), uint64(0)
	for _, a := range r.links[from] {
		for _, b := range r.links[to] {
			if t := r.to[b.peer]; t.hops[a.peer]+2 == hops {
				longestNs = max(longestNs, a.delayNs+t.delayNs[a.peer]+b.delayNs)
			}
		}
	}
	return longestNs
}

// firstHosts returns one host of each switch that has any. Hosts of one switch share their paths,
// unless one has several links: then it returns all.
func (r *Routes) firstHosts() []int {
	var hosts []int
	if r.several {
		for h := range r.access {
			hosts = append(hosts, h)
		}
		return hosts
	}
	seen := make(map[int]bool)
	for h, e := range r.access {
		if !seen[e.peer] {
			seen[e.peer] = true
			hosts = append(hosts, h)
		}
	}
	return hosts
}

// Validate fails if a host can't reach another, or if there are more paths than a switch can take.
func (r *Routes) Validate() error {
	hosts := r.firstHosts()
	for _, to := range hosts {
		for _, from := range hosts {
			if r.Hops(from, to) == 0 && (from != to || !r.Relay()) {
				return fmt.Errorf("no path leads from %s to %s", r.nodes[from], r.nodes[to])
			}
		}
		if paths := r.paths(to); paths > MaxPaths {
			return fmt.Errorf("%d shortest paths lead to %s from one switch, want at most %d",
				paths, r.nodes[to], MaxPaths)
		}
	}
	return nil
}

// paths returns over how many shortest paths one switch sends to a host at most.
func (r *Routes) paths(to int) int {
	paths, tree := 0, r.to[r.access[to].peer]
	if r.Relay() {
		tree = r.relayed[to]
	}
	for _, ports := range tree.ports {
		paths = max(paths, len(ports))
	}
	return paths
}

// MostPaths returns over how many shortest paths one switch sends to a host at most.
func (r *Routes) MostPaths() int {
	most := 0
	for _, to := range r.firstHosts() {
		most = max(most, r.paths(to))
	}
	return most
}
