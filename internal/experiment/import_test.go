// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/network"
)

// hpccTopology has two hosts at each of two switches, which two links join.
const hpccTopology = `6 2 6
1 4
0 1 10Gbps 1us 0.000000
2 1 10Gbps 1us 0
3 4 25Gbps 0.002ms 0
5 4 10Gbps 1us 0
1 4 100Gbps 1us 0
4 1 40Gbps 1us 0

First line: total node #, switch node #, link #
`

const hpccFlows = `2
2 5 3 100 64000 2.0002
0 3 3 100 1000000 2
`

const trace = `start_ns,src,dst,size_bytes,priority
-1000,H0,H3,1000,0
500000,H5,H0,64000,0
`

const importing = `name: imported
topology: {file: topology.txt}
schemes: [pfc]
duration: 1ms
trace: {file: flow.txt}
`

// folder writes files and returns the path of the first.
func folder(t testing.TB, files ...[2]string) string {
	t.Helper()
	dir := t.TempDir()
	for _, f := range files {
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(filepath.Join(dir, f[0])), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, f[0]), []byte(f[1]), 0o644)))
	}
	return filepath.Join(dir, files[0][0])
}

func TestFilesOfHPCC(t *testing.T) {
	e, err := Load(folder(t, [2]string{"e.yaml", importing},
		[2]string{"topology.txt", hpccTopology}, [2]string{"flow.txt", hpccFlows}))
	qt.Assert(t, qt.IsNil(err))
	n := e.Topology.Network()
	qt.Check(t, qt.DeepEquals(n.Nodes(), []string{"H0", "H2", "H3", "H5", "S1", "S4"}))
	qt.Check(t, qt.DeepEquals(n.Links, []network.Link{
		{A: "H0", B: "S1", RateBps: 10e9, DelayNs: 1000},
		{A: "H2", B: "S1", RateBps: 10e9, DelayNs: 1000},
		{A: "H3", B: "S4", RateBps: 25e9, DelayNs: 2000},
		{A: "H5", B: "S4", RateBps: 10e9, DelayNs: 1000},
		{A: "S1", B: "S4", Suffix: ".0", RateBps: 100e9, DelayNs: 1000},
		{A: "S4", B: "S1", Suffix: ".1", RateBps: 40e9, DelayNs: 1000},
	}))
	qt.Check(t, qt.Equals(e.Topology.Rate, 25e9)) // the line rate
	qt.Check(t, qt.DeepEquals(e.Flows, []Flow{
		{Name: "t0", Group: "t", From: "H2", To: "H5", Start: 200 * Microsecond, Size: 64e3,
			InitialRate: 10e9, LimitRate: 10e9, Traced: true},
		{Name: "t1", Group: "t", From: "H0", To: "H3", Start: 0, Size: 1e6, InitialRate: 10e9,
			LimitRate: 10e9, Traced: true},
	}))
}

// TestSourceHasItsFiles: what a result keeps gives the same experiment, without the files beside
// it.
func TestSourceHasItsFiles(t *testing.T) {
	for _, text := range []string{
		importing,
		strings.TrimSuffix(importing, "\n"),
		importing + "cases:\n  - {name: a}\n  - {name: b, set: {trace.file: sub/other.csv}}\n",
	} {
		path := folder(t, [2]string{"e.yaml", text}, [2]string{"topology.txt", hpccTopology},
			[2]string{"flow.txt", hpccFlows}, [2]string{"sub/other.csv", trace})
		e, err := Load(path)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(strings.HasPrefix(string(e.Source()), text)))
		again, err := Parse("again.yaml", e.Source())
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", e.Source()))
		qt.Check(t, qt.Equals(string(again.Source()), string(e.Source())))
		qt.Check(t, qt.Equals(again.Hash(), e.Hash()))
		for _, c := range e.CaseNames() {
			want, err := e.Case(c)
			qt.Assert(t, qt.IsNil(err))
			got, err := again.Case(c)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(got.Topology.Network().Links, want.Topology.Network().Links))
			qt.Check(t, qt.DeepEquals(got.Flows, want.Flows))
			qt.Check(t, qt.Equals(string(got.Source()), string(e.Source())))
		}
		// another flow is another experiment
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(filepath.Dir(path), "flow.txt"),
			[]byte(strings.Replace(hpccFlows, "64000", "64001", 1)), 0o644)))
		changed, err := Load(path)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Not(qt.Equals(changed.Hash(), e.Hash())))
	}
}

