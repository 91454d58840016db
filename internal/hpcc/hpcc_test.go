// SPDX-License-Identifier: Apache-2.0

package hpcc

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
)

// topology has two hosts at each of two switches, and a comment.
const topology = `6 2 5
4 5
0 4 100Gbps 0.001ms 0
1 4 25Gb/s 1us 0.000001
2 5 10000000000bps 500ns 0
3 5 1e9 1e-6 0
4 5 0.4Tbps 1000ns 0

First line: total node #, switch node #, link #
`

func TestTopology(t *testing.T) {
	got, err := ParseTopology(topology)
	qt.Assert(t, qt.IsNil(err))
	want := &Topology{
		Switch: []bool{false, false, false, false, true, true},
		Links: []Link{
			{0, 4, 100e9, 1000, 0, 3}, {1, 4, 25e9, 1000, 1e-6, 4}, {2, 5, 10e9, 500, 0, 5},
			{3, 5, 1e9, 1000, 0, 6}, {4, 5, 400e9, 1000, 0, 7},
		},
	}
	qt.Check(t, qt.DeepEquals(got, want))

	// As the simulator, by words: lines do not matter, but in errors.
	got, err = ParseTopology(strings.Join(strings.Fields(topology), " "))
	qt.Assert(t, qt.IsNil(err))
	for i := range want.Links {
		want.Links[i].Line = 1
	}
	qt.Check(t, qt.DeepEquals(got, want))
	got, err = ParseTopology("2 0 1\n\n0 1 1Gbps 1us 0")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, &Topology{Switch: make([]bool, 2),
		Links: []Link{{0, 1, 1e9, 1000, 0, 3}}}))
}

// flows are three, of which two start together.
const flows = `3
2 1 3 100 200000000 2
0 3 3 100 1 2.000000001
1 0 0 65535 1500 2.5

First line: # of flows
`

func TestFlows(t *testing.T) {
	got, surplus, err := ParseFlows(flows)
	qt.Check(t, qt.Equals(surplus, 0))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, []Flow{
		{2, 1, 3, 200_000_000, 2_000_000_000, 2}, {0, 3, 3, 1, 2_000_000_001, 3},
		{1, 0, 0, 1500, 2_500_000_000, 4},
	}))
	got, _, err = ParseFlows("1\n0 1 3 100 2 2\n") // 2 bytes at 2 s: no flow of ns3-rdma
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, []Flow{{0, 1, 3, 2, 2_000_000_000, 2}}))
	got, _, err = ParseFlows("0\n")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(got, 0))
}

// As in the simulator, the number of flows rules, and further flows are left out.
func TestSurplusFlows(t *testing.T) {
	got, surplus, err := ParseFlows(strings.Replace(flows, "3\n2", "2\n2", 1))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(got, 2))
	qt.Check(t, qt.Equals(surplus, 4))
}

// A file may have further links, which are left out: HPCC's own has.
func TestSurplusLinks(t *testing.T) {
	got, err := ParseTopology(strings.Replace(topology, "6 2 5", "6 2 4", 1))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(got.Links, 4))
	qt.Check(t, qt.Equals(got.Surplus, 7))
}

// ConWeave's flows have no port.
func TestFlowsWithoutPorts(t *testing.T) {
	got, _, err := ParseFlows("2\n2 1 3 200000 2\n0 3 3 1 2.000000001\n")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, []Flow{
		{2, 1, 3, 200_000, 2_000_000_000, 2}, {0, 3, 3, 1, 2_000_000_001, 3},
	}))
}

// The first lines of simulators that derive from HPCC's: PowerTCP's, Reverie's and SimAI's.
func TestTopologiesOfOthers(t *testing.T) {
	want, err := ParseTopology(topology)
	qt.Assert(t, qt.IsNil(err))
	for _, first := range []string{
		"6 2 2 5", "6 2 2 5 25000000000 100000000000.0", "6 2 1 1 5 H100",
	} {
		got, err := ParseTopology(strings.Replace(topology, "6 2 5", first, 1))
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", first))
		qt.Check(t, qt.DeepEquals(got, want))
	}
}

