// SPDX-License-Identifier: Apache-2.0

package network

import (
	"strconv"

	"github.com/pcn-linux/pcn/internal/hpcc"
)

// Import returns the network of a topology file of HPCC's simulator. Node 7 is H7 if it is a host,
// or else S7.
func Import(t *hpcc.Topology) *Network {
	n := &Network{}
	names := make([]string, len(t.Switch))
	for id, isSwitch := range t.Switch {
		names[id] = ImportedHost(id)
		if isSwitch {
			names[id] = "S" + strconv.Itoa(id)
			n.Switches = append(n.Switches, names[id])
		} else {
			n.Hosts = append(n.Hosts, names[id])
		}
	}
	ends := func(l hpcc.Link) [2]int { return [2]int{min(l.A, l.B), max(l.A, l.B)} }
	parallel := make(map[[2]int]int)
	for _, l := range t.Links {
		parallel[ends(l)]++
	}
	wired := make(map[[2]int]int)
	for _, l := range t.Links {
		link := Link{A: names[l.A], B: names[l.B], RateBps: l.RateBps, DelayNs: l.DelayNs,
			ErrorRate: l.ErrorRate}
		if e := ends(l); parallel[e] > 1 {
			link.Suffix = "." + strconv.Itoa(wired[e])
			wired[e]++
		}
		n.Links = append(n.Links, link)
	}
	return n
}

// ImportedHost returns the name of the host that has this number in a file of HPCC's simulator.
func ImportedHost(id int) string { return "H" + strconv.Itoa(id) }