// inline is a file that has the files that it names.
func inline(topology, flows string) string {
	quote := func(text string) string { return strings.ReplaceAll("\n"+text, "\n", "\n    ") }
	return importing + "files:\n  topology.txt: |" + quote(topology) + "\n  flow.txt: |" +
		quote(flows) + "\n"
}

func TestFilesInTheExperiment(t *testing.T) {
	e, err := Parse("e.yaml", []byte(inline(hpccTopology, trace)))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.Flows, []Flow{
		{Name: "t0", Group: "t", From: "H0", To: "H3", Start: -Microsecond, Size: 1000,
			InitialRate: 10e9, LimitRate: 10e9, Traced: true},
		{Name: "t1", Group: "t", From: "H5", To: "H0", Start: 500 * Microsecond, Size: 64e3,
			InitialRate: 10e9, LimitRate: 10e9, Traced: true},
	}))
	qt.Check(t, qt.Equals(string(e.Source()), inline(hpccTopology, trace)))

	// They add to flows that are listed, have their names to themselves, and can be measured.
	more := inline(hpccTopology, trace) +
		"flows: [{name: F, from: H0, to: H2}]\nfigures: {throughput: [F, t1]}\n"
	e, err = Parse("e.yaml", []byte(more))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(flowNames(e), []string{"F", "t", "t0", "t1"}))
	_, err = Parse("e.yaml", []byte(strings.ReplaceAll(more, "name: F,", "name: t0,")))
	qt.Check(t, qt.ErrorMatches(err, `(?s).*duplicate name "t0".*`))
}

func TestErrorsOfFiles(t *testing.T) {
	const flowIn = "64000 2.0002"
	for _, c := range []struct{ old, new, want string }{
		{"100Gbps", "900Gbps", `topology.txt:7: 900Gbps is out of range (hint: 1kbps to 800Gbps)`},
		{"0.002ms", "20s", `topology.txt:5: 20s is out of range (hint: 500ns to 10s)`},
		{"25Gbps", "25GBps", `topology.txt:5: "25GBps" is not a rate such as 100Gbps`},
		{"6 2 6", "7 2 6", `e.yaml:2:18: host H6 has 0 links, want 1`},
		{"5 4 10Gbps", "5 3 10Gbps",
			`e.yaml:2:18: hosts H5 and H3 are linked to each other, and such are in the ` +
				`simulator only (hint: write engine: sim at the top of the file)`},
		{"5 4 10Gbps 1us 0\n    1 4 100Gbps 1us 0\n    4 1 40Gbps",
			"5 4 10Gbps 1us 0\n    1 0 100Gbps 1us 0\n    4 5 40Gbps",
			`e.yaml:2:18: no path leads from H3 to H0`},
		{"{file: topology.txt}", "{file: topology.txt, rate: 1Gbps}",
			`e.yaml:2:38: a topology out of a file has no "rate" (hint: it has file and failed)`},
		{"{file: topology.txt}", "{file: topology.txt, kind: star}",
			`e.yaml:2:38: a topology out of a file has no "kind" (hint: it has file and failed)`},
		{"{file: topology.txt}", "{file: topology.txt, failed: S1-S4}",
			`e.yaml:2:40: no path leads from H3 to H0`},
		{"{file: topology.txt}", "{file: topo.txt}",
			`e.yaml:2:18: "topo.txt" is not among "files" (hint: one of flow.txt, topology.txt)`},
		{"topology: {file: topology.txt}\n", "topology: {file: none.txt}\n" +
			"workload: {cdf: fb-hadoop, load: 0.1}\n",
			`e.yaml:2:18: "none.txt" is not among "files" ` +
				"(hint: one of flow.txt, topology.txt)"},
		{"{file: flow.txt}", "{}", `e.yaml:5:8: "file" is missing (hint: add file:)`},
		{flowIn, "0 2.0002", `flow.txt:2: a flow has 0 bytes: want 1 or more`},
		{"2 5 3", "2 1 3", `flow.txt:2: node 1 is a switch, S1 (hint: flows are between hosts: H0, H2 to H5)`},
		{"2 5 3", "9 5 3", `flow.txt:2: unknown host "H9" (hint: did you mean "H0"?)`},
		{"0 3 3", "3 3 3", `flow.txt:3: flow goes from H3 to itself`},
		{"0 3 3", "0 3 7", `flow.txt:3: priority 4 is out of range (hint: 0 to 3)`},
		{flowIn, "64000 2.001", "flow.txt:2: start 1ms is out of range (hint: -1ms to 999.999us, " +
			"by warmup: and duration:)"},
		{hpccFlowsIndented, strings.Replace(hpccFlowsIndented, "2\n", "-2\n", 1),
			`flow.txt:1: "-2" is not the number of flows: want a whole number from 0 to 16777216`},
	} {
		good := inline(hpccTopology, hpccFlows)
		qt.Assert(t, qt.StringContains(good, c.old))
		_, err := Parse("e.yaml", []byte(strings.Replace(good, c.old, c.new, 1)))
		qt.Assert(t, qt.IsNotNil(err), qt.Commentf(c.want))
		qt.Check(t, qt.Equals(err.Error(), c.want))
	}
	_, err := Parse("e.yaml", []byte(inline(hpccTopology,
		strings.Replace(trace, "-1000", "-1000001", 1))))
	qt.Check(t, qt.ErrorMatches(err,
		`flow.txt:2: start -1.000001ms is out of range \(hint: -1ms to 999.999us, by .*`))
	_, err = Parse("e.yaml", []byte(inline(hpccTopology, strings.Replace(trace, "64000", "x", 1))))
	qt.Check(t, qt.ErrorMatches(err, `flow.txt:3: .*"x".*`))
}

