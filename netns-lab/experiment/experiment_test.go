// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp"
)

// allFields compares unexported fields too.
var allFields = cmp.AllowUnexported(Experiment{})

// smallest is the least a file must say.
const smallest = `name: small
topology: {kind: fig1}
schemes: [pfc]
duration: 15ms
flows:
  - {name: F0, from: H0, to: R0}
`

// full says everything.
const full = `name: full
title: Everything
topology: {kind: fig1, burst_hosts: 3, rate: 10Gbps, delay: 1us}
frame: 1500B
switch:
  buffer: 9MB
  pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}}
schemes: [pfc, pcn]
pcn: {T: 25us, w_min: 0.01, w_max: 0.25, congested_share: 0.9}
warmup: 2ms
duration: 4ms
sample: 50us
dilation: 9
seed: 7
flows:
  - {name: F0, from: H0, to: R0, start: -1ms, size: 10MB, initial_rate: 2Gbps, limit_rate: 5Gbps}
  - {name: F1, from: H1, to: R1}
bursts:
  - {name: burst, from: H2..H4, to: R1, at: 0.5ms, flows: 16, size: 64KB}
  - {name: pair, from: [H2, H3..H4], to: R0, size: 1MB}
figures:
  pause: [S1->S0]
  throughput: [F0]
  queues: [S1->R1]
expect:
  - {what: both recover, scheme: pcn, metric: recovery_time, flows: [F0+F1, F0], since: pause_end, links: [S0->H0], target: 9Gbps, hold: 1ms, max: 2ms, paper: 1.4ms}
  - {what: F0 is fast, metric: mean_rate, flows: [F0], from: 1ms, to: 2ms, min: 1Gbps, max: 2Gbps}
  - {what: on time, metric: lateness_p99, max: 5%}
`

func TestDefaults(t *testing.T) {
	e, err := Parse("small.yaml", []byte(smallest))
	qt.Assert(t, qt.IsNil(err))

	want := Experiment{
		Name:     "small",
		Title:    "small",
		Topology: Topology{Kind: "fig1", BurstHosts: 14, Rate: 40e9, Delay: 5000},
		Frame:    1000,
		Switch:   Switch{Buffer: 32e6, PFC: PFC{XOFF: 512e3, XON: 510e3}},
		Schemes:  []string{"pfc"},
		PCN:      PCN{T: 50e3, WMin: 1. / 128, WMax: 0.5, CongestedShare: 0.95},
		Warmup:   1e6,
		Duration: 15e6,
		Sample:   100e3,
		Dilation: 10,
		Seed:     1,
		Flows:    []Flow{{Name: "F0", From: "H0", To: "R0", Start: -1e6, InitialRate: 40e9, LimitRate: 40e9}},
		source:   []byte(smallest),
	}
	qt.Assert(t, qt.CmpEquals(*e, want, allFields))
}

func TestEverythingIsRead(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))

	want := Experiment{
		Name:     "full",
		Title:    "Everything",
		Topology: Topology{Kind: "fig1", BurstHosts: 3, Rate: 10e9, Delay: 1000},
		Frame:    1500,
		Switch:   Switch{Buffer: 9e6, PFC: PFC{Dynamic: &DynamicPFC{Alpha: 0.125, XONOffset: 3000}}},
		Schemes:  []string{"pfc", "pcn"},
		PCN:      PCN{T: 25e3, WMin: 0.01, WMax: 0.25, CongestedShare: 0.9},
		Warmup:   2e6,
		Duration: 4e6,
		Sample:   50e3,
		Dilation: 9,
		Seed:     7,
		Flows: []Flow{
			{Name: "F0", From: "H0", To: "R0", Start: -1e6, Size: 10e6, InitialRate: 2e9, LimitRate: 5e9},
			{Name: "F1", From: "H1", To: "R1", Start: -2e6, InitialRate: 10e9, LimitRate: 10e9},
		},
		Bursts: []Burst{
			{Name: "burst", From: NodeList{"H2", "H3", "H4"}, To: "R1", At: 500e3, Flows: 16, Size: 64e3},
			{Name: "pair", From: NodeList{"H2", "H3", "H4"}, To: "R0", Flows: 1, Size: 1e6},
		},
		Figures: Figures{Pause: []string{"S1->S0"}, Throughput: []string{"F0"}, Queues: []string{"S1->R1"}},
		Expect: []Expect{
			{
				What: "both recover", Scheme: "pcn", Metric: RecoveryTime, Flows: []string{"F0+F1", "F0"},
				Since: SincePauseEnd, Links: []string{"S0->H0"}, Target: 9e9, Hold: 1e6, Max: &Quantity{2e6, UnitTime}, Paper: "1.4ms",
			},
			{
				What: "F0 is fast", Metric: MeanRate, Flows: []string{"F0"}, From: 1e6, To: 2e6,
				Min: &Quantity{1e9, UnitRate}, Max: &Quantity{2e9, UnitRate},
			},
			{What: "on time", Metric: LatenessP99, Max: &Quantity{0.05, UnitShare}},
		},
		source: []byte(full),
	}
	qt.Assert(t, qt.CmpEquals(*e, want, allFields))
}

