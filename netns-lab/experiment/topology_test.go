// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
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
	text := "name: t\ntopology: " + yaml + "\nschemes: [pfc]\nduration: 1ms\nflows: [{name: F0, from: H0, to: " + to + "}]\n"
	if strings.Contains(yaml, "dumbbell") {
		text = strings.NewReplacer("H0", "A0", "R0", "B0").Replace(text)
	}
	return Parse("t.yaml", []byte(text))
}

func TestFig1(t *testing.T) {
	topo := Topology{Kind: "fig1", BurstHosts: 2, Rate: 40e9, Delay: 5e3, Bottleneck: Bottleneck{Rate: 10e9, Delay: 1e3}}
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"H0", "H1", "H2", "H3", "R0", "R1", "S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Hosts(), []string{"H0", "H1", "H2", "H3", "R0", "R1"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches(), []string{"S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Links(), []Link{
		{"H0", "S0", "", 40e9, 5e3},
		{"H1", "S0", "", 40e9, 5e3},
		{"H2", "S1", "", 40e9, 5e3},
		{"H3", "S1", "", 40e9, 5e3},
		{"R0", "S1", "", 40e9, 5e3},
		{"R1", "S1", "", 40e9, 5e3},
		{"S0", "S1", "", 10e9, 1e3},
	}))
	qt.Assert(t, qt.HasLen(topo.Ports(), 14))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S0->S1"))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S1->S0"))
	qt.Assert(t, qt.HasLen(Topology{Kind: "torus"}.Nodes(), 0))
}

func TestDumbbell(t *testing.T) {
	topo := Topology{Kind: "dumbbell", Senders: 2, Receivers: 1, Rate: 40e9, Delay: 5e3, Bottleneck: Bottleneck{Rate: 10e9, Delay: 1e3}}
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"A0", "A1", "B0", "S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches(), []string{"S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Links(), []Link{
		{"A0", "S0", "", 40e9, 5e3},
		{"A1", "S0", "", 40e9, 5e3},
		{"B0", "S1", "", 40e9, 5e3},
		{"S0", "S1", "", 10e9, 1e3},
	}))
}

func TestStar(t *testing.T) {
	topo := Topology{Kind: "star", HostCount: 2, Rate: 40e9, Delay: 5e3, Bottleneck: Bottleneck{Rate: 10e9, Delay: 1e3}}
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"H0", "H1", "R0", "S0"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches(), []string{"S0"}))
	qt.Assert(t, qt.DeepEquals(topo.Links(), []Link{
		{"H0", "S0", "", 40e9, 5e3},
		{"H1", "S0", "", 40e9, 5e3},
		{"R0", "S0", "", 10e9, 1e3},
	}))
}

// TestParkingLot: the pair of H0 crosses all links between switches, and every other pair one of its own.
func TestParkingLot(t *testing.T) {
	for n := 1; n <= 30; n++ {
		topo := topologyOf(t, fmt.Sprintf("{kind: parking-lot, bottlenecks: %d, rate: 10Gbps, bottleneck: {rate: 1Gbps, delay: 2us}}", n))
		net := topo.Network()
		qt.Assert(t, qt.HasLen(net.Hosts, 2*(n+1)))
		qt.Assert(t, qt.HasLen(net.Switches, n+1))
		routes, err := net.Routes()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(routes.Hops(0, n+1), n+2))
		qt.Check(t, qt.Equals(routes.Delay(0, n+1), Duration(2*5000+n*2000)))
		crossed := make(map[string]bool)
		for i := 1; i <= n; i++ {
			from, to := slices.Index(net.Hosts, fmt.Sprintf("H%d", i)), slices.Index(net.Hosts, fmt.Sprintf("R%d", i))
			qt.Check(t, qt.Equals(routes.Hops(from, to), 3))
			at := slices.Index(net.Nodes(), fmt.Sprintf("S%d", i-1))
			ports := routes.Ports(at, to)
			qt.Assert(t, qt.HasLen(ports, 1))
			crossed[net.Ports()[ports[0]]] = true
		}
		qt.Check(t, qt.HasLen(crossed, n))
	}
	net := topologyOf(t, "{kind: parking-lot, rate: 10Gbps, bottleneck: {rate: 1Gbps}}").Network()
	qt.Check(t, qt.DeepEquals(net.Nodes(), []string{"H0", "H1", "H2", "R0", "R1", "R2", "S0", "S1", "S2"}))
	qt.Check(t, qt.DeepEquals(net.Links, []Link{
		{"H0", "S0", "", 10e9, 5e3},
		{"H1", "S0", "", 10e9, 5e3},
		{"H2", "S1", "", 10e9, 5e3},
		{"R0", "S2", "", 10e9, 5e3},
		{"R1", "S1", "", 10e9, 5e3},
		{"R2", "S2", "", 10e9, 5e3},
		{"S0", "S1", "", 1e9, 5e3},
		{"S1", "S2", "", 1e9, 5e3},
	}))
}

