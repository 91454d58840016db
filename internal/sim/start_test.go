// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// incast has eight hosts that send 10 KB each to one at 1 ms.
const incast = `
name: incast
engine: sim
topology: {kind: star, hosts: 8, rate: 100Gbps, delay: 1us}
schemes: [%s]
warmup: 0ms
duration: 5ms
%s
`

// tracedIncast is a trace of the same flows.
func tracedIncast() string {
	text := "trace: {file: t.csv}\nfiles:\n  t.csv: |\n    start_ns,src,dst,size_bytes,priority\n"
	for i := range 8 {
		text += fmt.Sprintf("    1000000,H%d,R0,10000,0\n", i)
	}
	return text
}

// All senders start at one instant, so 88 packets are on their way to one link. The last flow ends
// when all have crossed it: 8 * 10,726 bytes, the first packet on the link before, 4 us of
// propagation, and the ACK's 5 ns on both links.
func TestAllStartAtOneInstant(t *testing.T) {
	flows := "flows: [{name: t, from: H0..H7, to: R0, start: 1ms, size: 10KB}]"
	run := simulate(t, parse(t, fmt.Sprintf(incast, "pfc", flows)), "pfc")
	var last int64
	for _, c := range run.Completions {
		last = max(last, *c.FCTNs)
	}
	const want = 8*10_726*8/100 + 80 + 4000 + 2*66*8/100
	qt.Check(t, qt.IsTrue(last >= want-8 && last <= want+8), qt.Commentf("%d ns", last))
	for _, p := range run.Ports {
		if p.Name == "S0->R0" { // 85,808 bytes come in the time in which an eighth of them leaves
			qt.Check(t, qt.IsTrue(p.QueueMaxBytes > 72_000 && p.QueueMaxBytes < 78_000),
				qt.Commentf("%d bytes", p.QueueMaxBytes))
		}
	}
}

// Flows and a trace with the same starts have the same results, under every kind of sender.
func TestFlowsAreATrace(t *testing.T) {
	flows := "flows: [{name: t, from: H0..H7, to: R0, start: 1ms, size: 10KB}]"
	for _, name := range []string{"pfc", "dcqcn", "pcn", "ldcp"} {
		a := simulate(t, parse(t, fmt.Sprintf(incast, name, flows)), name)
		b := simulate(t, parse(t, fmt.Sprintf(incast, name, tracedIncast())), name)
		for i := range a.Flows {
			a.Flows[i].Name = b.Flows[i].Name
		}
		for i, s := range a.Series {
			a.Series[i].Name = strings.TrimSuffix(strings.Replace(s.Name, "t-H", "t", 1), "-0")
		}
		qt.Check(t, qt.DeepEquals(a.Flows, b.Flows))
		qt.Check(t, qt.DeepEquals(a.Ports, b.Ports))
		qt.Check(t, qt.IsTrue(reflect.DeepEqual(a.Series, b.Series)))
	}
}

// A flow starts each 5 us, in order; with a jitter it is late by less than that, by the seed.
func TestStartJitter(t *testing.T) {
	starts := func(add string, seed int) []int64 {
		text := fmt.Sprintf(incast, "pfc", "seed: "+fmt.Sprint(seed)+
			"\nflows: [{name: f, from: H0, to: R0, start: 100us, size: 1KB, count: 8, every: 5us"+
			add+"}]")
		var times []int64
		for i, f := range simulate(t, parse(t, text), "pfc").Flows {
			times = append(times, f.StartNs-100_000-int64(i)*5000)
		}
		return times
	}
	qt.Check(t, qt.DeepEquals(starts("", 1), make([]int64, 8)))
	one, two := starts(", start_jitter: 2us", 1), starts(", start_jitter: 2us", 2)
	for _, late := range append(one, two...) {
		qt.Check(t, qt.IsTrue(late >= 0 && late < 2000))
	}
	qt.Check(t, qt.Not(qt.DeepEquals(one, two)))
	qt.Check(t, qt.DeepEquals(starts(", start_jitter: 2us", 1), one))
}

// No flow is faster than alone, whatever a frame takes on a link: 838.4 ns at 10 Gbit/s.
func TestSlowdownIsAtLeastOne(t *testing.T) {
	for _, topology := range []string{
		"{kind: star, hosts: 1, rate: 10Gbps, delay: 5us}",
		"{kind: star, hosts: 1, rate: 3Gbps, bottleneck: {rate: 7Gbps}}",
		"{kind: clos, pods: 2, tors: 1, leaves: 1, spines: 1, hosts: 1, rate: 7Gbps,\n" +
			"  leaf_links: {rate: 11Gbps}, spine_links: {rate: 3Gbps}}",
	} {
		for _, size := range []string{"1B", "997B", "10KB", "1MB"} {
			e := parse(t, fmt.Sprintf("name: alone\nengine: sim\nschemes: [pfc]\nwarmup: 0ms\n"+
				"duration: 20ms\nframe: 1048B\ntopology: %s\nflows: [{name: F, from: H0, to: %s, "+
				"start: 0ms, size: %s}]\n", topology,
				map[bool]string{true: "H1", false: "R0"}[strings.Contains(topology, "clos")], size))
			c := simulate(t, e, "pfc").Completions[0]
			about := qt.Commentf("%s %s: %d ns, ideal %d", topology, size, *c.FCTNs, c.IdealNs)
			qt.Check(t, qt.IsTrue(*c.FCTNs >= c.IdealNs), about)
			// an ACK may wait for the one before it on a slow link, 176 ns at 3 Gbit/s
			qt.Check(t, qt.IsTrue(*c.FCTNs < c.IdealNs*1001/1000+176), about)
		}
	}
}
