// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"math"
	"slices"
)

// Tier is the hosts, or the switches that are as far from hosts.
type Tier struct {
	Name  string // host, or what switches are called in the kind of topology
	Nodes []string
	Links []LinkGroup // that work, up to other tiers and across this one
	// Oversubscription is the capacity of a switch to and from below over that above, of the worst switch: 0 if no
	// switch of the tier has anything above, infinite if only this one has not.
	Oversubscription float64
}

// LinkGroup are links that are alike.
type LinkGroup struct {
	Count int
	Rate  Rate
	Delay Duration
}

// Tiers returns the nodes by how far they are from hosts, hosts first. Failed links count for that, and for nothing else.
func (n *Network) Tiers() []Tier {
	level := n.levels()
	tiers := []Tier{{Name: "host", Nodes: n.Hosts}}
	for _, sw := range n.Switches {
		for len(tiers) <= level[sw] {
			tiers = append(tiers, Tier{Name: n.tierName(len(tiers))})
		}
		t := &tiers[level[sw]]
		t.Nodes = append(t.Nodes, sw)
	}
	up, down := make(map[string]Rate), make(map[string]Rate)
	for _, l := range n.Links {
		a, b := l.A, l.B
		if level[a] > level[b] {
			a, b = b, a
		}
		t := &tiers[level[a]]
		t.add(l)
		if level[a] != level[b] {
			up[a] += l.Rate
			down[b] += l.Rate
		}
	}
	for i := range tiers[1:] {
		t := &tiers[i+1]
		t.Oversubscription = oversubscription(t.Nodes, up, down)
	}
	return tiers
}

// oversubscription is that of the worst of switches, see [Tier].
func oversubscription(switches []string, up, down map[string]Rate) float64 {
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

// add counts a link among those like it.
func (t *Tier) add(l Link) {
	for i, g := range t.Links {
		if g.Rate == l.Rate && g.Delay == l.Delay {
			t.Links[i].Count++
			return
		}
	}
	t.Links = append(t.Links, LinkGroup{1, l.Rate, l.Delay})
}

// levels counts the links from each node to the nearest host; a switch that none leads to counts as next to one.
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

// tierName is what the switches of a level, from 1, are called.
func (n *Network) tierName(level int) string {
	if level <= len(n.tiers) {
		return n.tiers[level-1]
	}
	return fmt.Sprintf("tier %d", level)
}

// Longest returns the links and the propagation delay of the path between hosts that has most delay.
func (r *Routes) Longest() (hops int, delay Duration) {
	hosts := r.farthestHosts()
	for _, from := range hosts {
		for _, to := range hosts {
			if from == to {
				continue
			}
			if h, d := r.Hops(from, to), r.Delay(from, to); cmp.Or(cmp.Compare(d, delay), cmp.Compare(h, hops)) > 0 {
				hops, delay = h, d
			}
		}
	}
	return hops, delay
}

// farthestHosts returns two hosts of each switch, or all if there are less: those of most delay.
func (r *Routes) farthestHosts() []int {
	of := make(map[int][]int)
	for h, e := range r.access {
		of[e.peer] = append(of[e.peer], h)
	}
	var hosts []int
	for _, at := range of {
		slices.SortFunc(at, func(a, b int) int { return cmp.Compare(r.access[b].delay, r.access[a].delay) })
		hosts = append(hosts, at[:min(2, len(at))]...)
	}
	return hosts
}
