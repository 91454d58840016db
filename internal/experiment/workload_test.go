// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/workload"
)

// loaded has a workload with all its keys.
const loaded = `name: loaded
topology: {kind: leaf-spine, hosts: 4, rate: 10Gbps}
schemes: [pcn]
warmup: 1ms
duration: 4ms
seed: 3
workload: {name: web, cdf: fb-hadoop, from: H0..H3, to: [H1, H4..H5], load: 0.5, incast: 1..3, same_size: true, classes: [1KB, 10KB], start: -1ms, until: 2ms}
expect: [{what: quick, metric: slowdown_p99, flows: [web], sizes: ..10KB, max: 10}]
`

func sizes(t *testing.T, name string) *workload.CDF {
	t.Helper()
	c, err := workload.NamedCDF(name)
	qt.Assert(t, qt.IsNil(err))
	return c
}

// sameFlows: the flows from one on are those of a spec, in its order.
func sameFlows(t *testing.T, got []Flow, name string, s workload.Spec) {
	t.Helper()
	want, err := s.Generate()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(want) > 3), qt.Commentf("%d flows", len(want)))
	qt.Assert(t, qt.HasLen(got, len(want)))
	for i, f := range want {
		qt.Assert(t, qt.Equals(got[i], Flow{
			Name: fmt.Sprintf("%s%d", name, i), Group: name, From: f.Src, To: f.Dst,
			Priority: int(f.Priority), Start: Duration(f.StartNs), Size: Bytes(f.SizeBytes),
			InitialRate: 10e9, LimitRate: 10e9, Traced: true,
		}))
	}
}

// TestWorkload: the flows are those that package workload makes up, and so does `pcn workload`.
func TestWorkload(t *testing.T) {
	e, err := Parse("e.yaml", []byte(loaded))
	qt.Assert(t, qt.IsNil(err))
	s := workload.Spec{
		Sizes: sizes(t, "fb-hadoop"), Senders: []string{"H0", "H1", "H2", "H3"},
		Receivers: []string{"H1", "H4", "H5"}, Load: 0.5, RateBps: 10e9,
		MinIncast: 1, MaxIncast: 3, SameSize: true, ClassBytes: []uint64{1000, 10_000},
		FromNs: -1e6, ToNs: 2e6, Seed: 3,
	}
	sameFlows(t, e.Flows, "web", s)

	// what the command line changes makes other flows
	seed, shorter := uint64(4), Duration(1e6)
	o, err := e.With(Changes{Seed: &seed})
	qt.Assert(t, qt.IsNil(err))
	s.Seed = 4
	sameFlows(t, o.Flows, "web", s)
	o, err = o.With(Changes{Duration: &shorter})
	qt.Assert(t, qt.IsNil(err))
	s.ToNs = 1e6
	sameFlows(t, o.Flows, "web", s)
	s.Seed, s.ToNs = 3, 2e6
	sameFlows(t, e.Flows, "web", s) // as it was

	// what is traced is replayed
	flows := e.TracedFlows()
	var text strings.Builder
	qt.Assert(t, qt.IsNil(workload.WriteTrace(&text, flows)))
	replay := loaded[:strings.Index(loaded, "workload:")] +
		"trace: {file: trace.csv}\nfiles: {trace.csv: \"" +
		strings.ReplaceAll(text.String(), "\n", "\\n") + "\"}\n"
	r, err := Parse("replay.yaml", []byte(replay))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(r.TracedFlows(), flows))
}

