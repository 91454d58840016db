// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// allFields compares unexported fields too, and parameters by their values.
var allFields = cmp.Options{
	cmp.AllowUnexported(Experiment{}),
	cmpopts.IgnoreFields(Experiment{}, "origin", "chosen"), // how it was read
	cmp.Transformer("sections", func(p parameters) map[string]values {
		e := &Experiment{parameters: p}
		sections := map[string]values{}
		for section := range p.values {
			sections[section] = sectionOf(e, section)
		}
		return sections
	}),
}

// withoutSections compares all but parameters.
var withoutSections = cmp.Options{allFields,
	cmpopts.IgnoreFields(Experiment{}, "parameters", "hostRates")}

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
  port_buffer: 1MB
  flow_control: pfc
  cbfc: {buffer: 100KB, period: 10us}
  pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}, schemes: [pfc]}
schemes: [pfc, pcn]
marking: {kmin: 20KB, kmax: 80KB, pmax: 25%}
pcn: {T: 25us, w_min: 0.01, w_max: 0.25, congested_share: 0.9, rate_unit: 10kbps, feedback: auto}
dcqcn: {set: ns3-rdma, g: 1/128, alpha_timer: 1us, rate_timer: 2us, byte_counter: 3MB, fast_recovery: 4, rate_ai: 5Mbps, rate_hai: 6Mbps, cnp_interval: 7us,
  decrease_interval: 8us, clamp_target: false, alpha_first: false, initial_alpha: 0.9, min_rate: 10Mbps, marking: {kmin: 11KB, kmax: 12KB, pmax: 0.13}}
timely: {set: paper, ewma: 0.1, beta: 0.2, t_low: 3us, t_high: 4us, min_rtt: 5us, delta: 6Mbps, hai_after: 7, hai_factor: 8, delta_factor: true, segment: 9KB, max_cut: 0.11, min_rate: 12Mbps, tcd_hold: 13us}
qcn: {qeq: 1KB, w: 3, sample_base: 4KB, sample_jitter: 0.05, timer: 6us, byte_counter: 7KB, fast_recovery: 8, rate_ai: 9Mbps, rate_hai: 10Mbps,
  gd: 1/11, min_decrease_factor: 0.12, min_rate: 13Mbps, hai_after_packets: 14, half_from: hai}
fecn: {threshold: 40KB, packet_size: 512B, marking_rate: 3, victims: true}
tcd: {max_ton: 30us, epsilon: 0.1}
dctcp_rate:
  {min_rate: 10Mbps, rate_ai: 20Mbps, g: 0.125, initial_alpha: 0.25,
   marking: {kmin: 5KB, kmax: 6KB, pmax: 0.5}}
hpcc: {set: hpcc, min_rate: 10Mbps, rate_ai: 20Mbps, rtt: 5us, eta: 0.5, max_stage: 6,
  int_multi: 7, fast_react: false, multi_rate: true}
ibcc: {ccti_increase: 2, ccti_limit: 63, ccti_min: 3, ccti_timer: 40us, cct_delay: 7.5, cct_exponent: 1, becn_interval: 5us}
dctcp: {g: 1/8, initial_alpha: 0.25, marking: {kmin: 1KB, kmax: 2KB, pmax: 0.3}}
ldcp: {alpha: 0.5, beta: 0.25, gamma: 1/16, eta: 0.75, initial_window: 40KB, first_rtt: ect, wred_k: 60KB, ack_every: 2, feedback: accecn, marking: {kmin: 3KB, kmax: 4KB, pmax: 0.4}}
warmup: 2ms
duration: 4ms
sample: 50us
dilation: 9
ack_every: 2
engine: sim
seed: 7
flows:
  - {name: F0, from: H0, to: R0, start: -1ms, size: 10MB, initial_rate: 2Gbps, limit_rate: 5Gbps}
  - {name: F1, from: H1, to: R1}
  - {name: web, from: H2..H3, to: R0, start: 0.1ms, count: 2, every: 10us, size: 63KB}
bursts:
  - {name: burst, from: H2..H4, to: R1, at: 0.5ms, flows: 16, size: 64KB}
  - {name: pair, from: [H2, H3..H4], to: R0, size: 1MB, rate: 3Gbps, every: 1ms, times: 3}
links:
  - {at: 1ms, link: S0->S1, rate: 5Gbps}
  - {link: S0->S1, rate: 1Gbps}
figures:
  pause: [S1->S0]
  throughput: [F0]
  sizes: [2KB, 1MB]
  queues: [S1->R1]
  send_rate: [F1]
  rates: [S0->S1]
  reference:
    - {figure: throughput, scheme: pcn, name: F1, label: "PCN, Fig. 2(b)", points: [[3.35ms, 1.25Gbps], [4ms, 0]]}
    - {figure: queue, name: S1->R1, label: drawn, points: [[0ms, 64KB]]}
expect:
  - {what: both recover, scheme: pcn, metric: recovery_time, flows: [F0+F1, F0], since: pause_end, links: [S0->H0], target: 9Gbps, hold: 1ms, max: 2ms, paper: 1.4ms}
  - {what: F0 is fast, metric: mean_rate, flows: [F0], from: 1ms, to: 2ms, min: 1Gbps, max: 2Gbps}
  - {what: on time, metric: lateness_p99, max: 5%}
  - {what: web is done, metric: slowdown_p99, flows: [web], sizes: 10KB..1MB, max: 10}
  - {what: switches PAUSE, metric: tier_pause_count, tiers: [host, switch], max: 10}
  - {what: S0 settles, metric: settling_time, flows: [F0], target: 5Gbps, band: 10%, max: 1ms}
compare:
  - what: queues drain
    metric: queue_settling
    ports: [S1->R1]
    target: 50KB
    over: mean
    paper: {pfc: 3.1ms, pcn: 1.4ms}
    within: 50%
    bounds: {pcn: {min: 1ms, max: 2ms}}
    order: true
    ratios: {to: pcn, min: 2}
`

// sweep varies itself, over a topology of another kind.
const sweep = `name: sweep
topology: {kind: dumbbell, senders: 4, bottleneck: {rate: 20Gbps, delay: 50us}}
switch: {pfc: {off: true}}
schemes: [dcqcn, cubic]
duration: 3ms
flows:
  - {name: F0, from: A0, to: B0}
  - &f1 {name: F1, from: A3, to: B3, limit_rate: 5Gbps}
bursts:
  - {name: burst, from: A1..A2, to: B0, size: 64KB, every: 1ms}
cases:
  - {name: plain}
  - {name: f1-9.5, set: {flows.F1.limit_rate: 9.5Gbps}}
  - name: late
    set: {flows.0.start: 1ms, bursts.burst.every: 2ms, pcn.T: 25us, warmup: 2ms}
expect:
  - {what: late F0 is slow, case: late, metric: mean_rate, flows: [F0], from: -2ms, max: 9Gbps}
compare:
  - {what: rates, metric: mean_rate, flows: [F0], from: 0, over: min, cases: [plain, late], bounds: {cubic: {max: 9Gbps}}}
`

// TestPairsAndPriorities: each host of a group sends to the one in its place, with the group's
// priority.
func TestPairsAndPriorities(t *testing.T) {
	e, err := Parse("e.yaml", []byte(`name: pairs
topology: {kind: dumbbell, senders: 3}
schemes: [pcn]
duration: 1ms
flows:
  - {name: F, from: [A2, A0..A1], to: B0..B2, priority: 3}
  - {name: G, from: A0..A1, to: B0, count: 2}