// Each case spoils a good file, and says at which text the error must point.
func TestErrors(t *testing.T) {
	for _, tc := range []struct {
		name, old, new, at, want string
	}{
		{"unknown key", "delay: 1us", "delai: 1us", "delai:", `unknown key "delai" (hint: did you mean "delay"?)`},
		{"unknown key far from all", "title:", "zzzzzzzzz:", "zzzzzzzzz:", `unknown key "zzzzzzzzz" (hint: one of name, title, topology, frame, switch, schemes, pcn, warmup, duration, sample, dilation, seed, flows, bursts, figures, expect)`},
		{"duplicate key", "seed: 7", "seed: 7\nseed: 8", "seed: 8", `duplicate key "seed" (hint: keep one of them)`},
		{"no unit", "rate: 10Gbps", "rate: 10", "10, delay", `"10": unit is missing (hint: write a rate as 40Gbps)`},
		{"bad unit", "frame: 1500B", "frame: 1500b", "1500b", `"1500b": unknown unit "b" (hint: did you mean "B"?)`},
		{"no value", "seed: 7", "seed:", "\nflows", `value is missing (hint: give a value or remove the key)`},
		{"list for value", "seed: 7", "seed: [7]", "[7]", `want a single value, not a list or a mapping`},
		{"list for quantity", "sample: 50us", "sample: [50us]", "[50us]", `want a single value, not a list or a mapping`},
		{"value for list", "schemes: [pfc, pcn]", "schemes: pfc", "pfc\n", `want a list (hint: write [a, b], or one item per line after "- ")`},
		{"value for mapping", "topology: {kind: fig1, burst_hosts: 3, rate: 10Gbps, delay: 1us}", "topology: fig1", "fig1\n", `want a mapping (hint: write {key: value})`},
		{"not a number", "seed: 7", "seed: seven", "seven", `"seven" is not a whole number in range`},
		{"negative count", "seed: 7", "seed: -7", "-7", `"-7" is not a whole number in range`},
		{"no name", "name: full\n", "", "title:", `"name" is missing (hint: lower-case letters, digits and "-")`},
		{"name with path", "name: full", "name: ../full", "../full", `"../full" can't be a name (hint: lower-case letters, digits and "-")`},
		{"no kind", "kind: fig1, ", "", "{burst_hosts", `"kind" is missing`},
		{"no topology", "topology: {kind: fig1, burst_hosts: 3, rate: 10Gbps, delay: 1us}\n", "", "name:", `"topology" is missing`},
		{"unknown kind", "kind: fig1", "kind: fig7", "fig7", `unknown kind of topology "fig7" (hint: did you mean "fig1"?)`},
		{"too many hosts", "burst_hosts: 3", "burst_hosts: 1000000000", "1000000000", `1000000000 is out of range (hint: 1 to 62)`},
		{"no rate", "rate: 10Gbps", "rate: 0", "0, delay", `0bps is out of range (hint: 1Mbps to 800Gbps)`},
		{"no delay", "delay: 1us", "delay: 0", "0}", `0ns is out of range (hint: 100ns to 10ms)`},
		{"long frame", "frame: 1500B", "frame: 64KB", "64KB\n", `64KB is out of range (hint: 128B to 9.018KB)`},
		{"small buffer", "buffer: 9MB", "buffer: 1KB", "1KB", `1KB is out of range (hint: 15KB to 1GB)`},
		{"alpha 0", "alpha: 1/8", "alpha: 0", "0, xon", `0 is out of range (hint: 0.0009765625 to 16)`},
		{"no alpha", "alpha: 1/8, ", "", "{xon_offset", `"alpha" is missing`},
		{"static and dynamic", "pfc: {dynamic", "pfc: {xoff: 1MB, dynamic", "1MB", `"xoff" is static, and there is "dynamic" too (hint: keep one of them)`},
		{"xon above xoff", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}}", "pfc: {xoff: 510KB, xon: 512KB}", "512KB", `512KB is out of range (hint: 0B to 510KB)`},
		{"xoff above buffer", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}}", "pfc: {xoff: 10MB}", "10MB", `10MB is out of range (hint: 1.5KB to 9MB)`},
		{"no schemes", "schemes: [pfc, pcn]", "schemes: []", "[]", `"schemes" is missing (hint: one of pfc, pcn)`},
		{"unknown scheme", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, tcp]", "tcp]", `unknown scheme "tcp" (hint: did you mean "pcn"?)`},
		{"scheme twice", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, pcn]", "pcn]", `duplicate scheme "pcn" (hint: keep one of them)`},
		{"w_min above w_max", "w_min: 0.01", "w_min: 0.5", "0.25", `0.25 is out of range (hint: 0.5 to 1)`},
		{"share above 1", "congested_share: 0.9", "congested_share: 95", "95}", `95 is out of range (hint: 0 to 1)`},
		{"no duration", "duration: 4ms\n", "", "name:", `"duration" is missing (hint: write 15ms)`},
		{"negative duration", "duration: 4ms", "duration: -4ms", "-4ms", `-4ms is out of range (hint: 1us to 10s)`},
		{"bins do not fit", "warmup: 2ms", "warmup: 2.01ms", "2.01ms", `warmup 2.01ms is not a whole number of bins (hint: write a multiple of sample, 50us)`},
		{"duration is no multiple", "duration: 4ms", "duration: 4.01ms", "4.01ms", `duration 4.01ms is not a whole number of bins (hint: write a multiple of sample, 50us)`},
		{"dilation", "dilation: 9", "dilation: 17", "17", `17 is out of range (hint: 0 to 16)`},
		{"unknown host", "from: H0", "from: H9", "H9", `unknown host "H9" (hint: did you mean "H0"?)`},
		{"switch is no host", "to: R0, start", "to: S0, start", "S0, start", `unknown host "S0" (hint: did you mean "H0"?)`},
		{"no host", "from: H1, ", "", "{name: F1", `"from" is missing`},
		{"to itself", "from: H1, to: R1", "from: H1, to: H1", "H1}", `flow goes from H1 to itself`},
		{"above line rate", "limit_rate: 5Gbps", "limit_rate: 50Gbps", "50Gbps", `50Gbps is out of range (hint: 1Mbps to 10Gbps)`},
		{"above limit", "initial_rate: 2Gbps", "initial_rate: 6Gbps", "6Gbps", `6Gbps is out of range (hint: 1Mbps to 5Gbps)`},
		{"before warm-up", "start: -1ms", "start: -3ms", "-3ms", `-3ms is out of range (hint: -2ms to 3.999999ms)`},
		{"flow twice", "name: F1", "name: F0", "F0, from: H1", `duplicate name "F0" (hint: give each flow and burst its own name)`},
		{"flow and burst", "name: burst", "name: F1", "F1, from: H2", `duplicate name "F1" (hint: give each flow and burst its own name)`},
		{"sum as name", "name: F1", "name: F1+F2", "F1+F2", `"F1+F2" can't be a name (hint: letters, digits, "_" and "-")`},
		{"bad range", "H2..H4, to", "H4..H2, to", "H4..H2", `"H4..H2" is not a range of nodes (hint: write H2..H15)`},
		{"range of two kinds", "H2..H4, to", "H2..R4, to", "H2..R4", `"H2..R4" is not a range of nodes (hint: write H2..H15)`},
		{"range beyond", "H2..H4, to", "H2..H5, to", "H2..H5", `unknown host "H5" (hint: did you mean "H0"?)`},
		{"sender twice", "[H2, H3..H4]", "[H2, H2..H4]", "[H2, H2", `H2 sends twice (hint: use flows: to send more than one)`},
		{"burst to itself", "to: R1, at", "to: H3, at", "H2..H4, to: H3", `H3 sends to itself`},
		{"late burst", "at: 0.5ms", "at: 4ms", "4ms, flows", `4ms is out of range (hint: -2ms to 3.999999ms)`},
		{"no flows", "flows: 16", "flows: 0", "0, size", `0 is out of range (hint: 1 to 1024)`},
		{"no size", ", size: 64KB", "", "{name: burst", `"size" is missing`},
		{"unknown link", "pause: [S1->S0]", "pause: [S1->S9]", "S1->S9", `unknown link "S1->S9" (hint: did you mean "S1->S0"?)`},
		{"not a link", "queues: [S1->R1]", "queues: [S0->R1]", "S0->R1", `unknown port "S0->R1" (hint: did you mean "S0->H1"?)`},
		{"unknown flow", "throughput: [F0]", "throughput: [F7]", "F7", `unknown flow "F7" (hint: did you mean "F0"?)`},
		{"no metric", "metric: lateness_p99, ", "", "{what: on time", `"metric" is missing`},
		{"unknown metric", "metric: lateness_p99", "metric: latenes_p99", "latenes_p99", `unknown metric "latenes_p99" (hint: did you mean "lateness_p99"?)`},
		{"no bound", ", max: 5%", "", "{what: on time", `there is no bound (hint: add min: or max:)`},
		{"bound of another unit", "max: 5%", "max: 5ms", "5ms}", `5ms is a time, but metric "lateness_p99" is a share (hint: write a share as 5%)`},
		{"min above max", "min: 1Gbps", "min: 3Gbps", "3Gbps", `min 3Gbps is above max 2Gbps`},
		{"scheme not run", "schemes: [pfc, pcn]", "schemes: [pfc]", "pcn, metric", `unknown scheme of this file "pcn" (hint: did you mean "pfc"?)`},
		{"argument missing", "target: 9Gbps, ", "", "{what: both", `metric "recovery_time" needs "target"`},
		{"links missing", "links: [S0->H0], ", "", "{what: both", `metric "recovery_time" needs "links"`},
		{"argument of another metric", "max: 5%", "max: 5%, flows: [F0]", "[F0]}", `metric "lateness_p99" does not take "flows" (hint: remove it)`},
		{"unknown in sum", "F0+F1, F0", "F0+F9, F0", "F0+F9", `unknown flow "F9" (hint: did you mean "F0"?)`},
		{"unknown moment", "since: pause_end", "since: pause_ends", "pause_ends", `unknown moment "pause_ends" (hint: did you mean "pause_end"?)`},
		{"empty window", "from: 1ms, to: 2ms", "from: 2ms, to: 2ms", "2ms, min", `2ms is out of range (hint: 2.000001ms to 4ms)`},
		{"window beyond the run", "from: 1ms, to: 2ms", "from: 1ms, to: 5ms", "5ms, min", `5ms is out of range (hint: 1.000001ms to 4ms)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.StringContains(full, tc.old))
			file := strings.Replace(full, tc.old, tc.new, 1)
			_, err := Parse("f.yaml", []byte(file))

			// Other values may depend on the one that is wrong: this error is among the others.
			found := findError(t, err, tc.want)
			qt.Assert(t, qt.IsTrue(strings.HasPrefix(textAt(file, found), tc.at)), qt.Commentf("%v points at %q", found, textAt(file, found)))
		})
	}
}

// findError returns the error that reads "what is wrong (hint: what to do)".
func findError(t *testing.T, err error, want string) *Error {
	t.Helper()
	joined, ok := err.(interface{ Unwrap() []error })
	qt.Assert(t, qt.IsTrue(ok), qt.Commentf("not refused: %v", err))
	for _, one := range joined.Unwrap() {
		var e *Error
		if errors.As(one, &e) && withHint(e.Msg, e.Hint) == want {
			return e
		}
	}
	t.Fatalf("got errors\n%v\nwant\n%s", err, want)
	return nil
}

// textAt returns the file from the position of the error on.
func textAt(file string, e *Error) string {
	lines := strings.SplitAfter(file, "\n")
	return strings.Join(lines[e.Line-1:], "")[e.Col-1:]
}

func TestErrorsOfWholeFiles(t *testing.T) {
	for _, tc := range []struct {
		name, file, want string
	}{
		{"empty", "", `f.yaml: is empty (hint: start with name: and topology:)`},
		{"comment only", "# nothing\n", `f.yaml: is empty (hint: start with name: and topology:)`},
		{"list", "- a\n", `f.yaml:1:1: want a mapping (hint: start with name: and topology:)`},
		{"second document", smallest + "---\nname: b\n", `f.yaml:7:1: second document (hint: write one experiment per file)`},
		{"syntax", "name: a\ntitle: [b\n", `f.yaml:1: did not find expected ',' or ']'`}, // yaml.v3 counts from 0 here,
		{"no traffic", strings.Split(smallest, "flows:")[0], `f.yaml:1:1: there is no traffic (hint: add flows: or bursts:)`},
		{"too many bins", "sample: 1us\n" + strings.Replace(smallest, "15ms", "5s", 1), `f.yaml:1:9: 5001000 bins are too many (hint: make sample longer)`},
		{"recursive", "name: &a [*a]\n" + strings.TrimPrefix(smallest, "name: small\n"), `f.yaml:1:7: want a single value, not a list or a mapping`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := Parse("f.yaml", []byte(tc.file))
			qt.Assert(t, qt.IsNotNil(err))
			qt.Assert(t, qt.Equals(err.Error(), tc.want))
		})
	}
}

// Three mistakes are three errors, in the order of the file, and none of them causes another.
func TestAllErrorsInOneGo(t *testing.T) {
	file := strings.NewReplacer("kind: fig1", "kind: fig1, rate: 40", "H0", "X0", "15ms", "15").Replace(smallest)
	_, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.ErrorMatches(err, `f.yaml:2:30: "40": unit is missing \(hint: write a rate as 40Gbps\)
f.yaml:4:11: "15": unit is missing \(hint: write a time as 5us\)
f.yaml:6:22: unknown host "X0" \(hint: did you mean "H0"\?\)`))

	var first *Error
	qt.Assert(t, qt.ErrorAs(err, &first))
	qt.Assert(t, qt.Equals(*first, Error{"f.yaml", 2, 30, `"40": unit is missing`, "write a rate as 40Gbps"}))
}

func TestAnchorsAreFollowed(t *testing.T) {
	file := strings.Replace(smallest, "duration: 15ms", "duration: &t 15ms\nwarmup: *t", 1)
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(e.Warmup, 15*Millisecond))
}

func TestHashIsThatOfTheFile(t *testing.T) {
	e, err := Parse("small.yaml", []byte(smallest))
	qt.Assert(t, qt.IsNil(err))
	sum := sha256.Sum256([]byte(smallest))
	qt.Assert(t, qt.Equals(e.Hash(), hex.EncodeToString(sum[:])))

	seed := uint64(2)
	o, err := e.Override(Override{Seed: &seed})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(o.Hash(), e.Hash()))

	e.Source()[0] = '#'
	qt.Assert(t, qt.Equals(string(e.Source()), smallest))
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "small.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("name: small\n"), 0o644)))
	_, err := Load(path)
	qt.Assert(t, qt.IsNotNil(err))
	qt.Assert(t, qt.StringContains(err.Error(), path+":1:1: "))

	_, err = Load(path + ".missing")
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
}

func TestOverride(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))

	o, err := e.Override(Override{Seed: new(uint64(9)), Duration: new(3 * Millisecond), Dilation: new(uint(8)), Schemes: []string{"pcn"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(o.Seed, 9))
	qt.Assert(t, qt.Equals(o.Duration, 3*Millisecond))
	qt.Assert(t, qt.Equals(o.Dilation, 8))
	qt.Assert(t, qt.DeepEquals(o.Schemes, []string{"pcn"}))

	// The original is as it was.
	qt.Assert(t, qt.Equals(e.Seed, 7))
	qt.Assert(t, qt.DeepEquals(e.Schemes, []string{"pfc", "pcn"}))
}

func TestOverrideErrors(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))
	for _, tc := range []struct {
		name string
		o    Override
		want string
	}{
		{"unknown scheme", Override{Schemes: []string{"timely"}}, `experiment full has no scheme "timely" \(hint: it has pfc, pcn\)`},
		{"no scheme", Override{Schemes: []string{}}, `override of experiment full: "schemes" is missing .*`},
		{"scheme twice", Override{Schemes: []string{"pfc", "pfc"}}, `.*duplicate scheme "pfc".*`},
		{"duration is no multiple", Override{Duration: new(3333 * Microsecond)}, `.*duration 3.333ms is not a whole number of bins \(hint: write a multiple of sample, 50us\)`},
		{"no duration", Override{Duration: new(Duration(0))}, `override of experiment full: "duration" is missing \(hint: write 15ms\)`},
		{"shorter than a start", Override{Duration: new(500 * Microsecond)}, `.*500us is out of range \(hint: -2ms to 499.999us\)`},
		{"dilation", Override{Dilation: new(uint(17))}, `.*17 is out of range \(hint: 0 to 16\)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := e.Override(tc.o)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

func TestFig1(t *testing.T) {
	topo := Topology{Kind: "fig1", BurstHosts: 2}
	qt.Assert(t, qt.DeepEquals(topo.Nodes(), []string{"H0", "H1", "H2", "H3", "R0", "R1", "S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Hosts(), []string{"H0", "H1", "H2", "H3", "R0", "R1"}))
	qt.Assert(t, qt.DeepEquals(topo.Switches(), []string{"S0", "S1"}))
	qt.Assert(t, qt.DeepEquals(topo.Links(), []Link{
		{"H0", "S0"}, {"H1", "S0"}, {"H2", "S1"}, {"H3", "S1"}, {"R0", "S1"}, {"R1", "S1"}, {"S0", "S1"},
	}))
	qt.Assert(t, qt.HasLen(topo.Ports(), 14))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S0->S1"))
	qt.Assert(t, qt.SliceContains(topo.Ports(), "S1->S0"))
	qt.Assert(t, qt.HasLen(Topology{Kind: "clos"}.Nodes(), 0))
}

func TestReversePort(t *testing.T) {
	qt.Assert(t, qt.Equals(ReversePort("S0->S1"), "S1->S0"))
	qt.Assert(t, qt.Equals(ReversePort("S0"), "S0"))
}

func TestSuggestIsTheClosest(t *testing.T) {
	qt.Assert(t, qt.Equals(suggest("hold", []string{"hole", "holds", "cold"}), `did you mean "hole"?`))
	qt.Assert(t, qt.Equals(suggest("a", []string{"b"}), `one of b`))
	qt.Assert(t, qt.Equals(editDistance("kitten", "sitting"), 3))
	qt.Assert(t, qt.Equals(editDistance("", "abc"), 3))
}

// Whatever the file is, Parse returns, points into the file, and accepts only
// what an empty override accepts too.
func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest))
	f.Add([]byte(full))
	f.Add([]byte("name: &a [*a]"))
	f.Add([]byte("{name: {a: b}, flows: [1, {}], expect: [{metric: mean_rate}]}"))
	f.Add([]byte("- \n---\n..."))
	f.Add([]byte("---"))
	lineBreak := regexp.MustCompile("[\n\r\u0085\u2028\u2029]")
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse("f.yaml", data)
		if err == nil {
			_, err = e.Override(Override{})
			qt.Assert(t, qt.IsNil(err))
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		qt.Assert(t, qt.IsTrue(ok))
		// A value left out at the end of a file stands, to yaml.v3, on the line after it.
		lines := 2 + len(lineBreak.FindAll(data, -1))
		for _, one := range joined.Unwrap() {
			var located *Error
			qt.Assert(t, qt.IsTrue(errors.As(one, &located)))
			qt.Assert(t, qt.IsTrue(located.Line <= lines), qt.Commentf("%v", err))
		}
	})
}