func TestLeafSpine(t *testing.T) {
	net := topologyOf(t, "{kind: leaf-spine, leaves: 2, spines: 1, hosts: 2, rate: 10Gbps, spine_links: {rate: 40Gbps, delay: 1us, parallel: 2}}").Network()
	qt.Check(t, qt.DeepEquals(net.Nodes(), []string{"H0", "H1", "H2", "H3", "L0", "L1", "S0"}))
	qt.Check(t, qt.DeepEquals(net.Links, []Link{
		{"H0", "L0", "", 10e9, 5e3},
		{"H1", "L0", "", 10e9, 5e3},
		{"H2", "L1", "", 10e9, 5e3},
		{"H3", "L1", "", 10e9, 5e3},
		{"L0", "S0", ".0", 40e9, 1e3},
		{"L0", "S0", ".1", 40e9, 1e3},
		{"L1", "S0", ".0", 40e9, 1e3},
		{"L1", "S0", ".1", 40e9, 1e3},
	}))
	qt.Check(t, qt.DeepEquals(net.Ports()[8:12], []string{"L0->S0.0", "S0->L0.0", "L0->S0.1", "S0->L0.1"}))
}

// pcnClos is the fabric of PCN, section 7.4.
const pcnClos = "{kind: clos, pods: 8, leaves: 2, tors: 4, hosts: 16, spines: 8, rate: 10Gbps, delay: 5us, leaf_links: {rate: 40Gbps, parallel: 2}, spine_links: {rate: 40Gbps}}"

// TestClosOfPCN: the counts of PCN, section 7.4, with as much capacity above each switch as below it.
func TestClosOfPCN(t *testing.T) {
	began := cpuTime(t)
	topo := topologyOf(t, pcnClos)
	net := topo.Network()
	routes, err := net.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(cpuTime(t)-began < time.Second), qt.Commentf("%s", cpuTime(t)-began))

	nodes := net.Nodes()
	qt.Check(t, qt.HasLen(nodes, 568))
	qt.Check(t, qt.HasLen(net.Links, 768))
	qt.Check(t, qt.HasLen(setOfNames(nodes), 568))
	qt.Check(t, qt.HasLen(setOfNames(net.Ports()), 2*768))
	for _, name := range nodes {
		qt.Assert(t, qt.IsTrue(nodeName.MatchString(name)))
	}
	var up, down = map[string]Rate{}, map[string]Rate{}
	for _, l := range net.Links {
		up[l.A] += l.Rate
		down[l.B] += l.Rate
		qt.Check(t, qt.Equals(l.Delay, 5*Microsecond))
	}
	for _, name := range net.Switches {
		switch name[0] {
		case 'T':
			qt.Check(t, qt.Equals(down[name], 160e9), qt.Commentf(name))
			qt.Check(t, qt.Equals(up[name], 160e9), qt.Commentf(name))
		case 'L':
			qt.Check(t, qt.Equals(down[name], 320e9), qt.Commentf(name))
			qt.Check(t, qt.Equals(up[name], 320e9), qt.Commentf(name))
		case 'S':
			qt.Check(t, qt.Equals(down[name], 640e9), qt.Commentf(name))
		}
	}
	// H0 is at T0 of pod 0, H511 at T31 of pod 7
	at := func(name string) int { return slices.Index(nodes, name) }
	for _, c := range []struct {
		sw   string
		host int
		want []string
	}{
		{"T0", 0, []string{"T0->H0"}},
		{"T0", 16, []string{"T0->L0.0", "T0->L0.1", "T0->L1.0", "T0->L1.1"}},
		{"L1", 16, []string{"L1->T1.0", "L1->T1.1"}},
		{"L1", 511, []string{"L1->S0", "L1->S1", "L1->S2", "L1->S3", "L1->S4", "L1->S5", "L1->S6", "L1->S7"}},
		{"S3", 511, []string{"S3->L14", "S3->L15"}},
		{"L14", 511, []string{"L14->T31.0", "L14->T31.1"}},
		{"T31", 511, []string{"T31->H511"}},
	} {
		var got []string
		for _, port := range routes.Ports(at(c.sw), c.host) {
			got = append(got, net.Ports()[port])
		}
		qt.Check(t, qt.DeepEquals(got, c.want), qt.Commentf("%s to H%d", c.sw, c.host))
	}
	qt.Check(t, qt.Equals(routes.Hops(0, 511), 6))
	qt.Check(t, qt.Equals(routes.Delay(0, 511), 30*Microsecond))
	qt.Check(t, qt.Equals(routes.Hops(0, 1), 2))
}

