// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net/netip"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// parse reads an experiment, or fails the test.
func parse(t testing.TB, yaml string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("test.yaml", []byte(yaml))
	qt.Assert(t, qt.IsNil(err))
	return e
}

func planOf(t testing.TB, yaml string) *plan {
	t.Helper()
	p, err := newPlan(parse(t, yaml))
	qt.Assert(t, qt.IsNil(err))
	return p
}

// algorithmIn looks a scheme of the plan's experiment up.
func algorithmIn(t testing.TB, p *plan, scheme string) algorithm {
	t.Helper()
	a, err := algorithmOf(p.exp, scheme)
	qt.Assert(t, qt.IsNil(err))
	return a
}

// optionsOf returns the options of the ports under a scheme.
func optionsOf(t testing.TB, p *plan, scheme string) npecn.Options {
	t.Helper()
	return p.qdiscOptions(algorithmIn(t, p, scheme))
}

const planYAML = `
name: plan
topology: {kind: fig1, burst_hosts: %d, rate: 40Gbps, delay: 5us}
frame: 1000B
switch: {buffer: 1MB, pfc: {xoff: 512KB, xon: 510KB}}
schemes: [pfc, pcn]
duration: 1ms
flows: [{name: F0, from: H0, to: R0}]
bursts: [{name: burst, from: H2, to: R1, flows: 3, size: 2KB}]
`

func TestPlanOfFig1(t *testing.T) {
	p := planOf(t, fmt.Sprintf(planYAML, 2))

	var nodes []string
	addrs := map[netip.Addr]bool{}
	for i, n := range p.nodes {
		nodes = append(nodes, n.name)
		qt.Check(t, qt.Equals(n.isHost, i < p.hosts))
		qt.Check(t, qt.Equals(n.addr.IsValid(), n.isHost))
		addrs[n.addr] = true
		for _, id := range n.ports {
			qt.Check(t, qt.Equals(p.ports[id].node, i))
		}
	}
	qt.Check(t, qt.DeepEquals(nodes, []string{"H0", "H1", "H2", "H3", "R0", "R1", "S0", "S1"}))
	qt.Check(t, qt.HasLen(addrs, p.hosts+1)) // all differ, and switches have none
	qt.Check(t, qt.Equals(p.nodes[0].addr, netip.MustParseAddr("10.0.0.1")))
	qt.Check(t, qt.Equals(p.nodes[5].addr, netip.MustParseAddr("10.0.0.6")))

	var receivers, senders []string
	for _, n := range p.nodes {
		if n.receives {
			receivers = append(receivers, n.name)
		}
		if n.sends {
			senders = append(senders, n.name)
		}
	}
	qt.Check(t, qt.DeepEquals(receivers, []string{"R0"}))
	qt.Check(t, qt.DeepEquals(senders, []string{"H0"})) // no CNP answers a burst

	var ports []string
	for id := 1; id < len(p.ports); id++ {
		port := p.ports[id]
		ports = append(ports, port.name)
		back := p.ports[port.back]
		qt.Check(t, qt.Equals(back.back, uint32(id)))
		qt.Check(t, qt.Equals(back.node, port.peer))
		qt.Check(t, qt.Equals(back.peer, port.node))
		qt.Check(t, qt.Equals(port.name, p.nodes[port.node].name+"->"+p.device(uint32(id))))
	}
	qt.Check(t, qt.DeepEquals(ports, []string{
		"H0->S0", "S0->H0", "H1->S0", "S0->H1", "H2->S1", "S1->H2", "H3->S1", "S1->H3", "R0->S1", "S1->R0", "R1->S1", "S1->R1", "S0->S1", "S1->S0",
	}))
	qt.Check(t, qt.Equals(p.host("R1"), 5))
	qt.Check(t, qt.Equals(p.host("S0"), -1))
	qt.Check(t, qt.Equals(p.host("H9"), -1))
}

// TestRoutes follows every route between two hosts.
func TestRoutes(t *testing.T) {
	for _, hosts := range []int{1, 2, 62} {
		p := planOf(t, fmt.Sprintf(planYAML, hosts))
		routes := p.routes()
		qt.Assert(t, qt.HasLen(routes, 2))
		for from := range p.hosts {
			for to := range p.hosts {
				if from == to {
					continue
				}
				links := 1
				at := p.ports[p.nodes[from].ports[0]].peer
				for ; at != to; links++ {
					ports := routes[at][to]
					about := qt.Commentf("%s to %s at %s", p.nodes[from].name, p.nodes[to].name, p.nodes[at].name)
					qt.Assert(t, qt.HasLen(ports, 1), about) // fig1 is a tree
					qt.Assert(t, qt.Equals(p.ports[ports[0]].node, at), about)
					qt.Assert(t, qt.IsTrue(links < len(p.nodes)), about)
					at = p.ports[ports[0]].peer
				}
				qt.Assert(t, qt.Equals(links, p.paths.Hops(from, to)))
			}
		}
	}
}

