// SPDX-License-Identifier: Apache-2.0

package network

import (
	"fmt"
	"regexp"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// shapeOf is a shape with the defaults of its kind but for counts, and with links that are alike.
func shapeOf(kind string, rateBps uint64, counts map[string]int) Shape {
	access := Cable{RateBps: rateBps, DelayNs: 5000}
	s := Shape{
		Kind: kind, Counts: map[string]int{}, Access: access, Bottleneck: access,
		LeafLinks: Trunk{access, 1}, SpineLinks: Trunk{access, 1},
	}
	k, _ := FindKind(kind)
	for _, c := range k.Counts {
		s.Counts[c.Name] = c.Default
		if c.SameAs != "" {
			s.Counts[c.Name] = s.Counts[c.SameAs]
		}
		if n, ok := counts[c.Name]; ok {
			s.Counts[c.Name] = n
		}
	}
	return s
}

// TestKinds: each kind is built with its defaults, and its hosts reach each other.
func TestKinds(t *testing.T) {
	for _, name := range KindNames() {
		_, ok := FindKind(name)
		qt.Assert(t, qt.IsTrue(ok))
		n := Build(shapeOf(name, 40e9, map[string]int{}))
		qt.Check(t, qt.HasLen(n.Tiers()[0].Nodes, len(n.Hosts)), qt.Commentf(name))
		routes, err := n.Routes()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsNil(routes.Validate()), qt.Commentf(name))
	}
}

func TestFig1(t *testing.T) {
	s := shapeOf("fig1", 40e9, map[string]int{"burst_hosts": 2})
	s.Bottleneck = Cable{10e9, 1e3}
	topo := Build(s)
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"H0", "H1", "H2", "H3", "R0", "R1", "S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Hosts, []string{"H0", "H1", "H2", "H3", "R0", "R1"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches, []string{"S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Links, []Link{
		{"H0", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"H1", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"H2", "S1", "", 40e9, 5e3, 0, Disturbance{}},
		{"H3", "S1", "", 40e9, 5e3, 0, Disturbance{}},
		{"R0", "S1", "", 40e9, 5e3, 0, Disturbance{}},
		{"R1", "S1", "", 40e9, 5e3, 0, Disturbance{}},
		{"S0", "S1", "", 10e9, 1e3, 0, Disturbance{}},
	}))
	qt.Assert(t, qt.HasLen(topo.Ports(), 14))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S0->S1"))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S1->S0"))
	qt.Assert(t, qt.HasLen(Build(Shape{Kind: "torus"}).Nodes(), 0))
}

func TestDumbbell(t *testing.T) {
	s := shapeOf("dumbbell", 40e9, map[string]int{"senders": 2, "receivers": 1})
	s.Bottleneck = Cable{10e9, 1e3}
	topo := Build(s)
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"A0", "A1", "B0", "S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches, []string{"S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Links, []Link{
		{"A0", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"A1", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"B0", "S1", "", 40e9, 5e3, 0, Disturbance{}},
		{"S0", "S1", "", 10e9, 1e3, 0, Disturbance{}},
	}))
}

func TestStar(t *testing.T) {
	s := shapeOf("star", 40e9, map[string]int{"hosts": 2})
	s.Bottleneck = Cable{10e9, 1e3}
	topo := Build(s)
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"H0", "H1", "R0", "S0"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches, []string{"S0"}))
	qt.Assert(t, qt.DeepEquals(topo.Links, []Link{
		{"H0", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"H1", "S0", "", 40e9, 5e3, 0, Disturbance{}},
		{"R0", "S0", "", 10e9, 1e3, 0, Disturbance{}},
	}))
}

// TestParkingLot: the pair of H0 crosses all links between switches, and every other pair one of
// its own.
func TestParkingLot(t *testing.T) {
	for n := 1; n <= 30; n++ {
		s := shapeOf("parking-lot", 10e9, map[string]int{"bottlenecks": n})
		s.Bottleneck = Cable{1e9, 2000}
		net := Build(s)
		qt.Assert(t, qt.HasLen(net.Hosts, 2*(n+1)))
		qt.Assert(t, qt.HasLen(net.Switches, n+1))
		routes, err := net.Routes()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(routes.Hops(0, n+1), n+2))
		qt.Check(t, qt.Equals(routes.DelayNs(0, n+1), uint64(2*5000+n*2000)))
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
	s := shapeOf("parking-lot", 10e9, nil)
	s.Bottleneck.RateBps = 1e9
	net := Build(s)
	qt.Check(t, qt.DeepEquals(net.Nodes(), []string{"H0", "H1", "H2", "R0", "R1", "R2", "S0", "S1", "S2"}))
	qt.Check(t, qt.DeepEquals(net.Links, []Link{
		{"H0", "S0", "", 10e9, 5e3, 0, Disturbance{}},
		{"H1", "S0", "", 10e9, 5e3, 0, Disturbance{}},
		{"H2", "S1", "", 10e9, 5e3, 0, Disturbance{}},
		{"R0", "S2", "", 10e9, 5e3, 0, Disturbance{}},
		{"R1", "S1", "", 10e9, 5e3, 0, Disturbance{}},
		{"R2", "S2", "", 10e9, 5e3, 0, Disturbance{}},
		{"S0", "S1", "", 1e9, 5e3, 0, Disturbance{}},
		{"S1", "S2", "", 1e9, 5e3, 0, Disturbance{}},
	}))
}