// TestDeadlockPod is PCN, Fig. 21: in one pod, T0 has lost one leaf and T3 the other. What goes between them turns round
// at T1 and T2, which closes the cycle.
func TestDeadlockPod(t *testing.T) {
	topo := topologyOf(t, "{kind: clos, pods: 1, spines: 0, rate: 10Gbps, leaf_links: {rate: 40Gbps, parallel: 2}, failed: [L0-T3, L1-T0]}")
	net := topo.Network()
	qt.Check(t, qt.HasLen(net.Nodes(), 64+4+2))
	qt.Check(t, qt.HasLen(net.Links, 64+2*(8-2)))
	var failed []string
	for _, l := range net.Failed {
		failed = append(failed, l.Name())
	}
	qt.Check(t, qt.DeepEquals(failed, []string{"T0-L1.0", "T0-L1.1", "T3-L0.0", "T3-L0.1"}))
	routes, err := net.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(routes.Hops(0, 63), 6))
	var got []string
	for _, port := range routes.Ports(slices.Index(net.Nodes(), "L0"), 63) {
		got = append(got, net.Ports()[port])
	}
	qt.Check(t, qt.DeepEquals(got, []string{"L0->T1.0", "L0->T1.1", "L0->T2.0", "L0->T2.1"}))
}

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
		net := topologyOf(t, "{kind: leaf-spine, spine_links: {parallel: 2}, failed: "+c.failed+"}").Network()
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
		{"{kind: leaf-spine, pods: 2}", "2}", `a leaf-spine has no "pods" (hint: it has leaves, spines, hosts, spine_links, kind, rate, delay and failed)`},
		{"{kind: leaf-spine, bottleneck: {rate: 1Gbps}}", "{rate", `a leaf-spine has no "bottleneck" (hint: it has leaves, spines, hosts, spine_links, kind, rate, delay and failed)`},
		{"{kind: clos, senders: 2}", "2}", `a clos has no "senders" (hint: it has pods, tors, leaves, spines, hosts, leaf_links, spine_links, kind, rate, delay and failed)`},
		{"{kind: fig1, spine_links: {parallel: 2}}", "{parallel", `a fig1 has no "spine_links" (hint: it has burst_hosts, bottleneck, kind, rate, delay and failed)`},
		{"{kind: parking-lot, bottlenecks: 31}", "31}", "31 is out of range (hint: 1 to 30)"},
		{"{kind: leaf-spine, leaves: 65}", "65}", "65 is out of range (hint: 1 to 64)"},
		{"{kind: clos, leaves: 17}", "17}", "17 is out of range (hint: 1 to 16)"},
		{"{kind: clos, spines: 17}", "17}", "17 is out of range (hint: 0 to 16)"},
		{"{kind: clos, pods: 0}", "0}", "0 is out of range (hint: 1 to 32)"},
		{"{kind: clos, tors: 33}", "33}", "33 is out of range (hint: 1 to 32)"},
		{"{kind: clos, hosts: 1000000000}", "1000000000}", "1000000000 is out of range (hint: 1 to 62)"},
		{"{kind: clos, leaf_links: {parallel: 0}}", "0}}", "0 is out of range (hint: 1 to 16)"},
		{"{kind: clos, spine_links: {parallel: 17}}", "17}}", "17 is out of range (hint: 1 to 16)"},
		{"{kind: clos, spine_links: {rate: 801Gbps}}", "801Gbps", "801Gbps is out of range (hint: 1Mbps to 800Gbps)"},
		{"{kind: clos, leaf_links: {delay: 99ns}}", "99ns", "99ns is out of range (hint: 100ns to 10ms)"},
		{"{kind: clos, pods: 32, tors: 32, hosts: 62}", "{kind", "it has more than 32767 links (hint: make it smaller)"},
		{"{kind: clos, leaf_links: {parallel: 16}}", "{kind", "32 shortest paths lead to H0 from one switch, want at most 16"},
		{"{kind: leaf-spine, spines: 16, spine_links: {parallel: 2}}", "{kind", "32 shortest paths lead to H0 from one switch, want at most 16"},
		{"{kind: leaf-spine, spines: 0}", "{kind", "no path leads from H2 to H0"},
		{"{kind: leaf-spine, failed: [L0-S2]}", "[L0-S2", `unknown link "L0-S2" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: [L0-S1.0]}", "[L0-S1.0", `unknown link "L0-S1.0" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: L9-S0}", "L9-S0", `unknown link "L9-S0" (hint: write L0-T3, the names of two nodes that are linked)`},
		{"{kind: leaf-spine, failed: {L0: S1}}", "{L0", "want a link or a list of links (hint: write L0-T3)"},
		{"{kind: leaf-spine, failed: [[L0-S1]]}", "[[L0", "want a link or a list of links (hint: write L0-T3)"},
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
	qt.Check(t, qt.ErrorMatches(err, `t.yaml:2:18: unknown kind of topology "torus" \(hint: one of .*\)`))
}