bursts: [{name: burst, from: A0, to: B1, size: 1KB, priority: 1}]
expect: [{what: no PAUSE, metric: pause_count, links: [S1->S0], priority: 3, max: 0}]
`))
	qt.Assert(t, qt.IsNil(err))
	var flows []string
	for _, f := range e.Flows {
		flows = append(flows, fmt.Sprintf("%s %s->%s %d", f.Name, f.From, f.To, f.Priority))
	}
	qt.Check(t, qt.DeepEquals(flows, []string{
		"F-A2-0 A2->B0 3", "F-A0-0 A0->B1 3", "F-A1-0 A1->B2 3",
		"G-A0-0 A0->B0 0", "G-A0-1 A0->B0 0", "G-A1-0 A1->B0 0", "G-A1-1 A1->B0 0",
	}))
	qt.Check(t, qt.Equals(e.Bursts[0].Priority, 1))
	qt.Check(t, qt.DeepEquals(e.Expect[0].Priority, new(3)))
	for priority, class := range []uint8{3, 2, 1, 0} {
		qt.Check(t, qt.Equals(DataClass(priority), class))
	}
}

func TestDefaults(t *testing.T) {
	e, err := Parse("small.yaml", []byte(smallest))
	qt.Assert(t, qt.IsNil(err))

	want := Experiment{
		Name:  "small",
		Title: "small",
		Topology: Topology{
			Kind: "fig1", BurstHosts: 14,
			Rate: 40e9, Delay: 5000, Bottleneck: Bottleneck{Rate: 40e9, Delay: 5000},
		},
		Frame:  1000,
		Marker: MarkRED,
		Transport: Transport{Recovery: RecoverySACK, Acks: ReplyControl, AckSize: 66,
			CNP: ReplyControl},
		Trace: Trace{Format: FlowsHPCC, Packet: 1000},
		Switch: Switch{ECMP: ECMPFlow, Buffer: 32e6, FlowControl: FlowPFC,
			PFC:  PFC{XOFF: 512e3, XON: 510e3},
			CBFC: CBFC{Buffer: 280e3, Period: 20e3}},
		Schemes:  []string{"pfc"},
		FECN:     FECN{Threshold: 50e3},
		TCD:      TCD{Epsilon: 0.05},
		Warmup:   1e6,
		Duration: 15e6,
		Sample:   100e3,
		Dilation: Dilation{Shift: 10, Auto: true},
		AckEvery: 1,
		Seed:     1,
		Engine:   EngineKernel,
		FlowGroups: []FlowGroup{
			{Name: "F0", From: NodeList{"H0"}, To: NodeList{"R0"}, Count: 1, Start: -1e6},
		},
		Flows: []Flow{{Name: "F0", Group: "F0", From: "H0", To: "R0", Start: -1e6,
			InitialRate: 40e9, LimitRate: 40e9}},
		source: []byte(smallest),
	}
	qt.Assert(t, qt.CmpEquals(*e, want, withoutSections))
	checkSections(t, e, map[string]values{
		"pcn": {
			"loss_cut": "true",
			"T":        "50us", "T_jitter": "0", "w_min": "0.0078125", "w_max": "0.5",
			"congested_share": "0.95", "rate_unit": "1Mbps", "feedback": "cnp", "min_rate": "1Mbps",
			// rules of hosts, off in experiments
			"catch_up": "0", "idle_cut": "1", "young": "0B", "w_young": "0.0078125",
			"patience": "0", "burst": "0ns", "pause_is_silence": "false",
			"window": "armed",
			"doubt":  "false", "careful_start": "false", "doubt_hold": "500ms",
		},
		"dcqcn": {
			"doubt": "false", "careful_start": "false", "doubt_hold": "500ms",
			"loss_cut": "true",
			"set":      "paper", "g": "0.00390625", "alpha_timer": "55us", "rate_timer": "55us",
			"byte_counter": "10MB", "fast_recovery": "5", "rate_ai": "40Mbps",
			"rate_hai":     "200Mbps",
			"cnp_interval": "50us", "decrease_interval": "0ns", "clamp_target": "true",
			"alpha_first": "false", "ue_resets": "false",
			"initial_alpha": "1", "min_rate": "100Mbps",
			"decrease_clock": "false",
			"marking.kmin":   "5KB", "marking.kmax": "200KB", "marking.pmax": "0.01",
		},
		"timely": {
			"loss_cut": "true",
			"set":      "snippet", "ewma": "0.02", "beta": "0.8", "t_low": "0ns", "t_high": "1ms",
			"min_rtt": "0ns", "delta": "40Mbps", "hai_after": "5", "hai_factor": "5",
			"delta_factor": "true", "segment": "0B", "max_cut": "0.5", "min_rate": "40Mbps",
			"tcd_hold": "55us", "per_rtt": "false", "count_increases": "false",
		},
		"qcn": {
			"loss_cut": "true",
			"qeq":      "104KB", "w": "2", "sample_base": "150KB", "sample_jitter": "0.15",
			"timer": "15ms", "byte_counter": "150KB", "fast_recovery": "5", "rate_ai": "20Mbps",
			"rate_hai": "200Mbps", "gd": "0.0078125", "min_decrease_factor": "0.5",
			"min_rate": "5Mbps", "hai_after_packets": "500", "half_from": "ai",
		},
		"dctcp": {
			"g": "0.0625", "initial_alpha": "1", "burst": "0ns", "bound_cut": "false",
			"slow_start_delay": "0ns",
			"marking.kmin":     "120KB", "marking.kmax": "120KB", "marking.pmax": "1",
		},
		"ldcp": {
			"doubt": "false", "doubt_hold": "500ms",
			"alpha": "1", "beta": "0.5", "gamma": "0.25", "eta": "0.5", "initial_window": "0B",
			"burst": "0ns", "ask_acks": "false",
			"first_rtt": "drop", "wred_k": "30KB", "ack_every": "1", "feedback": "echo",
			"marking.kmin": "20KB", "marking.kmax": "80KB", "marking.pmax": "1",
		},
		"dctcp_rate": {
			"loss_cut": "false",
			"min_rate": "1Gbps", "rate_ai": "615Mbps", "g": "0.0625", "initial_alpha": "1",
			"marking.kmin": "120KB", "marking.kmax": "120KB", "marking.pmax": "1",
		},
		"hpcc": {
			"set": "paper", "min_rate": "1Gbps", "rate_ai": "16Mbps", "rtt": "0ns", "eta": "0.95",
			"max_stage": "5", "int_multi": "1", "fast_react": "true", "multi_rate": "false",
		},
		"ibcc": {
			"doubt": "false", "careful_start": "false", "doubt_hold": "500ms",
			"loss_cut":      "true",
			"ccti_increase": "1", "ccti_limit": "127", "ccti_min": "0", "ccti_timer": "20us",
			"cct_delay": "15", "cct_exponent": "2", "becn_interval": "0ns",
		},
	})
}

func TestEverythingIsRead(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))

	want := Experiment{
		Name:  "full",
		Title: "Everything",
		Topology: Topology{
			Kind: "fig1", BurstHosts: 3,
			Rate: 10e9, Delay: 1000, Bottleneck: Bottleneck{Rate: 10e9, Delay: 1000},
		},
		Frame:  1500,
		Marker: MarkRED,
		Transport: Transport{Recovery: RecoverySACK, Acks: ReplyControl, AckSize: 66,
			CNP: ReplyControl},
		Trace: Trace{Format: FlowsHPCC, Packet: 1000},
		Switch: Switch{ECMP: ECMPFlow, Buffer: 9e6, PortBuffer: 1e6, FlowControl: FlowPFC,
			CBFC: CBFC{Buffer: 100e3, Period: 10e3}, PFC: PFC{Dynamic: &DynamicPFC{Alpha: 0.125,
				XONOffset: 3000}, Schemes: []string{"pfc"}}},
		Schemes:  []string{"pfc", "pcn"},
		Marking:  &Marking{KMin: 20e3, KMax: 80e3, PMax: 0.25},
		FECN:     FECN{Threshold: 40e3, PacketSize: 512, MarkingRate: 3, Victims: true},
		TCD:      TCD{MaxTon: 30e3, Epsilon: 0.1},
		Warmup:   2e6,
		Duration: 4e6,
		Sample:   50e3,
		Dilation: Dilation{Shift: 9},
		AckEvery: 2,
		Engine:   EngineSim,
		Seed:     7,
		FlowGroups: []FlowGroup{
			{Name: "F0", From: NodeList{"H0"}, To: NodeList{"R0"}, Count: 1, Start: -1e6,
				Size: 10e6, InitialRate: 2e9, LimitRate: 5e9},
			{Name: "F1", From: NodeList{"H1"}, To: NodeList{"R1"}, Count: 1, Start: -2e6},
			{
				Name: "web", From: NodeList{"H2", "H3"}, To: NodeList{"R0"}, Count: 2, Start: 100e3,
				Every: 10e3,
				Size:  63e3,
			},
		},
		Flows: []Flow{
			{Name: "F0", Group: "F0", From: "H0", To: "R0", Start: -1e6, Size: 10e6,
				InitialRate: 2e9, LimitRate: 5e9},
			{Name: "F1", Group: "F1", From: "H1", To: "R1", Start: -2e6, InitialRate: 10e9,
				LimitRate: 10e9},
			{Name: "web-H2-0", Group: "web", From: "H2", To: "R0", Start: 100e3, Size: 63e3,
				InitialRate: 10e9, LimitRate: 10e9},
			{Name: "web-H2-1", Group: "web", From: "H2", To: "R0", Start: 110e3, Size: 63e3,
				InitialRate: 10e9, LimitRate: 10e9},
			{Name: "web-H3-0", Group: "web", From: "H3", To: "R0", Start: 100e3, Size: 63e3,
				InitialRate: 10e9, LimitRate: 10e9},
			{Name: "web-H3-1", Group: "web", From: "H3", To: "R0", Start: 110e3, Size: 63e3,
				InitialRate: 10e9, LimitRate: 10e9},
		},
		Bursts: []Burst{
			{Name: "burst", From: NodeList{"H2", "H3", "H4"}, To: "R1", At: 500e3, Flows: 16,
				Size: 64e3},
			{Name: "pair", From: NodeList{"H2", "H3", "H4"}, To: "R0", Flows: 1, Size: 1e6,
				Rate: 3e9, Every: 1e6, Times: 3},
		},
		LinkEvents: []LinkEvent{{At: 1e6, Port: "S0->S1", Rate: 5e9}, {Port: "S0->S1", Rate: 1e9}},
		Figures: Figures{
			Pause: []string{"S1->S0"}, Throughput: []string{"F0"}, Sizes: []Bytes{2e3, 1e6},
			Queues: []string{"S1->R1"}, SendRate: []string{"F1"}, Rates: []string{"S0->S1"},
			Reference: []Reference{
				{
					Figure: FigureThroughput, Scheme: "pcn", Name: "F1", Label: "PCN, Fig. 2(b)",
					Points: []Point{{3350e3, Quantity{Value: 1.25e9, Unit: UnitRate}},
						{4e6, Quantity{Value: 0, Unit: UnitCount}}},
				},
				{Figure: FigureQueue, Name: "S1->R1", Label: "drawn",
					Points: []Point{{0, Quantity{Value: 64e3, Unit: UnitBytes}}}},
			},
		},
		Expect: []Expect{
			{
				What: "both recover", Scheme: "pcn", Max: &Quantity{Value: 2e6, Unit: UnitTime},
				Paper: "1.4ms",
				Measure: Measure{
					Metric: RecoveryTime, Flows: []string{"F0+F1", "F0"}, Since: SincePauseEnd,
					Links:  []string{"S0->H0"},
					Target: &Quantity{Value: 9e9, Unit: UnitRate}, Hold: 1e6,
				},
			},
			{
				What: "F0 is fast", Min: &Quantity{Value: 1e9, Unit: UnitRate},
				Max:     &Quantity{Value: 2e9, Unit: UnitRate},
				Measure: Measure{Metric: MeanRate, Flows: []string{"F0"}, From: 1e6, To: 2e6},
			},
			{What: "on time", Measure: Measure{Metric: LatenessP99},
				Max: &Quantity{Value: 0.05, Unit: UnitShare}},
			{What: "web is done", Measure: Measure{Metric: SlowdownP99, Flows: []string{"web"},
				Sizes: Sizes{10e3, 1e6}}, Max: &Quantity{Value: 10, Unit: UnitCount}},
			{What: "switches PAUSE", Measure: Measure{Metric: TierPauseCount,
				Tiers: []string{"host", "switch"}}, Max: &Quantity{Value: 10, Unit: UnitCount}},
			{
				What: "S0 settles", Max: &Quantity{Value: 1e6, Unit: UnitTime},
				Measure: Measure{
					Metric: SettlingTime, Flows: []string{"F0"}, Since: SinceStart,
					Target: &Quantity{Value: 5e9, Unit: UnitRate}, Band: 0.1, Hold: 500e3,
				},
			},
		},
		Compare: []Compare{{
			What: "queues drain",
			Measure: Measure{
				Metric: QueueSettling, Ports: []string{"S1->R1"}, Since: SinceStart,
				Target: &Quantity{Value: 50e3, Unit: UnitBytes}, Hold: 500e3,
			},
			Over: OverMean,
			Paper: map[string]Quantity{"pfc": {Value: 3.1e6, Unit: UnitTime},
				"pcn": {Value: 1.4e6, Unit: UnitTime}},
			Within: 0.5,
			Bounds: map[string]Bounds{"pcn": {Min: &Quantity{Value: 1e6, Unit: UnitTime},
				Max: &Quantity{Value: 2e6, Unit: UnitTime}}},
			Order:  true,
			Ratios: &Ratios{To: "pcn", Min: 2},
		}},
		source: []byte(full),
	}
	qt.Assert(t, qt.CmpEquals(*e, want, withoutSections))
	// One marking is in place of those of all sections.
	for _, section := range []string{"dcqcn", "dctcp", "ldcp"} {
		v := sectionOf(e, section)
		got := []string{v["marking.kmin"], v["marking.kmax"], v["marking.pmax"]}
		qt.Check(t, qt.DeepEquals(got, []string{"20KB", "80KB", "0.25"}),
			qt.Commentf("%s", section))
	}
}

func TestEverySectionIsRead(t *testing.T) {
	const marking = "marking: {kmin: 20KB, kmax: 80KB, pmax: 25%}\n"
	e, err := Parse("full.yaml", []byte(strings.Replace(full, marking, "", 1)))
	qt.Assert(t, qt.IsNil(err))
	checkSections(t, e, map[string]values{
		"pcn": {
			"loss_cut": "true",
			"T":        "25us", "T_jitter": "0", "w_min": "0.01", "w_max": "0.25",
			"congested_share": "0.9", "rate_unit": "10kbps", "feedback": "auto",
			// rules of hosts, off in experiments
			"catch_up": "0", "idle_cut": "1", "young": "0B", "w_young": "0.0078125",
			"patience": "0", "burst": "0ns", "pause_is_silence": "false",
			"window": "armed",
			"doubt":  "false", "careful_start": "false", "doubt_hold": "500ms",
			"min_rate": "10kbps",
		},
		"dcqcn": {
			"doubt": "false", "careful_start": "false", "doubt_hold": "500ms",
			"loss_cut": "false",
			"set":      "ns3-rdma", "g": "0.0078125", "alpha_timer": "1us", "rate_timer": "2us",
			"byte_counter": "3MB", "fast_recovery": "4", "rate_ai": "5Mbps", "rate_hai": "6Mbps",
			"cnp_interval": "7us", "decrease_interval": "8us", "clamp_target": "false",
			"alpha_first": "false", "ue_resets": "false",
			"initial_alpha": "0.9", "min_rate": "10Mbps",
			"decrease_clock": "false",
			"marking.kmin":   "11KB", "marking.kmax": "12KB", "marking.pmax": "0.13",
		},
		"timely": {
			"loss_cut": "true",
			"set":      "paper", "ewma": "0.1", "beta": "0.2", "t_low": "3us", "t_high": "4us",
			"min_rtt": "5us", "delta": "6Mbps", "hai_after": "7", "hai_factor": "8",
			"delta_factor": "true", "segment": "9KB", "max_cut": "0.11", "min_rate": "12Mbps",
			"tcd_hold": "13us", "per_rtt": "false", "count_increases": "false",
		},
		"qcn": {
			"loss_cut": "true",
			"qeq":      "1KB", "w": "3", "sample_base": "4KB", "sample_jitter": "0.05",
			"timer":        "6us",
			"byte_counter": "7KB", "fast_recovery": "8", "rate_ai": "9Mbps", "rate_hai": "10Mbps",
			"gd": Ratio(1. / 11).String(), "min_decrease_factor": "0.12", "min_rate": "13Mbps",
			"hai_after_packets": "14", "half_from": "hai",
		},
		"dctcp": {
			"g": "0.125", "initial_alpha": "0.25", "burst": "0ns", "bound_cut": "false",
			"slow_start_delay": "0ns",
			"marking.kmin":     "1KB", "marking.kmax": "2KB", "marking.pmax": "0.3",
		},
		"ldcp": {
			"doubt": "false", "doubt_hold": "500ms",
			"alpha": "0.5", "beta": "0.25", "gamma": "0.0625", "eta": "0.75", "burst": "0ns",
			"ask_acks":       "false",
			"initial_window": "40KB", "first_rtt": "ect", "wred_k": "60KB", "ack_every": "2",
			"feedback":     "accecn",
			"marking.kmin": "3KB", "marking.kmax": "4KB", "marking.pmax": "0.4",
		},
		"dctcp_rate": {
			"loss_cut": "false",
			"min_rate": "10Mbps", "rate_ai": "20Mbps", "g": "0.125", "initial_alpha": "0.25",
			"marking.kmin": "5KB", "marking.kmax": "6KB", "marking.pmax": "0.5",
		},
		"hpcc": {
			"set": "hpcc", "min_rate": "10Mbps", "rate_ai": "20Mbps", "rtt": "5us", "eta": "0.5",
			"max_stage": "6", "int_multi": "7", "fast_react": "false", "multi_rate": "true",
		},
		"ibcc": {
			"doubt": "false", "careful_start": "false", "doubt_hold": "500ms",
			"loss_cut":      "true",
			"ccti_increase": "2", "ccti_limit": "63", "ccti_min": "3", "ccti_timer": "40us",
			"cct_delay": "7.5", "cct_exponent": "1", "becn_interval": "5us",
		},
	})
}

// checkSections checks the values of all sections, and that there are no others.
func checkSections(t *testing.T, e *Experiment, want map[string]values) {
	t.Helper()
	for section, v := range want { // further controls may come along
		qt.Assert(t, qt.SliceContains(e.ExtraKeys(), section))
		qt.Assert(t, qt.DeepEquals(sectionOf(e, section), v), qt.Commentf("%s", section))
	}
}

// spoilt is a good file with a mistake in it, the error it gives and the text that this points at.
type spoilt struct {
	name, old, new, at, want string
}

// expand writes out hints that list all keys of a file, all schemes, or Linux's controls too.
func expand(want string) string {
	c := scheme.Builtin()
	keys := slices.Concat(config.KeysOf(reflect.TypeFor[Experiment]()), c.SectionNames())
	return strings.NewReplacer("ANY KEY", config.Suggest("", keys),
		"ANY SCHEME", config.Suggest("", c.Names()),
		"ANY CONTROL", config.Suggest("", slices.Concat(c.Names(), scheme.KernelControls())),
	).Replace(want)
}

func testErrors(t *testing.T, good string, mistakes []spoilt) {
	for _, tc := range mistakes {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.StringContains(good, tc.old))
			file := strings.Replace(good, tc.old, tc.new, 1)
			_, err := Parse("f.yaml", []byte(file))

			// Other values may depend on the one that is wrong: this error is among the others.
			found := findError(t, err, expand(tc.want))
			qt.Assert(t, qt.IsTrue(strings.HasPrefix(textAt(file, found), tc.at)),
				qt.Commentf("%v points at %q", found, textAt(file, found)))
		})
	}
}

func TestErrors(t *testing.T) {
	eventsBut2 := "" // with the two of the file, as many as a port may have
	for i := range maxPortEvents - 2 {
		eventsBut2 += fmt.Sprintf("  - {at: -1.%02dms, link: S0->S1, rate: 1Gbps}\n", i)
	}
	_, err := Parse("f.yaml", []byte(strings.Replace(full, "links:\n", "links:\n"+eventsBut2, 1)))
	qt.Assert(t, qt.IsNil(err))
	testErrors(t, full, []spoilt{
		{"unknown key", "delay: 1us", "delai: 1us", "delai:",
			`unknown key "delai" (hint: did you mean "delay"?)`},
		{"unknown key far from all", "title:", "zzzzzzzzz:", "zzzzzzzzz:",
			`unknown key "zzzzzzzzz" (hint: ANY KEY)`},
		{"duplicate key", "seed: 7", "seed: 7\nseed: 8", "seed: 8",
			`duplicate key "seed" (hint: keep one of them)`},
		{"no unit", "rate: 10Gbps", "rate: 10", "10, delay",
			`"10": unit is missing (hint: write a rate as 40Gbps)`},
		{"bad unit", "frame: 1500B", "frame: 1500b", "1500b",
			`"1500b": unknown unit "b" (hint: did you mean "B"?)`},
		{"no value", "seed: 7", "seed:", "\nflows",
			`value is missing (hint: give a value or remove the key)`},
		{"list for value", "seed: 7", "seed: [7]", "[7]",
			`want a single value, not a list or a mapping`},
		{"list for quantity", "sample: 50us", "sample: [50us]", "[50us]",
			`want a single value, not a list or a mapping`},
		{"value for list", "schemes: [pfc, pcn]", "schemes: pfc", "pfc\n",
			`want a list (hint: write [a, b], or one item per line after "- ")`},
		{"value for mapping", "topology: {kind: fig1, burst_hosts: 3, rate: 10Gbps, delay: 1us}",
			"topology: fig1", "fig1\n", `want a mapping (hint: write {key: value})`},
		{"not a number", "seed: 7", "seed: seven", "seven",
			`"seven" is not a whole number in range (hint: write 3)`},
		{"negative count", "seed: 7", "seed: -7", "-7",
			`"-7" is not a whole number in range (hint: write 3)`},
		{"no name", "name: full\n", "", "title:",
			`"name" is missing (hint: lower-case letters, digits and "-")`},
		{"name with path", "name: full", "name: ../full", "../full",
			`"../full" can't be a name (hint: lower-case letters, digits and "-")`},
		{"longer name than 64", "name: full", "name: " + strings.Repeat("a", 65),
			strings.Repeat("a", 65), `"` + strings.Repeat("a", 65) +
				`" can't be a name (hint: lower-case letters, digits and "-")`},
		{"no kind", "kind: fig1, ", "", "{burst_hosts", `"kind" is missing (hint: add kind:)`},
		{"no topology", "topology: {kind: fig1, burst_hosts: 3, rate: 10Gbps, delay: 1us}\n", "",
			"name:", `"topology" is missing (hint: add topology:)`},
		{"unknown kind", "kind: fig1", "kind: fig7", "fig7",
			`unknown kind of topology "fig7" (hint: did you mean "fig1"?)`},
		{"too many hosts", "burst_hosts: 3", "burst_hosts: 1000000000", "1000000000",
			`1000000000 is out of range (hint: 1 to 62)`},
		{"no rate", "rate: 10Gbps", "rate: 0", "0, delay",
			`0bps is out of range (hint: 1kbps to 4Tbps)`},
		{"no delay", "delay: 1us", "delay: 0", "0}", `0ns is out of range (hint: 1ns to 10s)`},
		{"long frame", "frame: 1500B", "frame: 64KB", "64KB\n",
			`64KB is out of range (hint: 128B to 9.216KB)`},
		{"small buffer", "buffer: 9MB", "buffer: 1KB", "1KB",
			`1KB is out of range (hint: 15KB to 1GB)`},
		{"alpha 0", "alpha: 1/8", "alpha: 0", "0, xon",
			`0 is out of range (hint: 0.0009765625 to 16)`},
		{"no alpha", "alpha: 1/8, ", "", "{xon_offset", `"alpha" is missing (hint: add alpha:)`},
		{"static and dynamic", "pfc: {dynamic", "pfc: {xoff: 1MB, dynamic", "1MB",
			`"xoff" is static, and there is "dynamic" too (hint: keep one of them)`},
		{"xon above xoff", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}, ",
			"pfc: {xoff: 510KB, xon: 512KB, ", "512KB",
			`512KB is out of range (hint: 0B to 510KB)`},
		{"xoff above buffer", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}, ",
			"pfc: {xoff: 10MB, ", "10MB", `10MB is out of range (hint: 1.5KB to 9MB)`},
		{"PFC for an unknown scheme", "schemes: [pfc]}", "schemes: [pf]}", "pf]",
			`unknown scheme of this file "pf" (hint: did you mean "pfc"?)`},
		{"PFC for a scheme twice", "schemes: [pfc]}", "schemes: [pfc, pfc]}", "pfc]",
			`duplicate scheme "pfc" (hint: keep one of them)`},
		{"PFC for no scheme", "schemes: [pfc]}", "schemes: []}", "[]}",
			`PFC is on for no scheme (hint: write off: true)`},
		{"PFC off and for a scheme", "dynamic: {alpha: 1/8, xon_offset: 3KB}, schemes",
			"off: true, schemes", "[pfc]}",
			`"schemes" is given, and PFC is off (hint: keep one of them)`},
		{"no schemes", "schemes: [pfc, pcn]", "schemes: []", "[]",
			`"schemes" is missing (hint: ANY SCHEME)`},
		{"unknown scheme", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, tcp]", "tcp]",
			`unknown scheme "tcp" (hint: did you mean "htcp"?)`},
		{"scheme twice", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, pcn]", "pcn]",
			`duplicate scheme "pcn" (hint: keep one of them)`},
		{"w_min above w_max", "w_min: 0.01", "w_min: 0.5", "0.5, w_max",
			`0.5 is out of range (hint: 0.0000152587890625 to w_max = 0.25)`},
		{"unknown feedback", "feedback: accecn", "feedback: acecn", "acecn,",
			`unknown feedback "acecn" (hint: did you mean "accecn"?)`},
		{"unknown first RTT", "first_rtt: ect", "first_rtt: ecn", "ecn,",
			`unknown first_rtt "ecn" (hint: did you mean "ect"?)`},
		{"completion of a sum",
			"metric: mean_rate, flows: [F0], from: 1ms, to: 2ms, min: 1Gbps, max: 2Gbps",
			"metric: completion_time, flows: [web+F0], max: 2ms", "web+F0",
			`a sum has no completion time (hint: list its flows one by one)`},
		{"completion of what never ends",
			"metric: mean_rate, flows: [F0], from: 1ms, to: 2ms, min: 1Gbps, max: 2Gbps",
			"metric: completion_time, flows: [web, F1], max: 2ms", "F1]",
			`flow F1 never ends (hint: give it a size)`},
		{"comparison of an unknown scheme", "over: mean", "schemes: [pcn, cubic]", "cubic]",
			`unknown scheme of this file "cubic" (hint: one of pfc, pcn)`},
		{"comparison of a scheme twice", "over: mean", "schemes: [pcn, pcn]", "pcn]\n",
			`duplicate scheme "pcn" (hint: keep one of them)`},
		{"paper of a scheme that is not compared", "over: mean", "schemes: [pcn]", "3.1ms, pcn",
			`unknown scheme of this comparison "pfc" (hint: did you mean "pcn"?)`},
		{"bounds of a scheme that is not compared", "over: mean", "schemes: [pfc]", "1.4ms}",
			`unknown scheme of this comparison "pcn" (hint: did you mean "pfc"?)`},
		{"unit of rates", "rate_unit: 10kbps,", "rate_unit: 3kbps,", "3kbps,",
			`3kbps does not divide 8Gbps (hint: 2.56kbps or 3.125kbps do)`},
		{"share above 1", "congested_share: 0.9,", "congested_share: 95,", "95,",
			`95 is out of range (hint: 0 to 1)`},
		{"no duration", "duration: 4ms\n", "", "name:", `"duration" is missing (hint: write 15ms)`},
		{"negative duration", "duration: 4ms", "duration: -4ms", "-4ms",
			`-4ms is out of range (hint: 1us to 100s)`},
		{"bins do not fit", "warmup: 2ms", "warmup: 2.01ms", "2.01ms",
			`warmup 2.01ms is not a whole number of bins (hint: write a multiple of sample, 50us)`},
		{"duration is no multiple", "duration: 4ms", "duration: 4.01ms", "4.01ms",
			`duration 4.01ms is not a whole number of bins (hint: write a multiple of sample, 50us)`},
		{"dilation", "dilation: 9", "dilation: 17", "17", `17 is out of range (hint: 0 to 16)`},
		{"engine", "engine: sim", "engine: ns3", "ns3",
			`unknown engine "ns3" (hint: one of kernel, sim, fluid)`},
		{"unknown host", "from: H0", "from: H9", "H9",
			`unknown host "H9" (hint: did you mean "H0"?)`},
		{"switch is no host", "to: R0, start", "to: S0, start", "S0, start",
			`S0 is a switch (hint: flows are between hosts: H0, H1 to R1)`},
		{"no host", "from: H1, ", "", "{name: F1", `"from" is missing (hint: add from:)`},
		{"to itself", "from: H1, to: R1", "from: H1, to: H1", "H1}",
			`flow goes from H1 to itself (hint: name another receiver)`},
		{"above line rate", "limit_rate: 5Gbps", "limit_rate: 50Gbps", "50Gbps",
			`50Gbps is out of range (hint: 1kbps to 10Gbps)`},
		{"above limit", "initial_rate: 2Gbps", "initial_rate: 6Gbps", "6Gbps",
			`6Gbps is out of range (hint: 1kbps to 5Gbps)`},
		{"before warm-up", "start: -1ms", "start: -3ms", "-3ms",
			`-3ms is out of range (hint: -2ms to 3.999999ms)`},
		{"flow twice", "name: F1", "name: F0", "F0, from: H1",
			`duplicate name "F0" (hint: give each flow and burst its own name)`},
		{"flow of a group twice", "name: F1", "name: web-H2-1", "web, from",
			`duplicate name "web-H2-1" (hint: give each flow and burst its own name)`},
		{"host of a group twice", "from: H2..H3", "from: [H2, H2]", "[H2, H2]",
			`H2 sends twice (hint: use count: to send more than one)`},
		{"unknown host of a group", "from: H2..H3", "from: H2..H9", "H2..H9",
			`unknown host "H5" (hint: did you mean "H0"?)`},
		{"group to itself", "H2..H3, to: R0", "H2..H3, to: H3", "H3, start",
			`flow goes from H3 to itself (hint: name another receiver)`},
		{"receivers for some only", "H2..H3, to: R0", "H2..H4, to: R0..R1", "R0..R1, start",
			`3 hosts send to 2 (hint: give one receiver, or one for each sender)`},
		{"pair of one host", "H2..H3, to: R0", "H2..H3, to: [R0, H3]", "[R0, H3]",
			`flow goes from H3 to itself (hint: name another receiver)`},
		{"unknown receiver of a group", "H2..H3, to: R0", "H2..H3, to: [R0, R5]", "[R0, R5]",
			`unknown host "R5" (hint: did you mean "R0"?)`},
		{"priority of a flow", "to: R0, start", "to: R0, priority: 7, start", "7, start",
			`7 is out of range (hint: 0 to 6)`},
		{"priority of a burst", "flows: 16", "flows: 16, priority: -1", "-1, size",
			`-1 is out of range (hint: 0 to 6)`},
		{"priority of a metric", "max: 5%", "max: 5%, priority: 0", "0}",
			`metric "lateness_p99" does not take "priority" (hint: remove it)`},
		{"group of no host", "from: H2..H3", "from: []", "[]",
			`no host sends (hint: write H2..H15)`},
		{"group too late", "every: 10us", "every: 4ms", "4ms",
			`only 1 of 2 flows start before the end of the run`},
		{"group without count", "count: 2, every", "every", "10us",
			`"every" needs "count" (hint: write count: 10)`},
		{"too many flows in groups", "count: 2", "count: 50001", "- {name: F0",
			`100061 flows are too many (hint: at most 100000)`},
		{"unknown flow of a group", "throughput: [F0]", "throughput: [web-H2-2]", "web-H2-2",
			`unknown flow "web-H2-2" (hint: did you mean "web-H2-0"?)`},
		{"flow and burst", "name: burst", "name: F1", "F1, from: H2",
			`duplicate name "F1" (hint: give each flow and burst its own name)`},
		{"sum as name", "name: F1", "name: F1+F2", "F1+F2",
			`"F1+F2" can't be a name (hint: letters, digits, "_" and "-")`},
		{"bad range", "H2..H4, to", "H4..H2, to", "H4..H2",
			`"H4..H2" is not a range of nodes (hint: write H2..H15)`},
		{"range of two kinds", "H2..H4, to", "H2..R4, to", "H2..R4",
			`"H2..R4" is not a range of nodes (hint: write H2..H15)`},
		{"range beyond", "H2..H4, to", "H2..H5, to", "H2..H5",
			`unknown host "H5" (hint: did you mean "H0"?)`},
		{"sender twice", "[H2, H3..H4]", "[H2, H2..H4]", "[H2, H2",
			`H2 sends twice (hint: use flows: to send more than one)`},
		{"burst to itself", "to: R1, at", "to: H3, at", "H2..H4, to: H3",
			`H3 sends to itself (hint: name another receiver)`},
		{"late burst", "at: 0.5ms", "at: 4ms", "4ms, flows",
			`4ms is out of range (hint: -2ms to 3.999999ms)`},
		{"no flows", "flows: 16", "flows: 0", "0, size", `0 is out of range (hint: 1 to 1024)`},
		{"no size", ", size: 64KB", "", "{name: burst", `"size" is missing (hint: add size:)`},
		{"unknown link", "pause: [S1->S0]", "pause: [S1->S9]", "S1->S9",
			`unknown link "S1->S9" (hint: did you mean "S1->S0"?)`},
		{"not a link", "queues: [S1->R1]", "queues: [S0->R1]", "S0->R1",
			`unknown port "S0->R1" (hint: did you mean "S0->H1"?)`},
		{"unknown flow", "throughput: [F0]", "throughput: [F7]", "F7",
			`unknown flow "F7" (hint: did you mean "F0"?)`},
		{"no metric", "metric: lateness_p99, ", "", "{what: on time",
			`"metric" is missing (hint: add metric:)`},
		{"unknown metric", "metric: lateness_p99", "metric: latenes_p99", "latenes_p99",
			`unknown metric "latenes_p99" (hint: did you mean "lateness_p99"?)`},
		{"no bound", ", max: 5%", "", "{what: on time",
			`there is no bound (hint: add min: or max:)`},
		{"bound of another unit", "max: 5%", "max: 5ms", "5ms}",
			`5ms is a time, but metric "lateness_p99" is a share ` +
				`(hint: write a share as 5% or 0.05)`},
		{"min above max", "min: 1Gbps", "min: 3Gbps", "3Gbps",
			`min 3Gbps is above max 2Gbps (hint: swap them)`},
		{"scheme not run", "schemes: [pfc, pcn]", "schemes: [pfc]", "pcn, name: F1",
			`unknown scheme of this file "pcn" (hint: did you mean "pfc"?)`},
		{"argument missing", "target: 9Gbps, ", "", "{what: both",
			`metric "recovery_time" needs "target" (hint: add target:)`},
		{"links missing", "links: [S0->H0], ", "", "{what: both",
			`metric "recovery_time" needs "links" (hint: add links:)`},
		{"no links", "links: [S0->H0], ", "links: [], ", "[], target",
			`"links" is empty (hint: name at least one, or remove it)`},
		{"argument of another metric", "max: 5%", "max: 5%, flows: [F0]", "[F0]}",
			`metric "lateness_p99" does not take "flows" (hint: remove it)`},
		{"unknown in sum", "F0+F1, F0", "F0+F9, F0", "F0+F9",
			`unknown flow "F9" (hint: did you mean "F0"?)`},
		{"unknown moment", "since: pause_end", "since: pause_ends", "pause_ends",
			`unknown moment "pause_ends" (hint: did you mean "pause_end"?)`},
		{"unknown scheme far from all", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, xxxxxxxxxx]",
			"xxxxxxxxxx]",
			`unknown scheme "xxxxxxxxxx" (hint: ANY CONTROL)`},
		{"misspelt kernel control", "schemes: [pfc, pcn]", "schemes: [pfc, pcn, cubik]", "cubik]",
			`unknown scheme "cubik" (hint: did you mean "cubic"?)`},
		{"count of another kind", "burst_hosts: 3", "senders: 3", "3, rate",
			`a fig1 has no "senders" (hint: it has burst_hosts, bottleneck, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"marking without kmin", "marking: {kmin: 20KB, ", "marking: {", "{kmax: 80KB",
			`"kmin" is missing (hint: add kmin:)`},
		{"marking without kmax", "kmax: 80KB, ", "", "{kmin: 20KB",
			`"kmax" is missing (hint: add kmax:)`},
		{"marking without pmax", ", pmax: 25%", "", "{kmin: 20KB",
			`"pmax" is missing (hint: add pmax:)`},
		{"kmin above kmax", "kmin: 20KB", "kmin: 80001B", "80001B",
			`kmin 80.001KB is above kmax 80KB (hint: swap them)`},
		{"own kmin above kmax", "kmin: 11KB", "kmin: 13KB", "13KB",
			`13KB is out of range (hint: 0B to kmax = 12KB)`},
		{"unknown set of DCQCN", "set: ns3-rdma", "set: ns3", "ns3, g",
			`unknown set of parameters "ns3" (hint: one of paper, ns3-rdma, hpcc)`},
		{"unknown set of TIMELY", "set: paper", "set: snipet", "snipet",
			`unknown set of parameters "snipet" (hint: did you mean "snippet"?)`},
		{"not a truth value", "clamp_target: false", "clamp_target: yes", "yes, alpha",
			`invalid value "yes": want true or false`},
		{"list for a truth value", "alpha_first: false", "alpha_first: [true]", "[true]",
			`want a single value, not a list or a mapping`},
		{"T_low above T_high", "t_low: 3us", "t_low: 5us", "5us, t_high",
			`5us is out of range (hint: 0ns to t_high = 4us)`},
		{"unknown increase", "half_from: hai", "half_from: fr", "fr}",
			`unknown half_from "fr" (hint: one of ai, hai)`},
		{"g is no shift", "g: 1/8,", "g: 0.1,", "0.1,",
			`0.1 is not a power of 1/2 (hint: write 1/16)`},
		{"PFC off and threshold", "pfc: {dynamic", "pfc: {off: true, dynamic", "{alpha",
			`"dynamic" is given, and PFC is off (hint: keep one of them)`},
		{"PFC off and xoff", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}, schemes: [pfc]}",
			"pfc: {off: true, xoff: 1MB}", "1MB",
			`"xoff" is given, and PFC is off (hint: keep one of them)`},
		{"PFC off and xon", "pfc: {dynamic: {alpha: 1/8, xon_offset: 3KB}, schemes: [pfc]}",
			"pfc: {off: true, xon: 1MB}", "1MB",
			`"xon" is given, and PFC is off (hint: keep one of them)`},
		{"times without every", "every: 1ms, times: 3", "times: 3", "3}",
			`"times" needs "every" (hint: write every: 1ms)`},
		{"repeats too often", "times: 3", "times: 5", "5}",
			`only 4 of 5 starts are before the end of the run`},
		{"negative times", "times: 3", "times: -1", "-1}",
			`-1 is out of range (hint: 0 to 100000)`},
		{"too many flows", "every: 1ms, times: 3", "every: 1us, flows: 1000", "- {name: burst",
			`12000054 flows are too many (hint: at most 100000)`},
		{"event without link", "link: S0->S1, rate: 5Gbps", "rate: 5Gbps", "{at: 1ms",
			`"link" is missing (hint: add link:)`},
		{"event without rate", ", rate: 5Gbps}\n  - {link", "}\n  - {link", "{at: 1ms",
			`neither "rate", "state" nor "trace" is given (hint: add rate:, state: or trace:)`},
		{"event of no port", "link: S0->S1, rate: 5Gbps", "link: S0->S2, rate: 5Gbps", "S0->S2",
			`unknown port "S0->S2" (hint: did you mean "S0->S1"?)`},
		{"late event", "{at: 1ms, link", "{at: 4ms, link", "4ms, link",
			`4ms is out of range (hint: -2ms to 3.999999ms)`},
		{"slow event", "link: S0->S1, rate: 5Gbps", "link: S0->S1, rate: 999bps", "999bps",
			`999bps is out of range (hint: 1kbps to 4Tbps)`},
		{"two rates at once", "{at: 1ms, link", "{at: 0ms, link", "{link: S0->S1, rate: 1Gbps",
			`S0->S1 has two rates at 0ns (hint: keep one of them)`},
		{"too many rates", "links:\n", "links:\n" + eventsBut2 +
			"  - {at: -5us, link: S0->S1, rate: 1Gbps}\n", "S0->S1, rate: 1Gbps}\nfigures",
			`S0->S1 changes too often (hint: at most 64 times)`},
		{"send rate of no flow", "send_rate: [F1]", "send_rate: [burst]", "burst]",
			`unknown flow "burst" (hint: one of F0, F1, web, web-H2-0, web-H2-1, web-H3-0, web-H3-1)`},
		{"rate of no port", "rates: [S0->S1]", "rates: [S0]", "S0]",
			`unknown port "S0" (hint: one of H0->S0, S0->H0, H1->S0, S0->H1, H2->S1, S1->H2, H3->S1, S1->H3, H4->S1, S1->H4, R0->S1, S1->R0, R1->S1, S1->R1, S0->S1, S1->S0)`},
		{"reference without figure", "figure: throughput, ", "", "{scheme: pcn",
			`"figure" is missing (hint: add figure:)`},
		{"reference to no figure", "figure: throughput", "figure: pause", "pause, scheme",
			`unknown figure "pause" (hint: one of throughput, queue, send_rate, rates)`},
		{"reference without name", "name: F1, label", "label", "{figure: throughput",
			`"name" is missing (hint: add name:)`},
		{"reference to no flow", "name: F1, label", "name: S1->R1, label", "S1->R1, label",
			`unknown flow "S1->R1" (hint: one of F0, F1, web, web-H2-0, web-H2-1, web-H3-0, web-H3-1)`},
		{"reference to no port", "name: S1->R1, label", "name: F1, label", "F1, label: drawn",
			`unknown port "F1" (hint: one of H0->S0, S0->H0, H1->S0, S0->H1, H2->S1, S1->H2, H3->S1, S1->H3, H4->S1, S1->H4, R0->S1, S1->R0, R1->S1, S1->R1, S0->S1, S1->S0)`},
		{"reference of a scheme not run", "scheme: pcn, name: F1", "scheme: qcn, name: F1",
			"qcn, name", `unknown scheme of this file "qcn" (hint: did you mean "pcn"?)`},
		{"reference without label", ", label: drawn", "", "{figure: queue",
			`"label" is missing (hint: add label:)`},
		{"reference without points", ", points: [[0ms, 64KB]]", "", "{figure: queue",
			`"points" is missing (hint: add points:)`},
		{"reference with no points", "points: [[0ms, 64KB]]", "points: []", "[]",
			`there is no point (hint: write [[3.35ms, 1.25Gbps]])`},
		{"point of another unit", "[0ms, 64KB]", "[0ms, 64Mbps]", "[0ms, 64Mbps]",
			`64Mbps is a rate, but figure "queue" is a size (hint: write a size as 64KB)`},
		{"points out of order", "[4ms, 0]", "[3ms, 0]", "[3ms, 0]",
			`3ms is before the point above, 3.35ms`},
		{"point without value", "[0ms, 64KB]", "[0ms]", "[0ms]",
			`want a time and a value (hint: write [3.35ms, 1.25Gbps])`},
		{"point that is no list", "[[0ms, 64KB]]", "[0ms]", "0ms]",
			`want a time and a value (hint: write [3.35ms, 1.25Gbps])`},
		{"time of a point", "[0ms, 64KB]", "[3, 64KB]", "[3, 64KB]",
			`"3": unit is missing (hint: write a time as 5us)`},
		{"value of a point", "[0ms, 64KB]", "[0ms, 64Kb]", "[0ms, 64Kb]",
			`"64Kb" has an unknown unit (hint: write a time as 5us, a rate as 40Gbps, ` +
				`a size as 64KB)`},
		{"unknown case", "what: on time,", "what: on time, case: a,", "a, metric",
			`unknown case "a" (hint: the file has none: add one, or remove this)`},
		{"band missing", "band: 10%, ", "", "{what: S0 settles",
			`metric "settling_time" needs "band" (hint: add band:)`},
		{"band 0", "band: 10%", "band: 0", "0, max",
			`0 is out of range (hint: 0.0000152587890625 to 1)`},
		{"band of another metric", "target: 9Gbps, hold", "target: 9Gbps, band: 1%, hold", "1%",
			`metric "recovery_time" does not take "band" (hint: remove it)`},
		{"target of another unit", "target: 50KB", "target: 9Gbps", "9Gbps\n    over",
			`9Gbps is a rate, but the target of metric "queue_settling" is a size (hint: write a size as 64KB)`},
		{"target without unit", "target: 9Gbps", "target: 9", "9, hold",
			`9 is a count, but the target of metric "recovery_time" is a rate (hint: write a rate as 6Gbps)`},
		{"ports missing", "    ports: [S1->R1]\n", "", "what: queues drain",
			`metric "queue_settling" needs "ports" (hint: add ports:)`},
		{"unknown port", "ports: [S1->R1]", "ports: [S1->R2]", "S1->R2",
			`unknown port "S1->R2" (hint: did you mean "S1->H2"?)`},
		{"short hold", "hold: 1ms", "hold: 1ns", "1ns", `1ns is out of range (hint: 1us to 100s)`},
		{"comparison without what", "what: queues drain\n    metric", "metric", "metric: queue",
			`"what" is missing (hint: add what:)`},
		{"comparison without metric", "    metric: queue_settling\n", "", "what: queues drain",
			`"metric" is missing (hint: add metric:)`},
		{"unknown over", "over: mean", "over: middle", "middle",
			`unknown way to make one value "middle" (hint: one of max, min, mean, p50, p99)`},
		{"comparison of an unknown case", "over: mean", "cases: [a]", "a]",
			`unknown case "a" (hint: the file has none: add one, or remove this)`},
		{"paper of a scheme not run", "paper: {pfc: 3.1ms, pcn: 1.4ms}",
			"paper: {pfc: 3.1ms, qcn: 1.4ms}", "1.4ms}",
			`unknown scheme of this file "qcn" (hint: did you mean "pcn"?)`},
		{"paper of another unit", "pcn: 1.4ms}", "pcn: 1.4}", "1.4}",
			`1.4 is a count, but metric "queue_settling" is a time (hint: write a time as 2.6ms)`},
		{"paper twice", "pcn: 1.4ms}", "pcn: 1.4ms, pcn: 1ms}", "pcn: 1ms",
			`duplicate key "pcn" (hint: keep one of them)`},
		{"paper is no mapping", "paper: {pfc: 3.1ms, pcn: 1.4ms}", "paper: 3.1ms", "3.1ms",
			`want a mapping (hint: write {key: value})`},
		{"bounds of a scheme not run", "bounds: {pcn:", "bounds: {qcn:", "{min: 1ms, max: 2ms}",
			`unknown scheme of this file "qcn" (hint: did you mean "pcn"?)`},
		{"empty bounds", "{min: 1ms, max: 2ms}", "{}", "{}",
			`there is no bound (hint: add min: or max:)`},
		{"bounds of another unit", "{min: 1ms, max: 2ms}", "{min: 1KB}", "1KB}",
			`1KB is a size, but metric "queue_settling" is a time (hint: write a time as 2.6ms)`},
		{"bounds crossed", "{min: 1ms, max: 2ms}", "{min: 3ms, max: 2ms}", "3ms",
			`min 3ms is above max 2ms (hint: swap them)`},
		{"unknown bound", "{min: 1ms, max: 2ms}", "{most: 1ms}", "most",
			`unknown key "most" (hint: one of min, max)`},
		{"within 0", "within: 50%", "within: 0", "0\n",
			`0 is out of range (hint: 0.0000152587890625 to 100)`},
		{"within of what", "    paper: {pfc: 3.1ms, pcn: 1.4ms}\n", "", "50%",
			`"within" needs "paper" (hint: write paper: {pfc: 3.1ms})`},
		{"order of one", "pfc: 3.1ms, pcn: 1.4ms", "pfc: 3.1ms", "true",
			`"order" needs two schemes in "paper" (hint: write paper: {pfc: 3.1ms, pcn: 1.4ms})`},
		{"ratios to no scheme", "{to: pcn, min: 2}", "{min: 2}", "{min: 2}",
			`"to" is missing (hint: add to:)`},
		{"ratios to a scheme not run", "{to: pcn", "{to: bbr", "bbr",
			`unknown scheme of this file "bbr" (hint: one of pfc, pcn)`},
		{"ratios without min", "{to: pcn, min: 2}", "{to: pcn}", "{to: pcn}",
			`"min" is missing (hint: add min:)`},
		{"ratio 0", "{to: pcn, min: 2}", "{to: pcn, min: 0}", "0}",
			`0 is out of range (hint: 0.0000152587890625 to 1000000)`},
		{"case of no file with cases", "compare:", "cases: [{name: a b}]\ncompare:", "a b",
			`"a b" can't be a name (hint: lower-case letters, digits, "-" and ".")`},
		{"empty window", "from: 1ms, to: 2ms", "from: 2ms, to: 2ms", "2ms, min",
			`2ms is out of range (hint: 2.000001ms to 4ms)`},
		{"window beyond the run", "from: 1ms, to: 2ms", "from: 1ms, to: 5ms", "5ms, min",
			`5ms is out of range (hint: 1.000001ms to 4ms)`},
	})
}