func TestLeafSpine(t *testing.T) {
	s := shapeOf("leaf-spine", 10e9, map[string]int{"leaves": 2, "spines": 1, "hosts": 2})
	s.SpineLinks = Trunk{Cable{40e9, 1000}, 2}
	net := Build(s)
	qt.Check(t, qt.DeepEquals(net.Nodes(), []string{"H0", "H1", "H2", "H3", "L0", "L1", "S0"}))
	qt.Check(t, qt.DeepEquals(net.Links, []Link{
		{"H0", "L0", "", 10e9, 5e3, 0, Disturbance{}},
		{"H1", "L0", "", 10e9, 5e3, 0, Disturbance{}},
		{"H2", "L1", "", 10e9, 5e3, 0, Disturbance{}},
		{"H3", "L1", "", 10e9, 5e3, 0, Disturbance{}},
		{"L0", "S0", ".0", 40e9, 1e3, 0, Disturbance{}},
		{"L0", "S0", ".1", 40e9, 1e3, 0, Disturbance{}},
		{"L1", "S0", ".0", 40e9, 1e3, 0, Disturbance{}},
		{"L1", "S0", ".1", 40e9, 1e3, 0, Disturbance{}},
	}))
	qt.Check(t, qt.DeepEquals(net.Ports()[8:12], []string{"L0->S0.0", "S0->L0.0", "L0->S0.1", "S0->L0.1"}))
}

// pcnClos is the fabric of PCN, section 7.4.
func pcnClos() Shape {
	s := shapeOf("clos", 10e9, map[string]int{
		"pods": 8, "leaves": 2, "tors": 4, "hosts": 16, "spines": 8,
	})
	s.LeafLinks.RateBps, s.LeafLinks.Parallel, s.SpineLinks.RateBps = 40e9, 2, 40e9
	return s
}

// cpuTime is what this process has had of the CPUs: a busy machine adds nothing to it.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var used unix.Rusage
	qt.Assert(t, qt.IsNil(unix.Getrusage(unix.RUSAGE_SELF, &used)))
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func distinct(names []string) []string {
	return slices.Compact(slices.Sorted(slices.Values(names)))
}

// nodeName is what a node's namespace and devices can be named.
var nodeName = regexp.MustCompile(`^[A-Za-z][A-Za-z0-9]{0,14}$`)

// TestClosOfPCN: the counts of PCN, section 7.4, with as much capacity above each switch as below
// it.
func TestClosOfPCN(t *testing.T) {
	began := cpuTime(t)
	net := Build(pcnClos())
	routes, err := net.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(cpuTime(t)-began < time.Second), qt.Commentf("%s", cpuTime(t)-began))

	nodes := net.Nodes()
	qt.Check(t, qt.HasLen(nodes, 568))
	qt.Check(t, qt.HasLen(net.Links, 768))
	qt.Check(t, qt.HasLen(distinct(nodes), 568))
	qt.Check(t, qt.HasLen(distinct(net.Ports()), 2*768))
	for _, name := range nodes {
		qt.Assert(t, qt.IsTrue(nodeName.MatchString(name)))
	}
	var up, down = map[string]uint64{}, map[string]uint64{}
	for _, l := range net.Links {
		up[l.A] += l.RateBps
		down[l.B] += l.RateBps
		qt.Check(t, qt.Equals(l.DelayNs, 5000))
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
	qt.Check(t, qt.Equals(routes.DelayNs(0, 511), 30_000))
	qt.Check(t, qt.Equals(routes.Hops(0, 1), 2))
}

// TestDeadlockPod is PCN, Fig. 21: in one pod, T0 has lost one leaf and T3 the other. What goes
// between them turns round at T1 and T2, which closes the cycle.
func TestDeadlockPod(t *testing.T) {
	s := shapeOf("clos", 10e9, map[string]int{"pods": 1, "spines": 0})
	s.LeafLinks.RateBps, s.LeafLinks.Parallel = 40e9, 2
	net := Build(s).Without([]string{"L0-T3", "L1-T0"})
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