// TestRoutesAreAllShortestPaths holds routes of random networks against distances found in another way.
func TestRoutesAreAllShortestPaths(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	unreached := 0
	for range 200 {
		net := randomNetwork(rng)
		routes, err := net.Routes()
		qt.Assert(t, qt.IsNil(err))
		nodes, ports := net.Nodes(), net.Ports()
		dist := floydWarshall(net)
		for to := range net.Hosts {
			for sw := len(net.Hosts); sw < len(nodes); sw++ {
				var want []string
				for k, l := range net.Links {
					for side, ends := range [][2]string{{l.A, l.B}, {l.B, l.A}} {
						peer := slices.Index(nodes, ends[1])
						if ends[0] == nodes[sw] && dist[peer][to] < far && dist[peer][to] == dist[sw][to]-1 {
							want = append(want, ports[2*k+side])
						}
					}
				}
				var got []string
				for _, port := range routes.Ports(sw, to) {
					got = append(got, ports[port])
				}
				slices.Sort(got)
				slices.Sort(want)
				qt.Assert(t, qt.DeepEquals(got, want))
			}
			for from := range net.Hosts {
				want := dist[from][to]
				switch {
				case from == to: // which no flow does
					continue
				case want == far:
					want = 0
					unreached++
				}
				qt.Assert(t, qt.Equals(routes.Hops(from, to), want))
			}
		}
	}
	qt.Assert(t, qt.IsTrue(unreached > 0)) // such networks are among them
}

// randomNetwork has hosts at switches that are linked at random, some more than once.
func randomNetwork(rng *rand.Rand) *Network {
	n := &Network{}
	n.addSwitches("S", 2+rng.IntN(6))
	n.addHosts(Topology{Delay: 1000}, "S0", "H", 0, 1)
	for i := range 4 {
		n.addHosts(Topology{Delay: 1000}, n.Switches[rng.IntN(len(n.Switches))], "H", i+1, 1)
	}
	for range 1 + rng.IntN(10) {
		a, b := rng.IntN(len(n.Switches)), rng.IntN(len(n.Switches))
		if a != b {
			n.addLinks(Link{A: n.Switches[a], B: n.Switches[b], Delay: 1000}, 1+rng.IntN(3))
		}
	}
	return n
}

const far = 1 << 20

// floydWarshall counts the links between all nodes. Hosts have one link, so no way leads through them.
func floydWarshall(n *Network) [][]int {
	nodes := n.Nodes()
	dist := make([][]int, len(nodes))
	for i := range dist {
		dist[i] = slices.Repeat([]int{far}, len(nodes))
		dist[i][i] = 0
	}
	for _, l := range n.Links {
		a, b := slices.Index(nodes, l.A), slices.Index(nodes, l.B)
		dist[a][b], dist[b][a] = 1, 1
	}
	for k := range nodes {
		for i := range nodes {
			for j := range nodes {
				dist[i][j] = min(dist[i][j], dist[i][k]+dist[k][j])
			}
		}
	}
	return dist
}

// TestDelayOfTheLongest: of paths that are as short in links, the one of most delay counts.
func TestDelayOfTheLongest(t *testing.T) {
	n := &Network{Hosts: []string{"H0", "H1"}, Switches: []string{"S0", "S1", "S2", "S3"}, Links: []Link{
		{"H0", "S0", "", 1e9, 1}, {"H1", "S3", "", 1e9, 2},
		{"S0", "S1", "", 1e9, 10}, {"S1", "S3", "", 1e9, 1},
		{"S0", "S2", "", 1e9, 5}, {"S3", "S2", "", 1e9, 100},
		{"S0", "S1", "", 1e9, 20}, {"S1", "S3", "", 1e9, 2},
	}}
	routes, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(routes.Delay(0, 1), 1+5+100+2))
	qt.Check(t, qt.Equals(routes.Delay(1, 0), 1+5+100+2))
}