// Files that vary: mistakes in cases, and in what cases make of the rest of the file.
func TestErrorsOfCases(t *testing.T) {
	testErrors(t, sweep, []spoilt{
		{"value without unit", "9.5Gbps}", "9.5}", "9.5}",
			`case "f1-9.5": "9.5": unit is missing (hint: write a rate as 40Gbps)`},
		{"value out of range", "9.5Gbps}", "50Gbps}", "50Gbps}",
			`case "f1-9.5": 50Gbps is out of range (hint: 1Mbps to 40Gbps)`},
		{"elsewhere out of range", "flows.F1.limit_rate: 9.5Gbps", "topology.rate: 4Gbps",
			"5Gbps}\nbursts",
			`case "f1-9.5", line 13: 5Gbps is out of range (hint: 1Mbps to 4Gbps)`},
		{"value that is a list", "9.5Gbps}", "[9.5Gbps]}", "[9.5Gbps]",
			`want a single value, not a list or a mapping`},
		{"no value", "9.5Gbps}", "}", "}}",
			`value is missing (hint: give a value or remove the key)`},
		{"list of settings", "{flows.F1.limit_rate: 9.5Gbps}", "[flows]", "[flows]",
			`want a mapping (hint: write {key: value})`},
		{"path twice", "9.5Gbps}", "9Gbps, flows.F1.limit_rate: 8Gbps}",
			"flows.F1.limit_rate: 8Gbps",
			`duplicate key "flows.F1.limit_rate" (hint: keep one of them)`},
		{"same value twice", "flows.F1.limit_rate: 9.5Gbps",
			"flows.F1.limit_rate: 9Gbps, flows.1.limit_rate: 50Gbps", "50Gbps",
			`case "f1-9.5": 50Gbps is out of range (hint: 1Mbps to 40Gbps)`},
		{"unknown key", "flows.F1.limit_rate: 9.5Gbps", "flows.F1.limt_rate: 9.5Gbps",
			"flows.F1.limt_rate",
			`case "f1-9.5": unknown key "limt_rate" (hint: did you mean "limit_rate"?)`},
		{"unknown item", "flows.F1.limit_rate: 9.5Gbps", "flows.F9.limit_rate: 9.5Gbps",
			"flows.F9.limit_rate",
			`case "f1-9.5": no item of the list is "F9" (hint: did you mean "F0"?)`},
		{"index beyond", "flows.F1.limit_rate: 9.5Gbps", "flows.2.limit_rate: 9.5Gbps",
			"flows.2.limit_rate",
			`case "f1-9.5": no item of the list is "2" (hint: one of F0, F1)`},
		{"negative index", "flows.F1.limit_rate: 9.5Gbps", "flows.-1.limit_rate: 9.5Gbps",
			"flows.-1.limit_rate",
			`case "f1-9.5": no item of the list is "-1" (hint: did you mean "F1"?)`},
		{"path through a value", "flows.F1.limit_rate: 9.5Gbps", "flows.F1.limit_rate.max: 9.5Gbps",
			"flows.F1.limit_rate.max", `case "f1-9.5": "max" is within a single value`},
		{"path that ends early", "flows.F1.limit_rate: 9.5Gbps", "flows.F1: 9.5Gbps", "9.5Gbps}",
			`case "f1-9.5": want a mapping (hint: write {key: value})`},
		{"empty path", "flows.F1.limit_rate: 9.5Gbps", "'': 9.5Gbps", "'': 9.5Gbps",
			`case "f1-9.5": unknown key "" (hint: ANY KEY)`},
		{"what makes no case", "flows.F1.limit_rate: 9.5Gbps", "expect.0.max: 9.5Gbps",
			"expect.0.max", `case "f1-9.5": "expect" is the same in all cases (hint: remove it)`},
		{"new mapping is not complete", "flows.F1.limit_rate: 9.5Gbps", "marking.kmin: 1KB",
			"marking.kmin", `case "f1-9.5": "kmax" is missing (hint: add kmax:)`},
		{"unknown scheme", "{name: plain}", "{name: plain, schemes: [cubik]}", "cubik]",
			`unknown scheme of the experiment "cubik" (hint: did you mean "cubic"?)`},
		{"no name", "{name: plain}", "{set: {}}", "{set: {}}",
			`"name" is missing (hint: lower-case letters, digits, "-" and ".")`},
		{"case twice", "name: f1-9.5", "name: plain", "plain, set",
			`duplicate case "plain" (hint: give each case its own name)`},
		{"name that is a path", "name: f1-9.5", "name: ../f1", "../f1",
			`"../f1" can't be a name (hint: lower-case letters, digits, "-" and ".")`},
		{"too many cases", "  - {name: plain}\n", strings.Repeat("  - {name: plain}\n", 100),
			"- {name: plain}", `102 cases are too many (hint: at most 100)`},
		{"expectation of an unknown case", "case: late", "case: lat", "lat, metric",
			`unknown case "lat" (hint: did you mean "late"?)`},
		{"expectation of a case", "from: -2ms", "from: -3ms", "-3ms",
			`case "late", line 14: -3ms is out of range (hint: -2ms to 3ms)`},
		{"comparison of an unknown case", "cases: [plain, late]", "cases: [plain, lat]", "lat]",
			`unknown case "lat" (hint: did you mean "late"?)`},
		{"comparison of a case twice", "cases: [plain, late]", "cases: [plain, plain]", "plain]",
			`duplicate case "plain" (hint: keep one of them)`},
		{"comparison of cases", "from: 0,", "from: 4ms,", "4ms,",
			`case "plain", line 12: 4ms is out of range (hint: -1ms to 3ms)`},
		{"dumbbell without burst hosts", "senders: 4", "senders: 4, burst_hosts: 4",
			"4, bottleneck",
			`a dumbbell has no "burst_hosts" (hint: it has senders, receivers, bottleneck, kind, rate, delay, error_rate, error_burst, jitter, reorder, reorder_delay, links and failed)`},
		{"too many senders", "senders: 4", "senders: 63", "63",
			`63 is out of range (hint: 1 to 62)`},
		{"no receivers", "senders: 4", "senders: 4, receivers: 0", "0, bottleneck",
			`0 is out of range (hint: 1 to 62)`},
		{"slow bottleneck", "rate: 20Gbps", "rate: 0", "0, delay",
			`0bps is out of range (hint: 1kbps to 800Gbps)`},
		{"long bottleneck", "delay: 50us", "delay: 11s", "11s",
			`11s is out of range (hint: 500ns to 10s)`},
		{"host of the other side", "from: A0", "from: C0", "C0",
			`unknown host "C0" (hint: did you mean "A0"?)`},
	})
}