const hpccFlowsIndented = "2\n    2 5 3 100"

// TestManyTraceFlows: only so many have a port, and the first error of a trace is the only one.
func TestManyTraceFlows(t *testing.T) {
	flows := strings.Builder{}
	flows.WriteString("start_ns,src,dst,size_bytes,priority\n")
	for range maxTCPFlows {
		flows.WriteString("0,H0,H3,1000,0\n")
	}
	_, err := Parse("e.yaml", []byte(inline(hpccTopology, flows.String())))
	qt.Assert(t, qt.IsNil(err))
	_, err = Parse("e.yaml", []byte(inline(hpccTopology,
		strings.ReplaceAll(flows.String(), "H3", "H4"))))
	qt.Check(t, qt.ErrorMatches(err, `flow.txt:2: node 4 is a switch, S4 .*`))
	_, err = Parse("e.yaml", []byte(inline(hpccTopology,
		flows.String())+"flows: [{name: F, from: H0, to: H3}]\n"))
	qt.Check(t, qt.ErrorMatches(err, `.*45001 flows are too many \(hint: at most 45000\)`))
	flows.WriteString("0,H0,H3,1000,0\n")
	_, err = Parse("e.yaml", []byte(inline(hpccTopology, flows.String())))
	qt.Check(t,
		qt.ErrorMatches(err, `flow.txt:45002: 45001 flows are too many \(hint: at most 45000\)`))
	_, err = Parse("e.yaml", []byte(inline(hpccTopology, flows.String())+"engine: sim\n"))
	qt.Check(t, qt.IsNil(err)) // the simulator has no ports that could run out
}

