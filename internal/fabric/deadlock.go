// SPDX-License-Identifier: Apache-2.0

package fabric

import (
	"fmt"
	"strings"

	"github.com/pcn-linux/pcn/internal/network"
)

// A port whose switch is full pauses the ports that lead to it. If routes lead from port to port in
// a circle, each may wait for the next: a cyclic buffer dependency.

// mostWork bounds the failures of two links that are checked: switches times destinations, in all.
const mostWork = 1_500_000

// deadlocks looks for circles: of the routes, and of those with one and with two failed links.
func (c *checker) deadlocks() {
	ports := c.network.Ports()
	if circle := c.circle(c.routes); circle != nil {
		c.find(Mistake, "topology", "remove a link of the circle, or route around it",
			run+", with traffic over all of the circle; see the metric deadlock",
			"routes make a circle of buffers: %s", names(ports, circle))
		return
	}
	trunks := c.trunks()
	failed := func(links ...int) bool {
		down := map[int]bool{}
		var list []string
		for _, l := range links {
			down[l] = true
			list = append(list, c.network.Links[l].Name())
		}
		circle := c.circle(c.routes.Without(down))
		if circle == nil {
			return false
		}
		what := strings.Join(list, ", ")
		c.find(Risk, "topology", "bound the life of packets by a watchdog, or do not route up "+
			"again after down", fmt.Sprintf("write failed: [%s] in topology:, and run %s; see the "+
			"metric deadlock", what, run),
			"when %s fail, routes make a circle of buffers: %s", what, names(ports, circle))
		return true
	}
	for _, l := range trunks {
		if failed(l) {
			return
		}
	}
	c.Pairs = len(trunks) * (len(trunks) - 1) / 2
	work := len(c.network.Switches) * len(c.destinations())
	most := max(mostWork/max(work, 1), 1)
	step := max((c.Pairs+most-1)/most, 1)
	number := 0
	for i, a := range trunks {
		for _, b := range trunks[:i] {
			if number++; number%step != 0 {
				continue
			}
			c.Checked++
			if failed(b, a) {
				return
			}
		}
	}
}

// isTrunk reports whether a link is between switches.
func (c *checker) isTrunk(l network.Link) bool {
	return min(c.numbers[l.A], c.numbers[l.B]) >= len(c.network.Hosts)
}

// trunks are the links between switches.
func (c *checker) trunks() []int {
	var trunks []int
	for i, l := range c.network.Links {
		if c.isTrunk(l) {
			trunks = append(trunks, i)
		}
	}
	return trunks
}

// destinations returns a host of each switch that has hosts: routes to all of its hosts are the
// same. The link of a host leads nowhere else.
func (c *checker) destinations() map[int]int {
	first := map[int]int{} // host, by its switch
	for h := range c.network.Hosts {
		for _, p := range c.routes.HostPorts(h, (h+1)%len(c.network.Hosts)) {
			sw := c.peer(p)
			if _, ok := first[sw]; !ok {
				first[sw] = h
			}
		}
	}
	return first
}

// peer returns the node at the other end of a port.
func (c *checker) peer(port int) int {
	l := c.network.Links[port/2]
	name := l.B
	if port%2 == 1 {
		name = l.A
	}
	return c.numbers[name]
}

// circle returns ports of switches that may wait for each other; nil if there are none.
func (c *checker) circle(routes *network.Routes) []network.Queue {
	waits := network.WaitGraph{}
	type edge struct{ from, to int }
	seen := map[edge]bool{}
	sources := c.destinations()
	for to, host := range sources {
		visited := map[int]bool{}
		var follow func(sw, in int)
		follow = func(sw, in int) {
			out := routes.Ports(sw, host)
			for _, p := range out {
				if e := (edge{in, p}); in >= 0 && sw != to && !seen[e] {
					seen[e] = true
					q := network.Queue{Port: uint32(in)}
					waits[q] = append(waits[q], network.Queue{Port: uint32(p)})
				}
			}
			if visited[sw] || sw == to {
				return
			}
			visited[sw] = true
			for _, p := range out {
				follow(c.peer(p), p)
			}
		}
		for from := range sources {
			follow(from, -1)
		}
	}
	if !cyclic(waits) {
		return nil
	}
	return waits.Cycle()
}

// cyclic reports whether a graph has a cycle: it takes away nodes that wait for none.
func cyclic(waits network.WaitGraph) bool {
	open := map[network.Queue]int{}
	waiting := map[network.Queue][]network.Queue{}
	for q, on := range waits {
		for _, next := range on {
			open[q]++
			waiting[next] = append(waiting[next], q)
			open[next] += 0
		}
	}
	var free []network.Queue
	for q, n := range open {
		if n == 0 {
			free = append(free, q)
		}
	}
	for ; len(free) > 0; free = free[1:] {
		for _, q := range waiting[free[0]] {
			if open[q]--; open[q] == 0 {
				free = append(free, q)
			}
		}
		delete(open, free[0])
	}
	return len(open) > 0
}

func names(ports []string, circle []network.Queue) string {
	var list []string
	for _, q := range circle {
		list = append(list, ports[q.Port])
	}
	return strings.Join(append(list, list[0]), ", ")
}