func TestBaseRTT(t *testing.T) {
	for _, test := range []struct {
		traffic string
		want    uint64 // ns, two ways of 5 us a link
	}{
		{"flows: [{name: f, from: H0, to: R0}]", 30_000},
		{"flows: [{name: f, from: H2, to: R0}]", 20_000},
		{"bursts: [{name: b, from: H2..H3, to: R1, size: 1KB}]", 20_000},
		{"flows: [{name: f, from: H2, to: R0}]\nbursts: [{name: b, from: H1, to: R1, size: 1KB}]", 30_000},
		{"switch: {pfc: {off: true}}\nnft: {S0: ''}\nprograms: [{name: p, host: S0, command: [x]}]",
			30_000}, // on the paths of any hosts
	} {
		p := planOf(t, "name: rtt\ntopology: {kind: fig1, burst_hosts: 2, delay: 5us}\nschemes: [pfc]\nduration: 1ms\n"+test.traffic)
		qt.Check(t, qt.Equals(p.rttNs, test.want), qt.Commentf(test.traffic))
	}
}

// TestPortsOfHosts: a host's port only serialises, and its delay is on the port towards it; round
// trips and PFC loops are as with a delay on each link.
func TestPortsOfHosts(t *testing.T) {
	const delay = 5_000
	p := planOf(t, fmt.Sprintf(planYAML, 2))
	p.virtualTime = false // else nothing is rounded
	o := optionsOf(t, p, "pcn")
	for id := 1; id < len(p.ports); id++ {
		q, back := o.Ports[id], o.Ports[p.ports[id].back]
		about := qt.Commentf("port %s", q.Name)
		qt.Check(t, qt.Equals(q.DelayNs+back.DelayNs, 2*delay), about)
		qt.Check(t, qt.Equals(q.PFCDelayNs, back.PFCDelayNs), about)
		// from PAUSE at the switch to the last byte that is under way: two delays after the last
		// packet's start
		qt.Check(t, qt.Equals(q.PFCDelayNs+min(q.DelayNs, back.DelayNs), 2*delay), about)
		qt.Check(t, qt.Equals(q.Peer, p.ports[id].back), about)
		qt.Check(t, qt.Equals(q.RateBps, 40_000_000_000), about)
		host := p.nodes[p.ports[id].node].isHost
		qt.Check(t, qt.Equals(q.DelayNs == 0, host), about)
		decideNs := map[uint64]uint64{0: 1, delay: 512, 2 * delay: mostQuantumNs}[q.DelayNs]
		qt.Check(t, qt.Equals(q.DecideNs, decideNs), about)
		qt.Check(t, qt.Equals(q.Marker == npecn.NPECN, !host), about)
		qt.Check(t, qt.Equals(o.Nodes[q.Node].BufferBytes, map[bool]uint64{false: 1_000_000, true: 0}[host]), about)
		qt.Check(t, qt.Equals(q.Classes[dataClass].Lossless, true), about)
		qt.Check(t, qt.Equals(q.Classes[ctrlClass].Lossless, false), about)
		for c, k := range q.Classes {
			qt.Check(t, qt.Equals(k.Slots > 0, c == dataClass || c == ctrlClass), about)
		}
	}
	qt.Check(t, qt.IsFalse(slices.ContainsFunc(optionsOf(t, p, "pfc").Ports, func(q npecn.Port) bool { return q.Marker != npecn.NoMarker })))
}

// TestClassesOfPriorities: each priority that there is has a class of its own, like that of
// priority 0.
func TestClassesOfPriorities(t *testing.T) {
	p := planOf(t, fmt.Sprintf(planYAML, 2))
	p.exp.Flows[0].Priority, p.exp.Bursts[0].Priority = 3, 1
	o := optionsOf(t, p, "pcn")
	for id := 1; id < len(p.ports); id++ {
		q := o.Ports[id]
		for _, c := range []int{0, 2} {
			qt.Check(t, qt.Equals(q.Classes[c], q.Classes[dataClass]))
		}
		qt.Check(t, qt.Equals(q.Classes[1], npecn.Class{}))
	}
	for priority, dscp := range []int{roceDSCP, 18, 10, 2} {
		qt.Check(t, qt.Equals(dataDSCP(priority), dscp))
	}
}