func TestFilesThatCantBeRead(t *testing.T) {
	files := [][2]string{{"topology.txt", hpccTopology}, {"flow.txt", hpccFlows}}
	for _, c := range []struct {
		text  string
		files [][2]string
		want  string
	}{
		{importing, files[:1],
			`.*e.yaml:5:15: open .*/flow.txt: no such file or directory \(hint: paths are ` +
				`relative to the experiment's file\)`},
		{importing, [][2]string{files[0], {"flow.txt", "\xff"}},
			`.*e.yaml:5:15: .*/flow.txt is not a text`},
		{importing, [][2]string{files[0], {"flow.txt", "1\n1 0\n"}},
			`.*/flow.txt:2: a flow has 2 values: want 6, .*`},
		{"{name: a, topology: {file: topology.txt}, schemes: [pfc], duration: 1ms, trace: {file: flow.txt}}\n", files, `.*e.yaml: files can't be added to it, as results need \(hint: .*\)`},
		{importing + "...\n", files,
			`.*e.yaml: files can't be added to it, as results need \(hint: .*\)`},
	} {
		_, err := Load(folder(t, append([][2]string{{"e.yaml", c.text}}, c.files...)...))
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
	_, err := Parse("e.yaml", []byte(importing))
	qt.Check(t, qt.ErrorMatches(err, `e.yaml:2:18: "topology.txt" is not in the experiment \(hint: add it under files:\)
e.yaml:5:15: "flow.txt" is not in the experiment \(hint: add it under files:\)`))

	path := folder(t, [2]string{"e.yaml", strings.Replace(importing, "topology.txt",
		"/nowhere/t.txt", 1)}, files[1])
	_, err = Load(path)
	qt.Check(t, qt.ErrorMatches(err, `.*open /nowhere/t.txt: .*`))
}

// TestErrorsAreNotEndless: a file with very many is told of the first.
func TestErrorsAreNotEndless(t *testing.T) {
	file := smallest
	for i := range 2 * config.MaxErrors {
		file += fmt.Sprintf("  - {name: G%d, from: X, to: R0}\n", i)
	}
	_, err := Parse("f.yaml", []byte(file))
	joined, ok := err.(interface{ Unwrap() []error })
	qt.Assert(t, qt.IsTrue(ok))
	qt.Assert(t, qt.HasLen(joined.Unwrap(), config.MaxErrors+1))
	var last *Error
	qt.Assert(t, qt.IsTrue(errors.As(joined.Unwrap()[config.MaxErrors], &last)))
	qt.Check(t, qt.Equals(last.Error(), "f.yaml: 200 more errors (hint: correct these first)"))
}

// Hosts with several links are in the simulator only.
func TestHostsWithSeveralLinks(t *testing.T) {
	const file = "name: x\nengine: sim\ntopology: {file: t.txt}\nschemes: [pfc]\nduration: 1ms\n" +
		"flows: [{name: F, from: H0, to: H1}]\n"
	const topology = "3 1 3\n2\n0 2 10Gbps 1us 0\n0 2 10Gbps 1us 0\n1 2 10Gbps 1us 0\n"
	e, err := Load(folder(t, [2]string{"x.yaml", file}, [2]string{"t.txt", topology}))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsNotNil(e.CheckEngine(EngineKernel)))
	_, err = Load(folder(t, [2]string{"x.yaml", strings.Replace(file, "engine: sim\n", "", 1)},
		[2]string{"t.txt", topology}))
	qt.Check(t, qt.ErrorMatches(err,
		".*host H0 has 2 links, and several are in the simulator only .*engine: sim.*"))
}

// A flow file of ns3-rdma has packets in place of bytes, and a stop.
func TestFlowsOfRDMA(t *testing.T) {
	const flows = "2\n0 3 3 64 2 3\n2 5 3 10 2.0002 2.1\n"
	parseFile := func(keys, flows string) (*Experiment, error) {
		text := strings.Replace(importing, "flow.txt", "flow.txt"+keys, 1)
		return Load(folder(t, [2]string{"mine.yaml", text},
			[2]string{"topology.txt", hpccTopology}, [2]string{"flow.txt", flows}))
	}
	e, err := parseFile(", format: ns3-rdma", flows)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Flows, 2))
	qt.Check(t, qt.Equals(e.Flows[0].Size, 64_000))
	qt.Check(t, qt.Equals(e.Flows[1].Size, 10_000))
	qt.Check(t, qt.Equals(e.Flows[1].Start, 200*Microsecond))
	e, err = parseFile(", format: ns3-rdma, packet: 500B", flows)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(e.Flows[0].Size, 32_000))

	for _, c := range []struct{ keys, flows, want string }{
		{"", "1\n0 3 3 64 2 3\n",
			"(.|\n)*flow.txt:2: each flow has fewer bytes than its start(.|\n)*"},
		{", format: rdma", flows, `(.|\n)*unknown format "rdma"(.|\n)*`},
		{", packet: 500B", flows, `(.|\n)*"packet" is for flow files of ns3-rdma(.|\n)*`},
		{", format: ns3-rdma, packet: 10KB", flows, `(.|\n)*10KB is out of range(.|\n)*`},
		{", format: ns3-rdma", trace, `(.|\n)*the file is a trace in CSV(.|\n)*`},
		// 1000 packets of 1000 bytes need 320 us at 25 Gbit/s
		{", format: ns3-rdma", "1\n3 0 3 1000 2 2.00031\n",
			`(.|\n)*flow.txt:2: the flow stops after 310us, before its 1000 packets(.|\n)*`},
	} {
		_, err := parseFile(c.keys, c.flows)
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.keys))
	}
	_, err = parseFile(", format: ns3-rdma", "1\n3 0 3 1000 2 2.00033\n")
	qt.Check(t, qt.IsNil(err))
}