// An error that several cases make is reported once, for the first.
func TestErrorsOfCasesAreNotRepeated(t *testing.T) {
	file := strings.NewReplacer("name: plain", "name: plain, set: {topology.rate: 4Gbps}",
		"set: {flows.0", "set: {topology.rate: 4Gbps, flows.0").Replace(sweep)
	_, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.ErrorMatches(err,
		`f.yaml:8:50: case "plain", line 12: 5Gbps is out of range \(hint: 1Mbps to 4Gbps\)`))
}

// What is just below or above its range is refused. Nothing is below the range of what is 0 or more
// and can't be negative.
func TestRanges(t *testing.T) {
	for _, tc := range []struct {
		path, below, above, want string
	}{
		{"marking.kmax", "0", "1000000001B", "1B to 1GB"},
		{"marking.pmax", "0", "1.01", "0.0000152587890625 to 1"},
		{"pcn.T", "999ns", "1.1s", "1us to 1s"},
		{"pcn.T_jitter", "-0.1", "51%", "0 to 0.5"},
		{"pcn.w_min", "0", "0.26", "0.0000152587890625 to w_max = 0.25"},
		{"pcn.w_max", "", "1", "w_min = 0.01 to below 1"},
		{"pcn.rate_unit", "999bps", "1.001Mbps", "1kbps to 1Mbps"},
		{"pcn.congested_share", "-0.1", "1.01", "0 to 1"},
		{"dcqcn.g", "0", "1.01", "0.0000152587890625 to 1"},
		{"dcqcn.alpha_timer", "999ns", "1.1s", "1us to 1s"},
		{"dcqcn.rate_timer", "999ns", "1.1s", "1us to 1s"},
		{"dcqcn.byte_counter", "", "10.1GB", "0B to 10GB"},
		{"dcqcn.fast_recovery", "0", "101", "1 to 100"},
		{"dcqcn.rate_ai", "0", "801Gbps", "1bps to 800Gbps"},
		{"dcqcn.rate_hai", "0", "801Gbps", "1bps to 800Gbps"},
		{"dcqcn.cnp_interval", "-1ns", "1.1s", "0ns to 1s"},
		{"dcqcn.decrease_interval", "-1ns", "1.1s", "0ns to 1s"},
		{"dcqcn.initial_alpha", "-0.1", "1.01", "0 to 1"},
		{"dcqcn.min_rate", "999bps", "10.1Gbps", "1kbps to 10Gbps"},
		{"dcqcn.marking.kmax", "0", "1.1GB", "1B to 1GB"},
		{"dcqcn.marking.pmax", "0", "1.01", "0.0000152587890625 to 1"},
		{"timely.ewma", "0", "1.01", "0.0000152587890625 to 1"},
		{"timely.beta", "0", "1.01", "0.0000152587890625 to 1"},
		{"timely.t_low", "-1ns", "4.1us", "0ns to t_high = 4us"},
		{"timely.t_high", "999ns", "1.1s", "1us to 1s"},
		{"timely.min_rtt", "-1ns", "1.1s", "0ns to 1s"},
		{"timely.delta", "0", "801Gbps", "1bps to 800Gbps"},
		{"timely.hai_after", "", "1001", "0 to 1000"},
		{"timely.hai_factor", "0", "1001", "1 to 1000"},
		{"timely.segment", "", "10.1MB", "0B to 10MB"},
		{"timely.max_cut", "0", "1.01", "0.0000152587890625 to 1"},
		{"timely.min_rate", "999bps", "10.1Gbps", "1kbps to 10Gbps"},
		{"timely.tcd_hold", "999ns", "1.1s", "1us to 1s"},
		{"ibcc.ccti_increase", "0", "128", "1 to 127"},
		{"ibcc.ccti_limit", "0", "128", "1 to 127"},
		{"ibcc.ccti_min", "", "64", "0 to ccti_limit = 63"},
		{"ibcc.ccti_timer", "999ns", "1.1s", "1us to 1s"},
		{"ibcc.cct_delay", "0", "16384", "0.0000152587890625 to 16383"},
		{"ibcc.cct_exponent", "0", "5", "1 to 4"},
		{"ibcc.becn_interval", "-1ns", "1.1s", "0ns to 1s"},
		{"qcn.qeq", "999B", "1.1GB", "1KB to 1GB"},
		{"qcn.w", "0.003", "65", "0.00390625 to 64"},
		{"qcn.sample_base", "999B", "1.1GB", "1KB to 1GB"},
		{"qcn.sample_jitter", "-0.1", "0.51", "0 to 0.5"},
		{"qcn.timer", "999ns", "1.1s", "1us to 1s"},
		{"qcn.byte_counter", "999B", "10.1GB", "1KB to 10GB"},
		{"qcn.fast_recovery", "0", "101", "1 to 100"},
		{"qcn.rate_ai", "0", "801Gbps", "1bps to 800Gbps"},
		{"qcn.rate_hai", "0", "801Gbps", "1bps to 800Gbps"},
		{"qcn.gd", "0", "1.01", "0.0000152587890625 to 1"},
		{"qcn.min_decrease_factor", "0", "1.01", "0.0000152587890625 to 1"},
		{"qcn.min_rate", "999bps", "10.1Gbps", "1kbps to 10Gbps"},
		{"qcn.hai_after_packets", "", "1000001", "0 to 1000000"},
		{"dctcp.g", "1/2048", "2", "0.0009765625 to 1"},
		{"dctcp.initial_alpha", "-0.1", "1.01", "0 to 1"},
		{"dctcp.marking.kmax", "0", "1.1GB", "1B to 1GB"},
		{"ldcp.alpha", "0", "1.01", "0.0000152587890625 to 1"},
		{"ldcp.beta", "0", "1.01", "0.0000152587890625 to 1"},
		{"ldcp.gamma", "0", "1.01", "0.0000152587890625 to 1"},
		{"ldcp.eta", "0", "1", "0.0000152587890625 to below 1"},
		{"ldcp.initial_window", "", "101MB", "0B to 100MB"},
		{"ldcp.wred_k", "", "1.1GB", "0B to 1GB"},
		{"ldcp.ack_every", "0", "3", "1 to 2"},
		{"ack_every", "0", "3", "1 to 2"},
		{"noise.moderation", "", "1.001ms", "0ns to 1ms"},
		{"noise.scheduling", "", "1.001ms", "0ns to 1ms"},
		{"ldcp.marking.kmax", "0", "1.1GB", "1B to 1GB"},
		{"switch.port_buffer", "14.999KB", "9.1MB", "15KB to 9MB"},
		{"topology.bottleneck.rate", "999bps", "4.001Tbps", "1kbps to 4Tbps"},
		{"topology.bottleneck.delay", "0ns", "10.1s", "1ns to 10s"},
		{"bursts.pair.every", "999ns", "100.1s", "1us to 100s"},
		{"bursts.pair.times", "-1", "100001", "0 to 100000"},
		{"flows.web.count", "0", "100001", "1 to 100000"},
		{"flows.web.every", "-1ns", "100.1s", "0ns to 100s"},
		{"links.0.rate", "999bps", "4.001Tbps", "1kbps to 4Tbps"},
		{"links.0.at", "-2.1ms", "4ms", "-2ms to 3.999999ms"},
	} {
		t.Run(tc.path, func(t *testing.T) {
			for _, value := range []string{tc.below, tc.above} {
				if value == "" {
					continue
				}
				file := full + "cases: [{name: a, set: {" + tc.path + ": " + value + "}}]\n"
				_, err := Parse("f.yaml", []byte(file))
				qt.Assert(t, qt.IsNotNil(err), qt.Commentf("%s", value))
				qt.Assert(t, qt.StringContains(err.Error(), ` is out of range (hint: `+tc.want+`)`))
			}
		})
	}
}