// TestRingSizes: rings take what there can be, so that the buffer is the only limit.
func TestRingSizes(t *testing.T) {
	p := planOf(t, fmt.Sprintf(planYAML, 2))
	o := optionsOf(t, p, "pcn")
	slots := func(name string) uint32 {
		i := slices.IndexFunc(o.Ports, func(q npecn.Port) bool { return q.Name == name })
		return o.Ports[i].Classes[dataClass].Slots
	}
	// 2000 B are 3 frames of 958 B of payload, in each of 3 flows
	qt.Check(t, qt.Equals(p.burstPackets("H2"), 9))
	qt.Check(t, qt.Equals(p.burstPackets("H3"), 0))
	qt.Check(t, qt.Equals(slots("H2->S1"), 4096+9))
	qt.Check(t, qt.Equals(slots("H3->S1"), 4096))
	qt.Check(t, qt.Equals(slots("S0->S1"), 1000+4096)) // 1 MB of frames of 1000 B

	// 40 Gbit/s * (10 us + 4 quanta) are 70,480 B, 1305 frames of 54 B
	qt.Check(t, qt.Equals(wireSlots(40e9, 10_000), 1305+64))
	qt.Check(t, qt.Equals(wireSlots(40e9, 0), 379+64))
}

func TestBurstFrames(t *testing.T) {
	const payload = 1000 - 14 - 28
	p := planOf(t, fmt.Sprintf(planYAML, 2))
	for _, test := range []struct {
		size experiment.Bytes
		want int
	}{{1, 1}, {payload - 1, 1}, {payload, 1}, {payload + 1, 2}, {2 * payload, 2}, {64_000, 67}} {
		qt.Check(t, qt.Equals(p.burstFrames(experiment.Burst{Size: test.size}), test.want), qt.Commentf("%d B", test.size))
	}
}

func TestThresholdsOfPlan(t *testing.T) {
	for _, test := range []struct {
		pfc  string
		want npecn.PFC
	}{
		{"{xoff: 512KB, xon: 510KB}", npecn.PFC{XOFFBytes: 512_000, XONOffsetBytes: 2_000}},
		{"{xoff: 20KB}", npecn.PFC{XOFFBytes: 20_000, XONOffsetBytes: 2_000}}, // two frames
		{"{dynamic: {alpha: 0.125, xon_offset: 3KB}}", npecn.PFC{Alpha: 0.125, XONOffsetBytes: 3_000}},
	} {
		p := planOf(t, "name: pfc\ntopology: {kind: fig1}\nschemes: [pfc]\nduration: 1ms\nflows: [{name: f, from: H0, to: R0}]\nswitch: {pfc: "+test.pfc+"}")
		for _, q := range optionsOf(t, p, "pfc").Ports[1:] {
			qt.Check(t, qt.Equals(q.PFC, test.want), qt.Commentf("port %s", q.Name))
		}
	}
}

// TestThresholdsByRate: at four times the rate of the topology, a port marks from four times the
// queue, and an ingress port may hold four times the share of the buffer.
func TestThresholdsByRate(t *testing.T) {
	p := planOf(t, `name: rates
topology: {kind: leaf-spine, rate: 10Gbps, spine_links: {rate: 40Gbps}}
switch: {marking_by_rate: true, pfc: {dynamic: {alpha: 0.125, xon_offset: 3KB, by_rate: true}}}
schemes: [dcqcn]
marking: {kmin: 10KB, kmax: 30KB, pmax: 0.5}
duration: 1ms
flows: [{name: f, from: H0, to: H2}]
`)
	times := map[string]uint64{"L0->H0": 1, "L0->S1": 4, "S0->L1": 4}
	for _, q := range optionsOf(t, p, "dcqcn").Ports[1:] {
		n, ok := times[q.Name]
		if !ok {
			continue
		}
		qt.Check(t, qt.Equals(q.PFC,
			npecn.PFC{Alpha: 0.125 * float64(n), XONOffsetBytes: 3_000}), qt.Commentf(q.Name))
		qt.Check(t, qt.Equals(q.RED, npecn.REDOptions{
			KMinBytes: n * 10_000, KMaxBytes: n * 30_000, PMax: 0.5}), qt.Commentf(q.Name))
		delete(times, q.Name)
	}
	qt.Check(t, qt.HasLen(times, 0))
}

