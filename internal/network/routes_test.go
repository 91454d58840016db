// SPDX-License-Identifier: Apache-2.0

package network

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestRoutesAreAllShortestPaths holds routes of random networks against distances found in another
// way.
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
	n.addHosts(Cable{DelayNs: 1000}, "S0", "H", 0, 1)
	for i := range 4 {
		n.addHosts(Cable{DelayNs: 1000}, n.Switches[rng.IntN(len(n.Switches))], "H", i+1, 1)
	}
	for range 1 + rng.IntN(10) {
		a, b := rng.IntN(len(n.Switches)), rng.IntN(len(n.Switches))
		if a != b {
			n.addLinks(Link{A: n.Switches[a], B: n.Switches[b], DelayNs: 1000}, 1+rng.IntN(3))
		}
	}
	return n
}

const far = 1 << 20

// floydWarshall counts the links between all nodes. Hosts have one link, so no way leads through
// them.
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
		{"H0", "S0", "", 1e9, 1, 0, Disturbance{}}, {"H1", "S3", "", 1e9, 2, 0, Disturbance{}},
		{"S0", "S1", "", 1e9, 10, 0, Disturbance{}}, {"S1", "S3", "", 1e9, 1, 0, Disturbance{}},
		{"S0", "S2", "", 1e9, 5, 0, Disturbance{}}, {"S3", "S2", "", 1e9, 100, 0, Disturbance{}},
		{"S0", "S1", "", 1e9, 20, 0, Disturbance{}}, {"S1", "S3", "", 1e9, 2, 0, Disturbance{}},
	}}
	routes, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(routes.DelayNs(0, 1), 1+5+100+2))
	qt.Check(t, qt.Equals(routes.DelayNs(1, 0), 1+5+100+2))
}

// TestWidestPaths: a switch takes 64 paths, and no more.
func TestWidestPaths(t *testing.T) {
	for parallel, want := range map[int]string{MaxPaths: "", MaxPaths + 1: "65 shortest paths lead to H. from one switch, want at most 64"} {
		n := &Network{Hosts: []string{"H0", "H1"}, Switches: []string{"S0", "S1"}, Links: []Link{{A: "H0", B: "S0"}, {A: "H1", B: "S1"}}}
		n.addLinks(Link{A: "S0", B: "S1"}, parallel)
		routes, err := n.Routes()
		qt.Assert(t, qt.IsNil(err))
		if err := routes.Validate(); want == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, want))
		}
	}
}

func TestHostsHaveLinks(t *testing.T) {
	n := &Network{Hosts: []string{"H0", "H1"}, Switches: []string{"S0"},
		Links: []Link{{A: "H1", B: "S0"}}}
	_, err := n.Routes()
	qt.Check(t, qt.ErrorMatches(err, "host H0 has 0 links, want 1"))
}

// TestHostsWithSeveralLinks: H0 and H1 are at S0 and at S1, H2 at S1, and H3 behind it at S2. Paths
// lead by the links that are nearest.
func TestHostsWithSeveralLinks(t *testing.T) {
	n := &Network{
		Hosts: []string{"H0", "H1", "H2", "H3"}, Switches: []string{"S0", "S1", "S2"},
		Links: []Link{
			{A: "H0", B: "S0", DelayNs: 1}, {A: "H0", B: "S1", DelayNs: 2},
			{A: "H1", B: "S0", DelayNs: 4}, {A: "H1", B: "S1", DelayNs: 8},
			{A: "H2", B: "S1", DelayNs: 16}, {A: "H3", B: "S2", DelayNs: 32},
			{A: "S0", B: "S1", DelayNs: 64}, {A: "S1", B: "S2", DelayNs: 128},
		},
	}
	routes, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNil(routes.Validate()))
	names := func(ports []int) []string {
		var list []string
		for _, id := range ports {
			list = append(list, n.Ports()[id])
		}
		return list
	}
	const s0, s1 = 4, 5
	for _, c := range []struct {
		from, to, hops int
		delayNs        uint64
		ports          []string
	}{
		{0, 1, 2, 2 + 8, []string{"H0->S0", "H0->S1"}},
		{0, 2, 2, 2 + 16, []string{"H0->S1"}},
		{2, 0, 2, 16 + 2, []string{"H2->S1"}},
		{0, 3, 3, 2 + 128 + 32, []string{"H0->S1"}},
	} {
		qt.Check(t, qt.DeepEquals(names(routes.HostPorts(c.from, c.to)), c.ports))
		qt.Check(t, qt.Equals(routes.Hops(c.from, c.to), c.hops))
		qt.Check(t, qt.Equals(routes.DelayNs(c.from, c.to), c.delayNs))
		qt.Check(t, qt.HasLen(routes.Path(c.from, c.to), c.hops))
	}
	qt.Check(t, qt.DeepEquals(names(routes.Ports(s0, 1)), []string{"S0->H1"}))
	qt.Check(t, qt.DeepEquals(names(routes.Ports(s0, 2)), []string{"S0->S1"}))
	qt.Check(t, qt.DeepEquals(names(routes.Ports(6, 0)), []string{"S2->S1"}))

	down := routes.Without(map[int]bool{n.LinksNamed("H1-S1")[0]: true})
	qt.Check(t, qt.DeepEquals(names(down.HostPorts(0, 1)), []string{"H0->S0"}))
	qt.Check(t, qt.DeepEquals(names(down.Ports(s1, 1)), []string{"S1->S0"}))
	qt.Check(t, qt.DeepEquals(names(down.HostPorts(1, 2)), []string{"H1->S0"}))
}