// A group may be measured and drawn by its name, and each of its flows by its own. A case may make
// it one flow.
func TestFlowsOfGroups(t *testing.T) {
	file := strings.Replace(smallest, "from: H0, to: R0}", "from: H0..H1, to: R0, count: 2, size: 1KB}", 1) + `
cases: [{name: two, set: {flows.F0.from: H0}}, {name: one, set: {flows.F0.from: H0, flows.F0.count: 1}}]
figures: {throughput: [F0]}
expect: [{what: both, metric: mean_rate, flows: [F0], max: 1Gbps}]
`
	e, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	for name, want := range map[string][]string{
		"two": {"F0-H0-0", "F0-H0-1"},
		"one": {"F0"},
	} {
		var got []string
		for _, f := range getCase(t, e, name).Flows {
			got = append(got, f.Name)
		}
		qt.Check(t, qt.DeepEquals(got, want))
	}
	_, err = Parse("f.yaml", []byte(strings.Replace(file, "flows: [F0]", "flows: [F0-H0-1]", 1)))
	qt.Check(t, qt.ErrorMatches(err, `.*case "one", line .*: unknown flow "F0-H0-1".*`))
}

// What is measured or drawn one by one needs its own rows of the series; of a sum with a group,
// that of the group will do.
func TestSeriesThatAreNeeded(t *testing.T) {
	const head = `name: n
topology: {kind: star, hosts: 3}
schemes: [pfc]
duration: 1ms
flows: [{name: G, from: H0..H1, to: R0, size: 1KB}, {name: K, from: H0..H1, to: R0}, {name: F, from: H2, to: R0}]
`
	for _, tc := range []struct {
		name, lines    string
		received, sent []string
	}{
		{"nothing", "", nil, nil},
		{"throughput", "figures: {throughput: [G, F, K-H1-0]}", []string{"F", "K-H1-0"}, nil},
		{"send rates", "figures: {send_rate: [G, F]}", []string{"F"},
			[]string{"F", "G-H0-0", "G-H1-0"}},
		{"mean rates", "expect: [{what: w, metric: mean_rate, flows: [K, G+F], min: 0}]",
			[]string{"F", "K-H0-0", "K-H1-0"}, nil},
		{"fairness", "compare: [{what: w, metric: jain, flows: [K], bounds: {pfc: {min: 0}}}]",
			[]string{"K-H0-0", "K-H1-0"}, nil},
		{"swing", "expect: [{what: w, metric: max_rate_swing, flows: [K+F], min: 0}]", nil,
			[]string{"F", "K-H0-0", "K-H1-0"}},
		{"completion", "expect: [{what: w, metric: completion_time, flows: [G], min: 0}]", nil,
			nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e, err := Parse("f.yaml", []byte(head+tc.lines))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.DeepEquals(slices.Sorted(maps.Keys(e.ReceivedSeries())), tc.received))
			qt.Check(t, qt.DeepEquals(slices.Sorted(maps.Keys(e.SentSeries())), tc.sent))
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
		if errors.As(one, &e) && strings.TrimPrefix((&Error{Msg: e.Msg, Hint: e.Hint}).Error(),
			": ") == want {
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
		{"empty", "", `f.yaml:1:1: file is empty (hint: start with name: and topology:)`},
		{"comment only", "# nothing\n",
			`f.yaml:1:1: file is empty (hint: start with name: and topology:)`},
		{"list", "- a\n", `f.yaml:1:1: want a mapping (hint: start with name: and topology:)`},
		{"second document", smallest + "---\nname: b\n",
			`f.yaml:7:1: second document (hint: write one experiment per file)`},
		// yaml.v3 counts from 0 here,
		{"syntax", "name: a\ntitle: [b\n",
			`f.yaml:2:8: did not find expected ',' or ']' (hint: close this bracket)`},
		{"no traffic", strings.Split(smallest, "flows:")[0],
			`f.yaml:1:1: there is no traffic (hint: add flows:, trace:, workload:, collective:, bursts: or programs:)`},
		{"flows that are no list", strings.Split(smallest, "flows:")[0] + "flows: {name: f}\n",
			`f.yaml:5:8: want a list (hint: write [a, b], or one item per line after "- ")`},
		{"too many bins", "sample: 1us\n" + strings.Replace(smallest, "15ms", "5s", 1),
			`f.yaml:1:9: 5001000 bins are too many (hint: make sample longer)`},
		{"one mistake is one error", strings.Replace(smallest, "kind: fig1",
			"kind: fig1, rate: 1bps", 1),
			`f.yaml:2:30: 1bps is out of range (hint: 1kbps to 800Gbps)`},
		{"recursive", "name: &a [*a]\n" + strings.TrimPrefix(smallest, "name: small\n"),
			`f.yaml:1:7: want a single value, not a list or a mapping`},
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
	file := strings.NewReplacer("kind: fig1", "kind: fig1, rate: 40", "H0", "X0", "15ms",
		"15").Replace(smallest)
	_, err := Parse("f.yaml", []byte(file))
	qt.Assert(t, qt.ErrorMatches(err, `f.yaml:2:30: "40": unit is missing \(hint: write a rate as 40Gbps\)
f.yaml:4:11: "15": unit is missing \(hint: write a time as 5us\)
f.yaml:6:22: unknown host "X0" \(hint: did you mean "H0"\?\)`))

	var first *Error
	qt.Assert(t, qt.ErrorAs(err, &first))
	qt.Assert(t, qt.Equals(*first, Error{File: "f.yaml", Line: 2, Col: 30,
		Msg: `"40": unit is missing`, Hint: "write a rate as 40Gbps"}))
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
	o, err := e.With(Changes{Seed: &seed})
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

func TestChanges(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))

	o, err := e.With(Changes{Seed: new(uint64(9)), Duration: new(3 * Millisecond),
		Dilation: new(uint(8)), Schemes: []string{"pcn"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(o.Seed, 9))
	qt.Assert(t, qt.Equals(o.Duration, 3*Millisecond))
	qt.Assert(t, qt.Equals(o.Dilation, Dilation{Shift: 8}))
	qt.Assert(t, qt.DeepEquals(o.Schemes, []string{"pcn"}))

	// Schemes that the file does not list: one of ours, and one of Linux.
	o, err = e.With(Changes{Schemes: []string{"timely", "bbr"}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(o.Schemes, []string{"timely", "bbr"}))

	// The original is as it was.
	qt.Assert(t, qt.Equals(e.Seed, 7))
	qt.Assert(t, qt.DeepEquals(e.Schemes, []string{"pfc", "pcn"}))
}

func TestChangesErrors(t *testing.T) {
	e, err := Parse("full.yaml", []byte(full))
	qt.Assert(t, qt.IsNil(err))
	for _, tc := range []struct {
		name string
		o    Changes
		want string
	}{
		{"unknown scheme", Changes{Schemes: []string{"timly"}},
			`--algo: unknown scheme "timly" \(hint: did you mean "timely"\?\)`},
		{"no scheme", Changes{Schemes: []string{}},
			`--algo: "schemes" is missing .*`},
		{"scheme twice", Changes{Schemes: []string{"pfc", "pfc"}},
			`--algo: duplicate scheme "pfc" \(hint: keep one of them\)`},
		{"duration is no multiple", Changes{Duration: new(3333 * Microsecond)},
			`--duration: duration 3.333ms is not a whole number of bins \(hint: write a multiple of sample, 50us\)`},
		{"no duration", Changes{Duration: new(Duration(0))},
			`--duration: "duration" is missing \(hint: write 15ms\)`},
		{"shorter than a start", Changes{Duration: new(500 * Microsecond)},
			`.*500us is out of range \(hint: -2ms to 499.999us\)\n.*only 1 of 3 starts are before the end of the run\n.*1ms is out of range .*`},
		{"shorter than an event", Changes{Duration: new(Millisecond)},
			`.*\n.*1ms is out of range \(hint: -2ms to 999.999us\)`},
		{"dilation", Changes{Dilation: new(uint(17))}, `--dilation: 17 is out of range \(hint: 0 to 16\)`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := e.With(tc.o)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

func TestBurstStarts(t *testing.T) {
	const ms = Millisecond
	for _, tc := range []struct {
		name  string
		burst Burst
		want  []Duration
	}{
		{"once", Burst{At: ms}, []Duration{ms}},
		{"until the end", Burst{At: -ms, Every: 2 * ms}, []Duration{-ms, ms, 3 * ms}},
		{"not at the end", Burst{Every: ms}, []Duration{0, ms, 2 * ms, 3 * ms}},
		{"some times", Burst{At: ms, Every: ms, Times: 2}, []Duration{ms, 2 * ms}},
		{"more times than fit", Burst{At: ms, Every: 2 * ms, Times: 9}, []Duration{ms, 3 * ms}},
		{"one time", Burst{At: ms, Every: ms, Times: 1}, []Duration{ms}},
		{"after the end", Burst{At: 4 * ms, Every: ms}, []Duration{}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			qt.Assert(t, qt.DeepEquals(tc.burst.Starts(4*ms), tc.want))
		})
	}
}

// checkParsed checks what the lab relies on about a case.
func checkParsed(t *testing.T, e *Experiment, name string) {
	c, err := e.Case(name)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(c.CaseName, name))
	n := c.Topology.Network()
	for _, l := range n.Links {
		qt.Assert(t, qt.IsTrue(Rate(l.RateBps) >= minRate && Duration(l.DelayNs) >= minDelay))
	}
	routes, err := n.Routes()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(routes.Validate()))
	flows := len(c.Flows)
	for _, b := range c.Bursts {
		starts := b.Starts(c.Duration)
		qt.Assert(t, qt.IsTrue(len(starts) > 0 && starts[len(starts)-1] < c.Duration))
		flows += len(b.From) * b.Flows * len(starts)
	}
	qt.Assert(t, qt.IsTrue(flows <= maxFlows))
	for _, scheme := range c.Schemes {
		m, ok := c.MarkingOf(scheme)
		qt.Assert(t, qt.IsTrue(!ok || m.KMin <= m.KMax && m.PMax > 0))
	}
}

// Whatever the file is, Parse returns, points into the file, and accepts only
// what it accepts again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(smallest))
	f.Add([]byte(full))
	f.Add([]byte(sweep))
	f.Add([]byte(strings.Replace(sweep, "flows.F1.limit_rate: 9.5Gbps",
		"topology.rate: 4Gbps, flows.F9: *f1, .: 1, a.b.c: 1", 1)))
	f.Add([]byte("{name: a, cases: &c [{name: b, set: {cases.0: *c}}], compare: [{paper: {pfc: [*c]}}]}"))
	f.Add([]byte("name: &a [*a]"))
	f.Add([]byte("{name: {a: b}, flows: [1, {}], expect: [{metric: mean_rate}]}"))
	f.Add([]byte(inline(hpccTopology, hpccFlows)))
	f.Add([]byte(inline(hpccTopology, trace)))
	f.Add([]byte(strings.Replace(smallest, "{kind: fig1}",
		"{kind: leaf-spine, spine_links: {parallel: 2}, failed: [L0-S1, L1-S0.1]}", 1)))
	f.Add([]byte("- \n---\n..."))
	f.Add([]byte("---"))
	lineBreak := regexp.MustCompile("[\n\r\u0085\u2028\u2029]")
	f.Fuzz(func(t *testing.T, data []byte) {
		e, err := Parse("f.yaml", data)
		if err == nil {
			again, err := e.chosenAgain(Changes{Schemes: e.Schemes, Seed: &e.Seed,
				Duration: &e.Duration})
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.DeepEquals(again.Flows, e.Flows))
			for _, name := range e.CaseNames() {
				checkParsed(t, e, name)
			}
			return
		}
		joined, ok := err.(interface{ Unwrap() []error })
		qt.Assert(t, qt.IsTrue(ok))
		// A value left out at the end of a file stands, to yaml.v3, on the line after it.
		lines := 2 + len(lineBreak.FindAll(data, -1))
		for _, one := range joined.Unwrap() {
			var located *Error
			qt.Assert(t, qt.IsTrue(errors.As(one, &located)))
			qt.Assert(t, qt.IsTrue(located.File != "f.yaml" || located.Line <= lines),
				qt.Commentf("%v", err))
		}
	})
}

// A share may be a number: 0.99 is 99%. A larger number is none.
func TestSharesAsNumbers(t *testing.T) {
	text := smallest + "expect: [{what: used, metric: utilisation, ports: [S0->S1], min: %s}]\n"
	for _, share := range []string{"0.99", "99%"} {
		e, err := Parse("e.yaml", fmt.Appendf(nil, text, share))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(e.Expect[0].Min.String(), "99%"))
	}
	_, err := Parse("e.yaml", fmt.Appendf(nil, text, "99"))
	qt.Check(t, qt.ErrorMatches(err, ".* 99 is a count, but .* is a share .hint: .* 5% or 0.05."))
}

// A bound behind the end of a run is no mistake while it is not known when the run ends.
func TestNoEndWithoutATime(t *testing.T) {
	const text = `name: n
engine: sim
topology: {kind: dumbbell, senders: 1, rate: 10Gbps}
schemes: [pfc]
warmup: %s
duration: %s
flows: [{name: F, from: A0, to: B0}]
expect: [{what: it is fast, metric: mean_rate, flows: [F], from: 5ms, min: 1Gbps}]
`
	for _, c := range []struct {
		warmup, duration string
		line             int // of the one mistake
	}{
		{"1ms", "2ms", 8}, {"-1ms", "2ms", 5}, {"x", "2ms", 5}, {"1ms", "-2ms", 6},
		{"1ms", "years", 6},
	} {
		_, err := Parse("n.yaml", fmt.Appendf(nil, text, c.warmup, c.duration))
		want := fmt.Sprintf("n.yaml:%d:.*", c.line) // . is no end of a line
		qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%+v", c))
	}
}

func TestPriorityOfAMetric(t *testing.T) {
	const text = `name: n
engine: sim
topology: {kind: dumbbell, senders: 1, rate: 10Gbps}
schemes: [pfc]
duration: 2ms
flows: [{name: F, from: A0, to: B0}]
expect: [{what: no PAUSE, metric: pause_count, links: [S1->S0], priority: %d, max: 0}]
`
	for priority, want := range map[int]string{
		0: "", 6: "", 7: `7 is out of range \(hint: 0 to 6\)`, -1: "-1 is out of range .*",
	} {
		_, err := Parse("n.yaml", fmt.Appendf(nil, text, priority))
		if want == "" {
			qt.Check(t, qt.IsNil(err))
			continue
		}
		qt.Check(t, qt.ErrorMatches(err, "n.yaml:7:.*: "+want))
	}
}