func TestSeedDecides(t *testing.T) {
	a, b := planOf(t, fmt.Sprintf(planYAML, 2)), planOf(t, fmt.Sprintf(planYAML, 2)+"seed: 2")
	first := a.rng().Uint64()
	qt.Check(t, qt.Equals(a.rng().Uint64(), first))
	qt.Check(t, qt.Not(qt.Equals(b.rng().Uint64(), first)))
}

// TestMarkers: each scheme has its marking at switches, and none at hosts.
func TestMarkers(t *testing.T) {
	const yaml = "name: m\ntopology: {kind: fig1, burst_hosts: 2}\nduration: 1ms\nflows: [{name: f, from: H0, to: R0}]\nschemes: [pcn]\n"
	paper := npecn.REDOptions{KMinBytes: 5_000, KMaxBytes: 200_000, PMax: 0.01}
	threshold := npecn.REDOptions{KMinBytes: 120_000, KMaxBytes: 120_000, PMax: 1} // 30 KB for each 10 Gbit/s
	for _, test := range []struct {
		scheme, more string
		marker       npecn.Marker
		red          npecn.REDOptions
		ecn          bool
	}{
		{scheme: "pfc", ecn: true},
		{scheme: "pcn", marker: npecn.NPECN, ecn: true},
		{scheme: "qcn", marker: npecn.QCN},
		{scheme: "timely"},
		{scheme: "dcqcn", marker: npecn.RED, red: paper, ecn: true},
		{scheme: "pcn_dctcp", marker: npecn.RED, red: threshold, ecn: true},
		{scheme: "dctcp", marker: npecn.RED, red: threshold, ecn: true},
		{scheme: "cubic", more: "marking: {kmin: 1KB, kmax: 2KB, pmax: 0.5}", marker: npecn.RED, red: npecn.REDOptions{KMinBytes: 1000, KMaxBytes: 2000, PMax: 0.5}, ecn: true},
	} {
		p := planOf(t, yaml+test.more)
		qt.Check(t, qt.Equals(algorithmIn(t, p, test.scheme).NeedsECN, test.ecn), qt.Commentf(test.scheme))
		o := optionsOf(t, p, test.scheme)
		seeds := map[uint32]bool{}
		for id := 1; id < len(p.ports); id++ {
			q := o.Ports[id]
			about := qt.Commentf("%s, port %s", test.scheme, q.Name)
			host := p.nodes[p.ports[id].node].isHost
			qt.Check(t, qt.Equals(q.Classes[dataClass].Marked, !host), about)
			if host {
				qt.Check(t, qt.Equals(q.Marker, npecn.NoMarker), about)
				continue
			}
			qt.Check(t, qt.Equals(q.Marker, test.marker), about)
			qt.Check(t, qt.Equals(q.RED, test.red), about)
			qt.Check(t, qt.IsFalse(seeds[q.Seed]), about) // ports choose apart
			seeds[q.Seed] = true
		}
	}
}

// TestLinksOfTheirOwn: each link has its rate and delay, and the base round trip is the sum of the
// slowest path's.
func TestLinksOfTheirOwn(t *testing.T) {
	p := planOf(t, `name: d
topology: {kind: dumbbell, senders: 2, receivers: 1, rate: 10Gbps, delay: 10us, bottleneck: {rate: 1Gbps, delay: 230us}}
schemes: [pfc]
duration: 1ms
flows: [{name: f, from: A0, to: B0}]
`)
	qt.Check(t, qt.Equals(p.rttNs, 500_000))
	o := optionsOf(t, p, "pfc")
	for id := 1; id < len(p.ports); id++ {
		q := o.Ports[id]
		rate, delay := uint64(10e9), uint64(10_000)
		if q.Name == "S0->S1" || q.Name == "S1->S0" {
			rate, delay = 1e9, 230_000
		}
		qt.Check(t, qt.Equals(q.RateBps, rate), qt.Commentf(q.Name))
		qt.Check(t, qt.Equals(q.DelayNs+o.Ports[q.Peer].DelayNs, 2*delay), qt.Commentf(q.Name))
	}
}