// stopFlows are two of ns3-rdma: packets, start and stop.
const stopFlows = `2
1 2 3 64 2 3
2 0 1 10 2.5 2.500001
remarks
`

func TestStopFlows(t *testing.T) {
	got, err := ParseStopFlows(stopFlows)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(got, []StopFlow{
		{Flow{1, 2, 3, 0, 2_000_000_000, 2}, 64, 3_000_000_000},
		{Flow{2, 0, 1, 0, 2_500_000_000, 3}, 10, 2_500_001_000},
	}))
	// They are not taken for HPCC's, in which the first would have 2 bytes at 3 s.
	_, _, err = ParseFlows("1\n1 2 3 64 2 3\n")
	qt.Check(t, qt.ErrorMatches(err,
		"2: each flow has fewer bytes .* trace: .format: ns3-rdma. .*"))
	for _, c := range []struct{ old, new, want string }{
		{"64 2 3", "0 2 3", "2: a flow has 0 packets: want 1 or more"},
		{"64 2 3", "64 3 3", "2: a flow stops before it has started: .*"},
		{"64 2 3", "64 2", `3: "2" is not .*|3: .*`},
		{"2\n1 2", "1\n1 2", "3: there is one flow more than the 1 that the file says"},
		{"2\n1 2", "3\n1 2", `4: "remarks" is not the number of a source: .*`},
	} {
		_, err := ParseStopFlows(strings.Replace(stopFlows, c.old, c.new, 1))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}

func TestTopologyErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{topology, "", "1: the file ends, want the number of nodes"},
		{"6 2 5", "six 2 5",
			`1: "six" is not the number of nodes: want a whole number from 0 to 1048576`},
		{"6 2 5", "-6 2 5", `1: "-6" is not the number of nodes: .*`},
		{"6 2 5", "0 2 5", `1: a topology has 0 nodes: want 1 or more`},
		{topology, "ENABLE_QCN 1\n", `1: "ENABLE_QCN" begins no .*: this is a configuration: .*`},
		{topology, "FLOW_FILE f.txt\n", `1: "FLOW_FILE" begins no .*: this is a configuration: .*`},
		{topology, "3\n0 1 2\n", `1: the first line has fewer than 3 values: .*list of nodes.*`},
		{"0 4 100Gbps 0.001ms 0", "0 4 100 600", `3: a link has 4 values: want 5, .*`},
		{"0 4 100Gbps 0.001ms 0", "0 4 100Gbps 0.001ms 0 7", `3: a link has 6 values: want 5, .*`},
		{"6 2 5", "6 7 5", `1: "7" is not the number of switches: want a whole number from 0 to 6`},
		{"6 2 5", "6 2 1e9", `1: "1e9" is not the number of links: .*`},
		{"6 2 5", "6 2 99",
			`9: "First" is not the number of a node: want a whole number from 0 to 5`},
		{"4 5\n0", "4 6\n0",
			`2: "6" is not the number of a switch: want a whole number from 0 to 5`},
		{"4 5\n0", "4 4\n0", `2: node 4 is listed as a switch twice`},
		{"0 4 100Gbps", "0 6 100Gbps", `3: "6" is not the number of a node: .*`},
		{"0 4 100Gbps", "4 4 100Gbps", `3: a link connects node 4 to itself`},
		{"100Gbps", "100GBps", `3: "100GBps" is not a rate such as 100Gbps`},
		{"100Gbps", "Gbps", `3: "Gbps" is not a rate .*`},
		{"100Gbps", "-1Gbps", `3: "-1Gbps" is not a rate .*`},
		{"100Gbps", "1e300Gbps", `3: "1e300Gbps" is not a rate .*`},
		{"500ns", "5e9", `5: "5e9" is not a delay such as 1us`}, // seconds, and too many
		{"500ns", "500min", `5: "500min" is not a delay such as 1us`},
		{"0.000001", "0.6", `4: "0.6" is not an error rate: want a share of packets, 0 to 0.5`},
		{"0.000001", "none", `4: "none" is not an error rate: want .*`},
		{" 1000ns 0\n\nFirst line: total node #, switch node #, link #\n", "",
			`7: the file ends, want a delay such as 1us`},
	} {
		qt.Assert(t, qt.StringContains(topology, c.old))
		_, err := ParseTopology(strings.Replace(topology, c.old, c.new, 1))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}

