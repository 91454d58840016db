// SPDX-License-Identifier: Apache-2.0

package network

import (
	"cmp"
	"slices"
)

// Path returns the links from one host to another: of several shortest paths, the one of the first
// port of each switch. It is empty if no path leads there.
func (r *Routes) Path(from, to int) []Link {
	hops := r.Hops(from, to)
	if hops == 0 {
		return nil
	}
	path := make([]Link, 0, hops)
	port := r.HostPorts(from, to)[0]
	for {
		link := r.network.Links[port/2]
		path = append(path, link)
		at := r.number[link.A]
		if port%2 == 0 { // it is A's
			at = r.number[link.B]
		}
		if at == to {
			return path
		}
		port = r.Ports(at, to)[0]
	}
}

// Longest returns the links and the propagation delay of the slowest path between two hosts.
func (r *Routes) Longest() (hops int, delayNs uint64) {
	hosts := r.farthestHosts()
	for _, from := range hosts {
		for _, to := range hosts {
			if from == to {
				continue
			}
			h, d := r.Hops(from, to), r.DelayNs(from, to)
			if cmp.Or(cmp.Compare(d, delayNs), cmp.Compare(h, hops)) > 0 {
				hops, delayNs = h, d
			}
		}
	}
	return hops, delayNs
}

// farthestHosts returns the two hosts of each switch whose links are slowest, or its only one.
func (r *Routes) farthestHosts() []int {
	if r.several {
		return r.firstHosts()
	}
	of := make(map[int][]int)
	for h, e := range r.access {
		of[e.peer] = append(of[e.peer], h)
	}
	var hosts []int
	for _, at := range of {
		slices.SortFunc(at, func(a, b int) int {
			return cmp.Compare(r.access[b].delayNs, r.access[a].delayNs)
		})
		hosts = append(hosts, at[:min(2, len(at))]...)
	}
	return hosts
}
