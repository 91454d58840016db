// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/network"
	"golang.org/x/sys/unix"
)

// topologyOf is the topology of a file that says so.
func topologyOf(t testing.TB, yaml string) Topology {
	t.Helper()
	e, err := parseTopology(yaml)
	qt.Assert(t, qt.IsNil(err), qt.Commentf(yaml))
	return e.Topology
}

// parseTopology parses a file with the topology, and a burst between hosts that every network has.
func parseTopology(yaml string) (*Experiment, error) {
	to := "R0"
	switch {
	case strings.Contains(yaml, "leaf-spine"), strings.Contains(yaml, "clos"):
		to = "H1"
	}
	text := "name: t\ntopology: " + yaml +
		"\nschemes: [pfc]\nduration: 1ms\nflows: [{name: F0, from: H0, to: " + to + "}]\n"
	if strings.Contains(yaml, "dumbbell") {
		text = strings.NewReplacer("H0", "A0", "R0", "B0").Replace(text)
	}
	return Parse("t.yaml", []byte(text))
}

// pcnClos is the fabric of PCN, section 7.4.
const pcnClos = "{kind: clos, pods: 8, leaves: 2, tors: 4, hosts: 16, spines: 8, rate: 10Gbps, delay: 5us, leaf_links: {rate: 40Gbps, parallel: 2}, spine_links: {rate: 40Gbps}}"

// TestFailedLinks: either end may come first, and one of several links may fail alone.
func TestFailedLinks(t *testing.T) {
	for _, c := range []struct {
		failed string
		want   []string
	}{
		{"[]", nil},
		{"[L0-S1]", []string{"L0-S1.0", "L0-S1.1"}},
		{"S1-L0", []string{"L0-S1.0", "L0-S1.1"}},
		{"[S1-L0.1, L1-S0.0]", []string{"L0-S1.1", "L1-S0.0"}},
		{"[L0-S1, S1-L0.1]", []string{"L0-S1.0", "L0-S1.1"}},
	} {
		topo := topologyOf(t,
			"{kind: leaf-spine, spine_links: {parallel: 2}, failed: "+c.failed+"}")
		net := topo.Network()
		var got []string
		for _, l := range net.Failed {
			got = append(got, l.Name())
		}
		qt.Check(t, qt.DeepEquals(got, c.want), qt.Commentf(c.failed))
		qt.Check(t, qt.HasLen(net.Links, 4+8-len(c.want)))
		qt.Check(t, qt.Equals(len(net.Ports()), 2*len(net.Links)))
	}
}