func TestFlowsErrors(t *testing.T) {
	for _, c := range []struct{ old, new, want string }{
		{flows, "", "1: the file ends, want the number of flows"},
		{"3\n2", "5\n2", `6: "First" is not the number of a source: .*`},
		{"3\n2", "0\n2", `1: the file says that it has 0 flows, and has lines of numbers: .*`},
		{flows, "\nHYBRID_TRANSFORMER_FWD_IN_BCKWD pp: 1\n2\n",
			`2: "HYBRID_TRANSFORMER_FWD_IN_BCKWD" begins no .*: this is a workload of SimAI: .*`},
		{"2 1 3", "x 1 3", `2: "x" is not the number of a source: .*`},
		{"2 1 3", "2 -1 3", `2: "-1" is not the number of a destination: .*`},
		{"2 1 3", "2 1 8", `2: "8" is not a priority group: want a whole number from 0 to 7`},
		{"65535", "65536", `4: the fourth value is 65536, and a destination port is 65535 at ` +
			`most: is this a file of ns3-rdma .*`},
		{"100 1 2", "100 0 2", `3: a flow has 0 bytes: want 1 or more`},
		{"1500", "1.5e3", `4: "1.5e3" is not a size in bytes: .*`},
		{"2.5", "-2.5", `4: "-2.5" is not a start in seconds`},
		{"2.5", "2.5ms", `4: "2.5ms" is not a start in seconds`},
		{"2.5", "NaN", `4: "NaN" is not a start in seconds`},
		{flows, "1\n1 2 3 64 2 3 7\n", `2: a flow has 7 values: want 6, .*`},
		{flows, "1\n1 2 3 64 2 3\n", `2: each flow has fewer bytes than its start has seconds: ` +
			`is this a file of ns3-rdma or DCQCN-TCD, .*`},
	} {
		qt.Assert(t, qt.StringContains(flows, c.old))
		_, _, err := ParseFlows(strings.Replace(flows, c.old, c.new, 1))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}

// checkError: an error is at a line of the text.
func checkError(t *testing.T, text string, err error) {
	t.Helper()
	var at *config.Error
	qt.Assert(t, qt.IsTrue(errors.As(err, &at)))
	qt.Assert(t, qt.IsTrue(at.Line >= 1 && at.Line <= 1+strings.Count(text, "\n")),
		qt.Commentf("%v", err))
}

// FuzzTopology: what is accepted has links between its nodes.
func FuzzTopology(f *testing.F) {
	f.Add(topology)
	f.Add("2 0 1\n\n0 1 1Gbps 1us 0")
	f.Add("0 0 0")
	f.Add("1 1 1 0 0 0 1 1 1")
	f.Fuzz(func(t *testing.T, text string) {
		topo, err := ParseTopology(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		for _, l := range topo.Links {
			qt.Assert(t, qt.IsTrue(l.A != l.B && min(l.A, l.B) >= 0 &&
				max(l.A, l.B) < len(topo.Switch)))
			qt.Assert(t, qt.IsTrue(max(l.RateBps, l.DelayNs) <= maxBaseUnits && l.Line >= 1))
		}
	})
}

// FuzzFlows: what is accepted has sizes, and times that can be counted in ns.
func FuzzFlows(f *testing.F) {
	f.Add(flows)
	f.Add("1 0 1 3 100 1 1e-9")
	f.Add("1 0 1 3 100 1 0x1p-4")
	f.Fuzz(func(t *testing.T, text string) {
		list, _, err := ParseFlows(text)
		if err != nil {
			checkError(t, text, err)
			return
		}
		for _, flow := range list {
			qt.Assert(t, qt.IsTrue(flow.From >= 0 && flow.To >= 0 && flow.SizeBytes > 0 &&
				flow.StartNs <= maxBaseUnits && flow.Line >= 1))
		}
	})
}