// TestRateChanges: a port's are in order of time, counted from t = 0.
func TestRateChanges(t *testing.T) {
	p := planOf(t, `name: c
topology: {kind: star, hosts: 2, rate: 10Gbps}
schemes: [pfc]
duration: 3ms
flows: [{name: f, from: H0, to: R0}]
links: [{at: 2ms, link: S0->R0, rate: 10Gbps}, {at: -1ms, link: S0->R0, rate: 0.5Gbps}]
`)
	o := optionsOf(t, p, "pfc")
	for id := uint32(1); id < uint32(len(p.ports)); id++ {
		got := p.rateChanges(id, 5_000_000)
		qt.Check(t, qt.Equals(len(got), o.Ports[id].RateChanges))
		if p.ports[id].name != "S0->R0" {
			qt.Check(t, qt.HasLen(got, 0))
			continue
		}
		qt.Check(t, qt.DeepEquals(got, []npecn.RateChange{{AtNs: 4_000_000, RateBps: 500_000_000}, {AtNs: 7_000_000, RateBps: 10_000_000_000}}))
	}
}

// TestRepeatedBursts: rings and flow tables take all of them.
func TestRepeatedBursts(t *testing.T) {
	p := planOf(t, `name: r
topology: {kind: fig1, burst_hosts: 2}
schemes: [pfc]
duration: 3ms
flows: [{name: f, from: H0, to: R0}]
bursts: [{name: b, from: H2..H3, to: R1, size: 1KB, flows: 2, every: 1ms}]
`)
	qt.Check(t, qt.Equals(p.flows(), 1+2*2*3))
	qt.Check(t, qt.Equals(p.burstPackets("H2"), 2*3*2)) // 1000 B are 2 frames
}

// TestLossyNetwork has no PAUSE.
func TestLossyNetwork(t *testing.T) {
	p := planOf(t, "name: l\ntopology: {kind: fig1}\nschemes: [cubic]\nduration: 1ms\nflows: [{name: f, from: H0, to: R0}]\nswitch: {pfc: {off: true}}")
	for _, q := range optionsOf(t, p, "cubic").Ports[1:] {
		qt.Check(t, qt.IsFalse(q.Classes[dataClass].Lossless), qt.Commentf(q.Name))
	}

	p = planOf(t, "name: l\ntopology: {kind: fig1}\nschemes: [cubic, pcn]\nduration: 1ms\nflows: [{name: f, from: H0, to: R0}]\nswitch: {pfc: {schemes: [pcn]}}")
	for _, scheme := range p.exp.Schemes {
		for _, q := range optionsOf(t, p, scheme).Ports[1:] {
			qt.Check(t, qt.Equals(q.Classes[dataClass].Lossless, scheme == "pcn"), qt.Commentf("%s, %s", scheme, q.Name))
		}
	}
}

// TestDilationOfLongRoundTrips: TCP waits a second for the answer to its first packet, of the
// machine's time.
func TestDilationOfLongRoundTrips(t *testing.T) {
	const yaml = "name: far\ntopology: {kind: fig1, burst_hosts: 1, delay: %s}\nschemes: [pfc]\ndilation: %d\nduration: 1ms\nflows: [{name: F0, from: H0, to: R0}]\n"
	for _, tc := range []struct {
		delay    string
		dilation int
		want     string // "": it can be
	}{
		{"5us", 14, ""}, // 30 us, 0.49 s
		{"5us", 15, "with dilation 15 a round trip of 30us lasts longer than the second .*: write `dilation: 14` or less"},
		{"150us", 9, ""}, // 0.46 s
		{"150us", 10, "with dilation 10 a round trip of 900us lasts longer .*: write `dilation: 9` or less"},
		{"10ms", 4, "with dilation 4 a round trip of 60ms lasts longer .*: write `dilation: 3` or less"},
	} {
		_, err := newPlan(parse(t, fmt.Sprintf(yaml, tc.delay, tc.dilation)))
		if tc.want == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, tc.want))
		}
	}
}

// A file for the simulator may have more flows than Linux has ports.
func TestPlanOfTooManyFlows(t *testing.T) {
	_, err := newPlan(parse(t, `
name: many
engine: sim
topology: {kind: dumbbell, senders: 20}
schemes: [dcqcn]
duration: 1ms
workload: {cdf: fb-key-value, load: 0.09}
`))
	qt.Check(t, qt.ErrorMatches(err,
		"[0-9]+ flows are too many for Linux: have at most 45000, or run them with `--engine sim`"))
}

// Where computing takes no time, ports are not late by more than a program's calls can make them.
func TestLateInExactTime(t *testing.T) {
	m := &result.Manifest{BaseRTTNs: 1e9, LatenessP99Ns: exactLateNs}
	qt.Check(t, qt.HasLen(lateInExactTime(m), 0))
	m.LatenessP99Ns++
	qt.Check(t, qt.HasLen(lateInExactTime(m), 1))
	qt.Check(t, qt.HasLen(m.Late(), 0)) // the round trip alone allows it
}