func TestTopologyErrors(t *testing.T) {
	for _, c := range []struct{ topology, at, want string }{
		{"{kind: leaf-spine, pods: 2}", "2}",
			`a leaf-spine has no "pods" (hint: it has leaves, spines, hosts, spine_links, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"{kind: leaf-spine, bottleneck: {rate: 1Gbps}}", "{rate",
			`a leaf-spine has no "bottleneck" (hint: it has leaves, spines, hosts, spine_links, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"{kind: clos, senders: 2}", "2}",
			`a clos has no "senders" (hint: it has pods, tors, leaves, spines, hosts, leaf_links, spine_links, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"{kind: fig1, spine_links: {parallel: 2}}", "{parallel",
			`a fig1 has no "spine_links" (hint: it has burst_hosts, bottleneck, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"{kind: Fat-Tree}", "Fat", `unknown kind of topology "Fat-Tree" ` +
			"(hint: the closest is clos, with pods, tors, leaves, spines and hosts)"},
		{"{kind: spine-leaf}", "spine-leaf",
			`unknown kind of topology "spine-leaf" (hint: write leaf-spine)`},
		{"{kind: parking-lot, bottlenecks: 31}", "31}", "31 is out of range (hint: 1 to 30)"},
		{"{kind: leaf-spine, leaves: 65}", "65}", "65 is out of range (hint: 1 to 64)"},
		{"{kind: clos, leaves: 65}", "65}", "65 is out of range (hint: 1 to 64)"},
		{"{kind: clos, spines: 65}", "65}", "65 is out of range (hint: 0 to 64)"},
		{"{kind: clos, pods: 0}", "0}", "0 is out of range (hint: 1 to 32)"},
		{"{kind: clos, tors: 33}", "33}", "33 is out of range (hint: 1 to 32)"},
		{"{kind: clos, hosts: 1000000000}", "1000000000}",
			"1000000000 is out of range (hint: 1 to 62)"},
		{"{kind: clos, leaf_links: {parallel: 0}}", "0}}", "0 is out of range (hint: 1 to 64)"},
		{"{kind: clos, spine_links: {parallel: 65}}", "65}}", "65 is out of range (hint: 1 to 64)"},
		{"{kind: clos, spine_links: {rate: 801Gbps}}", "801Gbps",
			"801Gbps is out of range (hint: 1kbps to 800Gbps)"},
		{"{kind: clos, leaf_links: {delay: 99ns}}", "99ns",
			"99ns is out of range (hint: 500ns to 10s)"},
		{"{kind: clos, pods: 32, tors: 32, hosts: 62}", "{kind",
			"it has more than 32767 links (hint: make it smaller)"},
		{"{kind: clos, leaf_links: {parallel: 16}}", "{kind",
			"32 shortest paths lead from one switch to a host: more than 16 are in the simulator " +
				"only (hint: write engine: sim at the top of the file)"},
		{"{kind: leaf-spine, spines: 16, spine_links: {parallel: 2}}", "{kind",
			"32 shortest paths lead from one switch to a host: more than 16 are in the simulator " +
				"only (hint: write engine: sim at the top of the file)"},
		{"{kind: leaf-spine, spines: 0}", "{kind", "no path leads from H2 to H0"},
		{"{kind: leaf-spine, links: [{link: L0-S2, rate: 1Gbps}]}", "L0-S2",
			`unknown link "L0-S2" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, links: [{rate: 1Gbps}]}", "{rate",
			`"link" is missing (hint: add link:)`},
		{"{kind: leaf-spine, links: [{link: L0-S0, rate: 801Gbps}]}", "801Gbps",
			"801Gbps is out of range (hint: 1kbps to 800Gbps)"},
		{"{kind: leaf-spine, links: [{link: L0-S0, delay: 1ns}]}", "1ns",
			"1ns is out of range (hint: 500ns to 10s)"},
		{"{kind: leaf-spine, links: [{link: L0-S0, error_rate: 60%}]}", "60%",
			"0.6 is out of range (hint: 0 to 0.5)"},
		{"{kind: leaf-spine, error_rate: 1%, " +
			"links: [{link: L0-S0, error_rate: 0, error_burst: 2}]}", "2}",
			`"error_burst" needs "error_rate" (hint: write error_rate: 1%)`},
		{"{kind: leaf-spine, error_rate: 1%, error_burst: 1001}", "1001",
			"1001 is out of range (hint: 1 to 1000)"},
		{"{kind: leaf-spine, jitter: 11s}", "11s", "11s is out of range (hint: 0ns to 10s)"},
		{"{kind: leaf-spine, reorder: 1%}", "{kind",
			`"reorder" and "reorder_delay" need each other ` +
				`(hint: write both, such as reorder: 1%, reorder_delay: 2ms)`},
		{"{kind: leaf-spine, failed: [L0-S2]}", "[L0-S2",
			`unknown link "L0-S2" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: [L0-S1.0]}", "[L0-S1.0",
			`unknown link "L0-S1.0" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: L9-S0}", "L9-S0",
			`unknown link "L9-S0" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: {L0: S1}}", "{L0",
			"want a link or a list of links (hint: write L0-T3)"},
		{"{kind: leaf-spine, failed: [[L0-S1]]}", "[[L0",
			"want a link or a list of links (hint: write L0-T3)"},
		{"{kind: leaf-spine, failed: [L0-S0, L0-S1]}", "[L0-S0", "no path leads from H2 to H0"},
		{"{kind: leaf-spine, failed: [L0-H1]}", "[L0-H1", "host H1 has 0 links, want 1"},
	} {
		t.Run(c.topology, func(t *testing.T) {
			_, err := parseTopology(c.topology)
			found := findError(t, err, c.want)
			qt.Check(t, qt.Equals(found.Line, 2))
			at := ("topology: " + c.topology)[found.Col-1:]
			qt.Check(t, qt.IsTrue(strings.HasPrefix(at, c.at)), qt.Commentf("points at %q", at))
		})
	}
}

// TestOneErrorIsNotTwo: without a network, nothing is said about hosts.
func TestOneErrorIsNotTwo(t *testing.T) {
	_, err := parseTopology("{kind: torus}")
	qt.Check(t,
		qt.ErrorMatches(err, `t.yaml:2:18: unknown kind of topology "torus" \(hint: one of .*\)`))
}

// What a file gives of a topology and a switch beyond those of fig1.
func TestSweepIsRead(t *testing.T) {
	e := parseSweep(t)
	qt.Assert(t, qt.DeepEquals(e.Topology, Topology{
		Kind: "dumbbell", Senders: 4, Receivers: 4, Rate: 40e9, Delay: 5000,
		Bottleneck: Bottleneck{Rate: 20e9, Delay: 50e3},
	}))
	qt.Assert(t, qt.DeepEquals(e.Switch, Switch{Buffer: 32e6, FlowControl: FlowPFC,
		PFC: PFC{Off: true}, CBFC: CBFC{Buffer: 280e3, Period: 20e3}, ECMP: ECMPFlow}))
}

func TestTopologyDefaults(t *testing.T) {
	every := Bottleneck{40e9, 5000}
	uplinks := Uplinks{40e9, 5000, 1}
	for _, tc := range []struct {
		topology string
		want     Topology
	}{
		{"{kind: fig1}", Topology{BurstHosts: 14, Bottleneck: every}},
		{"{kind: star}", Topology{HostCount: 10, Bottleneck: every}},
		{"{kind: dumbbell}", Topology{Senders: 3, Receivers: 3, Bottleneck: every}},
		{"{kind: dumbbell, senders: 5}", Topology{Senders: 5, Receivers: 5, Bottleneck: every}},
		{"{kind: dumbbell, receivers: 1}", Topology{Senders: 3, Receivers: 1, Bottleneck: every}},
		{"{kind: dumbbell, bottleneck: {delay: 1us}}",
			Topology{Senders: 3, Receivers: 3, Bottleneck: Bottleneck{40e9, 1000}}},
		{"{kind: dumbbell, bottleneck: {rate: 1Gbps}}",
			Topology{Senders: 3, Receivers: 3, Bottleneck: Bottleneck{1e9, 5000}}},
		{"{kind: parking-lot}", Topology{Bottlenecks: 2, Bottleneck: every}},
		{"{kind: leaf-spine}", Topology{Leaves: 2, Spines: 2, HostCount: 2, SpineLinks: uplinks}},
		{"{kind: leaf-spine, spine_links: {rate: 100Gbps}}",
			Topology{Leaves: 2, Spines: 2, HostCount: 2, SpineLinks: Uplinks{100e9, 5000, 1}}},
		{"{kind: clos}", Topology{Pods: 8, ToRs: 4, Leaves: 2, Spines: 8, HostCount: 16,
			LeafLinks: uplinks, SpineLinks: uplinks}},
		{"{kind: clos, pods: 1, leaf_links: {parallel: 2, delay: 1us}, failed: [L0-T3]}", Topology{
			Pods: 1, ToRs: 4, Leaves: 2, Spines: 8, HostCount: 16,
			LeafLinks: Uplinks{40e9, 1000, 2}, SpineLinks: uplinks, Failed: LinkList{"L0-T3"},
		}},
	} {
		t.Run(tc.topology, func(t *testing.T) {
			got := topologyOf(t, tc.topology)
			tc.want.Kind, tc.want.Rate, tc.want.Delay = got.Kind, 40e9, 5000
			qt.Assert(t, qt.DeepEquals(got, tc.want))
		})
	}
}

// cpuTime is what this process has had of the CPUs: a busy machine adds nothing to it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	qt.Assert(t, qt.IsNil(unix.Getrusage(unix.RUSAGE_SELF, &used)))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

// TestLargeNetworksAreQuick: nothing takes the square of what a Clos has.
func TestLargeNetworksAreQuick(t *testing.T) {
	file := "name: large\ntopology: " + pcnClos + "\nschemes: [pfc]\nduration: 1ms\n" +
		"bursts: [{name: all, from: H1..H511, to: H0, size: 1KB}]\nflows:\n"
	for i := range 5000 {
		file += fmt.Sprintf("  - {name: F%d, from: H%d, to: H511}\n", i, i%511)
	}
	began := cpuTime(t)
	_, err := Parse("large.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(cpuTime(t)-began < 2*time.Second), qt.Commentf("%s", cpuTime(t)-began))
}

func FuzzParseNodeList(f *testing.F) {
	for _, s := range []string{"H2..H15", "H2", "H2..R3", "H15..H2", "H02..H3", "..",
		"H0..H99999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		nodes, err := ParseNodeList(text)
		if err != nil {
			return
		}
		qt.Assert(t, qt.IsTrue(len(nodes) >= 1 && len(nodes) <= maxRange))
		for _, n := range nodes {
			one, err := ParseNodeList(n)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.DeepEquals(one, NodeList{n}))
		}
	})
}

// Links of a built-in topology have values of their own, all between two nodes or one of several,
// and a host's line rate is that of its link.
func TestLinksOfTheirOwn(t *testing.T) {
	e, err := Parse("t.yaml", []byte(`name: own
engine: sim
topology: {kind: leaf-spine, rate: 10Gbps, delay: 2us, spine_links: {parallel: 2}, links: [
  {link: L0-S1, rate: 40Gbps}, {link: S1-L0.1, delay: 3us, error_rate: 1%},
  {link: H3-L1, rate: 2Gbps, delay: 7us}]}
schemes: [pfc]
duration: 1ms
flows: [{name: F, from: H0, to: H3}, {name: G, from: H3, to: H0}]
`))
	qt.Assert(t, qt.IsNil(err))
	want := map[string]network.Link{
		"L0-S1.0": {RateBps: 40e9, DelayNs: 2000},
		"L0-S1.1": {RateBps: 40e9, DelayNs: 3000, ErrorRate: 0.01},
		"H3-L1":   {RateBps: 2e9, DelayNs: 7000},
	}
	for _, l := range e.Topology.Network().Links {
		own, ok := want[l.Name()]
		if !ok {
			own = network.Link{RateBps: 10e9, DelayNs: 2000}
		}
		delete(want, l.Name())
		qt.Check(t, qt.Equals(network.Link{RateBps: l.RateBps, DelayNs: l.DelayNs,
			ErrorRate: l.ErrorRate}, own), qt.Commentf("%s", l.Name()))
	}
	qt.Check(t, qt.HasLen(want, 0))
	qt.Check(t, qt.Equals(e.HostRate("H3"), 2e9))
	qt.Check(t, qt.Equals(e.Flows[0].InitialRate, 10e9))
	qt.Check(t, qt.Equals(e.Flows[1].InitialRate, 2e9))
}