// TestWidestPaths: a switch takes 16 paths, and no more.
func TestWidestPaths(t *testing.T) {
	for parallel, want := range map[int]string{MaxPaths: "", MaxPaths + 1: "17 shortest paths lead to H. from one switch, want at most 16"} {
		n := &Network{Hosts: []string{"H0", "H1"}, Switches: []string{"S0", "S1"}, Links: []Link{{A: "H0", B: "S0"}, {A: "H1", B: "S1"}}}
		n.addLinks(Link{A: "S0", B: "S1"}, parallel)
		routes, err := n.Routes()
		qt.Assert(t, qt.IsNil(err))
		if err := routes.check(); want == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, want))
		}
	}
}

func TestHostsHaveOneLinkToASwitch(t *testing.T) {
	n := &Network{Hosts: []string{"H0", "H1"}, Switches: []string{"S0"}, Links: []Link{{A: "H0", B: "S0"}, {A: "S0", B: "H0"}, {A: "H1", B: "S0"}}}
	_, err := n.Routes()
	qt.Check(t, qt.ErrorMatches(err, "host H0 has 2 links, want 1"))
	n.Links = []Link{{A: "H0", B: "H1"}}
	_, err = n.Routes()
	qt.Check(t, qt.ErrorMatches(err, "host H0 is linked to host H1, want a switch"))
}

// What a file gives of a topology and a switch beyond those of fig1.
func TestSweepIsRead(t *testing.T) {
	e := parseSweep(t)
	qt.Assert(t, qt.DeepEquals(e.Topology, Topology{
		Kind: "dumbbell", Senders: 4, Receivers: 4, Rate: 40e9, Delay: 5000, Bottleneck: Bottleneck{Rate: 20e9, Delay: 50e3},
	}))
	qt.Assert(t, qt.DeepEquals(e.Switch, Switch{Buffer: 32e6, FlowControl: FlowPFC, PFC: PFC{Off: true}, CBFC: CBFC{Buffer: 280e3, Period: 20e3}}))
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
		{"{kind: dumbbell, bottleneck: {delay: 1us}}", Topology{Senders: 3, Receivers: 3, Bottleneck: Bottleneck{40e9, 1000}}},
		{"{kind: dumbbell, bottleneck: {rate: 1Gbps}}", Topology{Senders: 3, Receivers: 3, Bottleneck: Bottleneck{1e9, 5000}}},
		{"{kind: parking-lot}", Topology{Bottlenecks: 2, Bottleneck: every}},
		{"{kind: leaf-spine}", Topology{Leaves: 2, Spines: 2, HostCount: 2, SpineLinks: uplinks}},
		{"{kind: leaf-spine, spine_links: {rate: 100Gbps}}", Topology{Leaves: 2, Spines: 2, HostCount: 2, SpineLinks: Uplinks{100e9, 5000, 1}}},
		{"{kind: clos}", Topology{Pods: 8, ToRs: 4, Leaves: 2, Spines: 8, HostCount: 16, LeafLinks: uplinks, SpineLinks: uplinks}},
		{"{kind: clos, pods: 1, leaf_links: {parallel: 2, delay: 1us}, failed: [L0-T3]}", Topology{
			Pods: 1, ToRs: 4, Leaves: 2, Spines: 8, HostCount: 16, LeafLinks: Uplinks{40e9, 1000, 2}, SpineLinks: uplinks, Failed: LinkList{"L0-T3"},
		}},
	} {
		t.Run(tc.topology, func(t *testing.T) {
			got := topologyOf(t, tc.topology)
			tc.want.Kind, tc.want.Rate, tc.want.Delay = got.Kind, 40e9, 5000
			qt.Assert(t, qt.DeepEquals(got, tc.want))
		})
	}
}

func TestPortNames(t *testing.T) {
	for _, c := range []struct{ port, node, peer, reverse string }{
		{"S0->S1", "S0", "S1", "S1->S0"},
		{"T3->L0.1", "T3", "L0", "L0->T3.1"},
	} {
		node, peer, ok := SplitPort(c.port)
		qt.Check(t, qt.DeepEquals([]any{node, peer, ok}, []any{c.node, c.peer, true}))
		qt.Check(t, qt.Equals(ReversePort(c.port), c.reverse))
		qt.Check(t, qt.Equals(ReversePort(c.reverse), c.port))
	}
	qt.Check(t, qt.Equals(ReversePort("S0"), "S0"))
	_, _, ok := SplitPort("S0")
	qt.Check(t, qt.IsFalse(ok))
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
	for _, s := range []string{"H2..H15", "H2", "H2..R3", "H15..H2", "H02..H3", "..", "H0..H99999999"} {
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