// TestPath: a path has as many links as there are hops, and ends at the host.
func TestPath(t *testing.T) {
	s := shapeOf("clos", 40e9, map[string]int{"pods": 2, "tors": 2, "hosts": 2, "spines": 2})
	s.LeafLinks.RateBps = 100e9
	routes, err := Build(s).Routes()
	qt.Assert(t, qt.IsNil(err))
	for to, want := range map[int]string{1: "H0-T0 H1-T0", 3: "H0-T0 T0-L0 T1-L0 H3-T1", 7: "H0-T0 T0-L0 L0-S0 L2-S0 T3-L2 H7-T3"} {
		var names []string
		for _, l := range routes.Path(0, to) {
			names = append(names, l.Name())
		}
		qt.Check(t, qt.HasLen(names, routes.Hops(0, to)), qt.Commentf("%v, want %s", names, want))
		qt.Check(t, qt.Equals(strings.Join(names, " "), want))
	}
}

// TestLongest holds the longest path against those of all pairs of hosts.
func TestLongest(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	for range 200 {
		n := randomNetwork(rng)
		for i := range n.Links {
			n.Links[i].DelayNs = uint64(1 + rng.IntN(50))
		}
		routes, err := n.Routes()
		qt.Assert(t, qt.IsNil(err))
		if routes.Validate() != nil {
			continue // some have no path, which no file may have
		}
		var want uint64
		for from := range n.Hosts {
			for to := range n.Hosts {
				if from != to {
					want = max(want, routes.DelayNs(from, to))
				}
			}
		}
		_, got := routes.Longest()
		qt.Assert(t, qt.Equals(got, want))
	}
	routes, err := Build(pcnClos()).Routes()
	qt.Assert(t, qt.IsNil(err))
	hops, delayNs := routes.Longest()
	qt.Check(t, qt.DeepEquals([]any{hops, delayNs}, []any{6, uint64(30_000)}))
}

// TestRoutesWithoutLinks: routes while links are down are those of a network without them, with the
// numbers of the ports as they were. A host that is cut off has none.
func TestRoutesWithoutLinks(t *testing.T) {
	n := Build(shapeOf("leaf-spine", 40e9, map[string]int{"leaves": 2, "spines": 2, "hosts": 1}))
	routes, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	leaf, other := len(n.Hosts), 1 // L0, and the host at L1
	qt.Assert(t, qt.HasLen(routes.Ports(leaf, other), 2))

	down := map[int]bool{n.LinksNamed("S1-L0")[0]: true}
	there := routes.Without(down).Ports(leaf, other)
	qt.Assert(t, qt.HasLen(there, 1))
	qt.Check(t, qt.Equals(n.Ports()[there[0]], "L0->S0"))
	qt.Check(t, qt.DeepEquals(routes.Without(map[int]bool{}).Ports(leaf, other),
		routes.Ports(leaf, other)))

	cut := routes.Without(map[int]bool{n.LinksNamed("H1-L1")[0]: true})
	qt.Check(t, qt.HasLen(cut.Ports(leaf, other), 0))
	qt.Check(t, qt.HasLen(cut.Ports(leaf+1, other), 0))
	qt.Check(t, qt.HasLen(cut.Ports(leaf, 0), 1))
	qt.Check(t, qt.HasLen(n.LinksNamed("L0-L1"), 0))
}

// In BCube hosts have links to several switches, which have none to each other.
func TestPathsThroughHosts(t *testing.T) {
	n := &Network{Hosts: []string{"H0", "H1", "H2"}, Switches: []string{"S0", "S1"}}
	for _, l := range [][2]string{{"H0", "S0"}, {"H1", "S0"}, {"H1", "S1"}, {"H2", "S1"}} {
		n.Links = append(n.Links, Link{A: l[0], B: l[1], RateBps: 1e9, DelayNs: 1000})
	}
	r, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(r.Validate()))
	qt.Check(t, qt.IsTrue(r.Relay()))
	qt.Check(t, qt.Equals(r.Hops(0, 1), 2))
	qt.Check(t, qt.Equals(r.Hops(0, 2), 4))
	qt.Check(t, qt.Equals(r.DelayNs(2, 0), 4000))
	var path []string
	for _, l := range r.Path(0, 2) {
		path = append(path, l.Name())
	}
	qt.Check(t, qt.DeepEquals(path, []string{"H0-S0", "H1-S0", "H1-S1", "H2-S1"}))
	// without H1's second link, nothing leads to H2
	cut := r.Without(map[int]bool{2: true})
	qt.Check(t, qt.Equals(cut.Hops(0, 2), 0))
	qt.Check(t, qt.HasLen(cut.Ports(1, 2), 0))
	qt.Check(t, qt.Equals(cut.Hops(0, 1), 2))

	// hosts that need nobody to forward do not
	n.Links = append(n.Links, Link{A: "S0", B: "S1", RateBps: 1e9, DelayNs: 1000})
	r, err = n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(r.Relay()))
	qt.Check(t, qt.Equals(r.Hops(0, 2), 3))
}