func TestWorkloadDefaults(t *testing.T) {
	file := loaded[:strings.Index(loaded, "workload:")] +
		"workload: {cdf: web-search, mean_rate: 8Gbps}\n"
	e, err := Parse("e.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	hosts := e.Topology.Network().Hosts
	s := workload.Spec{Sizes: sizes(t, "web-search"), Senders: hosts, Receivers: hosts, Load: 0.8,
		RateBps: 10e9, MinIncast: 1, MaxIncast: 1, ToNs: 4e6, Seed: 3}
	sameFlows(t, e.Flows, "w", s)
}

// TestSeveralWorkloads: each has a name and a seed of its own, and cases change them.
func TestSeveralWorkloads(t *testing.T) {
	file := loaded[:strings.Index(loaded, "workload:")] + `workload:
  - {name: a, cdf: fb-hadoop, from: H0, to: H1, load: 0.5}
  - {name: b, cdf: fb-hadoop, from: H0, to: H1, load: 0.5}
cases: [{name: as-it-is}, {name: full, set: {workload.b.load: 0.9}}]
`
	e, err := Parse("e.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	s := workload.Spec{Sizes: sizes(t, "fb-hadoop"), Senders: []string{"H0"},
		Receivers: []string{"H1"}, Load: 0.5, RateBps: 10e9, MinIncast: 1, MaxIncast: 1, ToNs: 4e6,
		Seed: 3}
	a, err := s.Generate()
	qt.Assert(t, qt.IsNil(err))
	sameFlows(t, e.Flows[:len(a)], "a", s)
	s.Seed = 1<<32 + 3
	sameFlows(t, e.Flows[len(a):], "b", s)
	full, err := e.Case("full")
	qt.Assert(t, qt.IsNil(err))
	s.Load = 0.9
	sameFlows(t, full.Flows[len(a):], "b", s)
}

// A load is of each receiver's own link, or of each sender's: with links of several rates the shares
// are the same, and the file's reader is told what it offers.
func TestLoadOfEachEnd(t *testing.T) {
	const text = `
name: mixed
engine: sim
topology: {file: topology.txt}
workload: {cdf: fb-hadoop, load: 0.5, from: H0..H2, to: H3%s}
schemes: [pfc]
duration: 10ms
files:
  topology.txt: |
    6 1 5
    5
    0 5 10Gbps 0.005ms 0
    1 5 10Gbps 0.005ms 0
    2 5 20Gbps 0.005ms 0
    3 5 100Gbps 0.005ms 0
    4 5 400Gbps 0.005ms 0
`
	for add, want := range map[string]string{
		"": "offers 50Gbps to H3, 50% of its link, 12.5Gbps from each of 3 hosts, such as H0, " +
			"125% of its link; by this seed ",
		", load_of: receivers": "workload w offers 50Gbps to H3, 50% of its link, ",
		", load_of: senders": "offers 20Gbps to H3, 20% of its link, 5Gbps from each of 3 hosts, " +
			"such as H0, 50% of its link; by this seed ",
	} {
		e, err := Parse("e.yaml", fmt.Appendf(nil, text, add))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.HasLen(e.Offers(), 1))
		qt.Check(t, qt.StringContains(e.Offers()[0], want))
		bytes := Bytes(0)
		for _, f := range e.Flows {
			bytes += f.Size
		}
		qt.Check(t, qt.StringContains(e.Offers()[0], fmt.Sprintf("%d flows of %s in all",
			len(e.Flows), Quantity{Value: float64(bytes), Unit: UnitBytes})))
	}
}

