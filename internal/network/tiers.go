// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"math"
	"slices"
)

// Tier is all hosts, or the switches at one distance from hosts.
type Tier struct {
	Name  string // host, or the name that the kind of topology has for these switches
	Nodes []string
	Links []LinkGroup // links that work, up to other tiers and within this one
	// Oversubscription is the capacity of a switch below it over that above it, of the worst
	// switch. It is 0 if no switch of the tier has links up, and infinite if only some have none.
	Oversubscription float64
}

// LinkGroup is how many links have this rate and delay.
type LinkGroup struct {
	Count   int
	RateBps uint64
	DelayNs uint64
}

// HostTier is the tier of hosts.
const HostTier = "host"

// Tiers returns the nodes by their distance from hosts, hosts first. Failed links count for the
// distance only.
func (n *Network) Tiers() []Tier {
	level := n.levels()
	tiers := []Tier{{Name: HostTier, Nodes: n.Hosts}}
	for _, sw := range n.Switches {
		for len(tiers) <= level[sw] {
			tiers = append(tiers, Tier{Name: n.tierName(len(tiers))})
		}
		t := &tiers[level[sw]]
		t.Nodes = append(t.Nodes, sw)
	}
	up, down := make(map[string]uint64), make(map[string]uint64) // capacity of each switch
	for _, l := range n.Links {
		a, b := l.A, l.B
		if level[a] > level[b] {
			a, b = b, a
		}
		t := &tiers[level[a]]
		t.add(l)
		if level[a] != level[b] {
			up[a] += l.RateBps
			down[b] += l.RateBps
		}
	}
	for i := range tiers[1:] {
		t := &tiers[i+1]
		t.Oversubscription = oversubscription(t.Nodes, up, down)
	}
	return tiers
}

// oversubscription returns that of the worst switch, see [Tier].
func oversubscription(switches []string, up, down map[string]uint64) float64 {
	worst, top := 0.0, true
	for _, sw := range switches {
		top = top && up[sw] == 0
		switch {
		case down[sw] > 0 && up[sw] == 0:
			worst = math.Inf(1)
		case up[sw] > 0:
			worst = max(worst, float64(down[sw])/float64(up[sw]))
		}
	}
	if top {
		return 0
	}
	return worst
}

// add counts a link in the group of its rate and delay.
func (t *Tier) add(l Link) {
	for i, g := range t.Links {
		if g.RateBps == l.RateBps && g.DelayNs == l.DelayNs {
			t.Links[i].Count++
			return
		}
	}
	t.Links = append(t.Links, LinkGroup{1, l.RateBps, l.DelayNs})
}

// levels counts the links from each node to the nearest host. A switch that no host reaches has 1.
func (n *Network) levels() map[string]int {
	peers := make(map[string][]string)
	for _, l := range slices.Concat(n.Links, n.Failed) {
		peers[l.A] = append(peers[l.A], l.B)
		peers[l.B] = append(peers[l.B], l.A)
	}
	level := make(map[string]int)
	for _, h := range n.Hosts {
		level[h] = 0
	}
	for queue := slices.Clone(n.Hosts); len(queue) > 0; queue = queue[1:] {
		for _, peer := range peers[queue[0]] {
			if _, seen := level[peer]; !seen {
				level[peer] = level[queue[0]] + 1
				queue = append(queue, peer)
			}
		}
	}
	for _, sw := range n.Switches {
		level[sw] = max(level[sw], 1)
	}
	return level
}

// tierName returns the name of the switches of a level. Hosts are level 0.
func (n *Network) tierName(level int) string {
	if level <= len(n.tiers) {
		return n.tiers[level-1]
	}
	return fmt.Sprintf("tier %d", level)
}
