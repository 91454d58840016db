// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// Partition is hosts that are cut off from all others for a while, and not from each other: what
// one side sends the other is lost at its host's switch. Of several at a time, hosts reach those
// that are within the same.
type Partition struct {
	// Hosts are those hosts, such as H3 or H0..H2. Required.
	Hosts NodeList `yaml:"hosts"`
	// At is when it begins. From -warmup to the end of the run, default 0.
	At Duration `yaml:"at"`
	// Until is when it ends. After At; default 0: the end of the run.
	Until Duration `yaml:"until"`
}

// mostPartitions is how many there may be: a host has a bit for each.
const mostPartitions = 64

func (d *decoder) validatePartitions(e *Experiment) {
	d.needsLinux(e, "partitions")
	if n := len(e.Partitions); n > mostPartitions {
		d.fail("partitions", fmt.Sprintf("%d partitions are too many", n),
			fmt.Sprintf("at most %d", mostPartitions))
	}
	if len(e.Partitions) > 0 && slices.ContainsFunc(e.Schemes, e.PFCOn) {
		d.fail("partitions", "a partition loses packets, and PFC is for networks that lose none",
			"write switch: {pfc: {off: true}}")
	}
	if len(e.Partitions) > 0 && slices.ContainsFunc(d.switches(), func(name string) bool {
		_, router := e.NFT[name]
		return router
	}) {
		d.fail("partitions", "routers of nftables may translate addresses, so they can't tell "+
			"who is parted from whom", "drop packets by rules, or let links fail")
	}
	for i, p := range e.Partitions {
		path := fmt.Sprintf("partitions[%d].", i)
		if d.hasRequired(path, "hosts") {
			d.checkAllKnown(path+"hosts", "host", p.Hosts, d.hosts)
			d.checkUnique(path+"hosts", "host", p.Hosts)
		}
		config.InRange(d.Decoder, path+"at", p.At, -e.Warmup, e.Duration-1)
		if d.has(path + "until") {
			config.InRange(d.Decoder, path+"until", p.Until, p.At+1, e.Duration)
		}
	}
}

// Cuts returns when links fail or come back, or partitions begin or end, in order.
func (e *Experiment) Cuts() []Duration {
	var at []Duration
	for _, l := range e.LinkEvents {
		if l.State != "" {
			at = append(at, l.At)
		}
	}
	for _, p := range e.Partitions {
		if at = append(at, p.At); p.Until > 0 {
			at = append(at, p.Until)
		}
	}
	slices.Sort(at)
	return slices.Compact(at)
}

// DownAt returns which links of the topology's network are down at a time.
func (e *Experiment) DownAt(at Duration) map[int]bool {
	events := slices.Clone(e.LinkEvents)
	slices.SortStableFunc(events, func(a, b LinkEvent) int { return cmp.Compare(a.At, b.At) })
	net, down := e.Topology.Network(), map[int]bool{}
	for _, l := range events {
		if l.State == "" || l.At > at {
			continue
		}
		for _, link := range net.LinksNamed(l.Port) {
			down[link] = l.State == LinkDown
		}
	}
	return down
}

// SideAt returns the partitions that a host is within at a time, a bit each.
func (e *Experiment) SideAt(host string, at Duration) uint64 {
	var side uint64
	for i, p := range e.Partitions {
		now := p.At <= at && (p.Until == 0 || at < p.Until)
		if now && slices.Contains(p.Hosts, host) {
			side |= 1 << i
		}
	}
	return side
}