func TestErrorsOfWorkloads(t *testing.T) {
	testErrors(t, loaded, []spoilt{
		{"no distribution", "cdf: fb-hadoop, ", "", "{name: web",
			`"cdf" is missing (hint: add cdf:)`},
		{"unknown distribution", "fb-hadoop", "fb-hadop", "fb-hadop",
			`unknown distribution of sizes "fb-hadop" (hint: did you mean "fb-hadoop"?)`},
		{"no file", "fb-hadoop", "mine.txt", "mine.txt",
			`"mine.txt" is not in the experiment (hint: add it under files:)`},
		{"no load", "load: 0.5, ", "", "{name: web", `"load" is missing (hint: add load:)`},
		{"no share", "load: 0.5", "load: 0", "0",
			`0 is out of range (hint: 0.0000152587890625 to 100)`},
		{"two loads", "load: 0.5", "load: 0.5, mean_rate: 5Gbps", "5Gbps",
			`"load" and "mean_rate" are both given (hint: keep one of them)`},
		{"unknown end", "load: 0.5", "load: 0.5, load_of: sender", "sender,",
			`unknown end "sender" (hint: did you mean "senders"?)`},
		{"end of a rate", "load: 0.5", "mean_rate: 5Gbps, load_of: senders", "senders,",
			`"load_of" needs "load" (hint: write load: 0.5)`},
		{"unknown sender", "from: H0..H3", "from: H0..H8", "H0..H8",
			`unknown host "H8" (hint: did you mean "H0"?)`},
		{"receiver twice", "[H1,", "[H1, H1,", "[H1, H1",
			`duplicate host "H1" (hint: keep one of them)`},
		{"incast", "1..3", "3..1", "3..1", `incast of 3 to 1 is none (hint: write 14 or 1..15)`},
		{"no incast", "1..3", "some", "some",
			`"some" is not a number of hosts (hint: write 14 or 1..15)`},
		{"too much incast", "1..3", "1..4", "1..4",
			`3 hosts can send to H1: want 4 for the incast`},
		{"early", "start: -1ms", "start: -2ms", "-2ms",
			`-2ms is out of range (hint: -1ms to 3.999999ms)`},
		{"late", "until: 2ms", "until: 5ms", "5ms",
			`5ms is out of range (hint: -999.999us to 4ms)`},
		{"too many", "fb-hadoop, from: H0..H3, to: [H1, H4..H5], load: 0.5",
			"fb-key-value, from: H0..H3, to: [H1, H4..H5], load: 9", "9",
			`2.96e+05 flows are too many (hint: at most 45000)`},
		{"classes", "classes: [1KB, 10KB]", "classes: [1KB, 1KB]", "1KB]",
			`1KB does not grow (hint: write [10KB, 100KB, 1MB])`},
		{"priorities", "classes: [1KB, 10KB]", "classes: [1KB, 2KB, 3KB, 4KB]", "[1KB",
			`4 sizes make 5 priorities (hint: at most 4)`},
		{"name with a number", "name: web", "name: web2", "web2",
			`"web2" can't be a name (hint: letters, "_" and "-", as its flows are numbered)`},
		{"sizes", "..10KB", "10KB", "10KB",
			`"10KB" is not a range of sizes (hint: write 10KB..100KB, ..10KB or 1MB..)`},
		{"no size", "..10KB", "10KB..1KB", "10KB..1KB",
			`no size is in "10KB..1KB" (hint: write 10KB..100KB, ..10KB or 1MB..)`},
		{"sizes of what has none", "slowdown_p99, flows: [web]", "pause_depth", "..10KB",
			`metric "pause_depth" does not take "sizes" (hint: remove it)`},
		{"tiers of what has none", "sizes: ..10KB", "tiers: [leaf]", "[leaf]",
			`metric "slowdown_p99" does not take "tiers" (hint: remove it)`},
		{"unknown tier", "slowdown_p99, flows: [web], sizes: ..10KB",
			"tier_pause_count, tiers: [Leaf]", "Leaf",
			`unknown tier of the topology "Leaf" (hint: did you mean "leaf"?)`},
		{"completed by all, of what is not of times", "expect:",
			"compare: [{what: all, metric: completed, flows: [web], completed_by_all: true, " +
				"bounds: {pfc: {min: 1}}}]\nexpect:", "true, bounds",
			`metric "completed" does not measure completion times (hint: remove it)`},
		{"same name", "expect:", "flows: [{name: web, from: H0, to: H1}]\nexpect:", "web",
			`duplicate name "web" (hint: give each flow and burst its own name)`},
	})
}

// TestErrorsInDistributions: they have the file and the line of the distribution.
func TestErrorsInDistributions(t *testing.T) {
	text := strings.Replace(loaded, "fb-hadoop", "mine.txt", 1)
	_, err := Load(folder(t, [2]string{"e.yaml", text}, [2]string{"mine.txt", "0 0\n5 x\n"}))
	qt.Assert(t,
		qt.ErrorMatches(err, `.*/mine\.txt:2: invalid value "x": want a number from 0 to 1e\+15`))
	e, err := Load(folder(t, [2]string{"e.yaml", text}, [2]string{"mine.txt", "1000 0\n2000 1\n"}))
	qt.Assert(t, qt.IsNil(err))
	again, err := Parse("again.yaml", e.Source())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(again.Flows, e.Flows))
	for _, f := range e.Flows {
		qt.Assert(t, qt.IsTrue(f.Size >= 1000 && f.Size <= 2000))
	}
}
