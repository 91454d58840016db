// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// shortYAML has all kinds of traffic, and takes a link as much as it can.
const shortYAML = `
name: short
topology: {kind: fig1, burst_hosts: 2, rate: 40Gbps, delay: 5us}
frame: 1000B
schemes: [pfc, pcn]
pcn: {w_min: 1/64}
warmup: 0.3ms
duration: 0.5ms
sample: 50us
flows:
  - {name: long, from: H0, to: R0, initial_rate: 10Gbps}
  - {name: limited, from: H1, to: R1, limit_rate: 4Gbps}
  - {name: finite, from: H2, to: R0, start: 0ms, size: 100KB}
bursts: [{name: burst, from: H2..H3, to: R1, at: 0.1ms, flows: 2, size: 16KB}]
`

func runShort(t *testing.T, yaml, scheme string) *result.Run {
	t.Helper()
	var last [2]int64
	run, err := Run(context.Background(), parse(t, yaml), scheme, func(done, total int64) { last = [2]int64{done, total} })
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(last[0], last[1]))
	return run
}

func TestShortRun(t *testing.T) {
	for _, scheme := range []string{
		"pfc", "pcn", "dcqcn", "timely", "qcn", "ldcp", "pcn_dctcp", "cubic",
	} {
		t.Run(scheme, func(t *testing.T) {
			run := runShort(t, strings.Replace(shortYAML, "schemes:", "schemes: ["+scheme+"] #", 1), scheme)
			m := run.Manifest
			qt.Check(t, qt.Equals(m.Verdict, result.Valid), qt.Commentf("%s", m.Reasons))
			qt.Check(t, qt.HasLen(m.Reasons, 0))
			qt.Check(t, qt.HasLen(run.Conservation(), 0))
			qt.Check(t, qt.Equals(m.Scheme, scheme))
			qt.Check(t, qt.Equals(m.BaseRTTNs, 30_000))
			qt.Check(t, qt.Equals(m.DurationNs, 500_000))
			qt.Check(t, qt.Equals(m.CausalityViolations, 0))
			qt.Check(t, qt.Equals(m.GuestCPUBusy > 0, !virtualTime(t)))
			qt.Check(t, qt.IsTrue(m.GuestCPUBusy <= 1))
			for place, n := range m.LostPackets {
				qt.Check(t, qt.Equals(n, 0), qt.Commentf(place))
			}
			checkSeries(t, run)

			flows := map[string]result.Flow{}
			for _, f := range run.Flows {
				flows[f.Name] = f
				qt.Check(t, qt.Equals(f.ECN, f.Proto == result.TCP), qt.Commentf("flow %s", f.Name))
				qt.Check(t, qt.Equals(f.Retransmissions, 0), qt.Commentf("flow %s", f.Name))
				qt.Check(t, qt.IsTrue(f.ReceivedBytes <= f.SentBytes), qt.Commentf("flow %s", f.Name))
			}
			qt.Assert(t, qt.HasLen(flows, 3+4))
			checkFinite(t, flows["finite"], 0, 100_000)
			for name, f := range flows {
				qt.Check(t, qt.Equals(f.CompletionNs > 0, name == "finite"), qt.Commentf("flow %+v", f))
				qt.Check(t, qt.Equals(f.Timeouts, 0))
			}
			// the last ACK has a way of 10 us and nothing to wait for, and may be late
			backNs := flows["finite"].StartNs + flows["finite"].CompletionNs - *flows["finite"].EndNs
			qt.Check(t, qt.IsTrue(backNs > 9_500 && backNs < 10_500+mostQuantumNs), qt.Commentf("%d ns", backNs))
			for _, name := range []string{"burst-H2-0", "burst-H2-1", "burst-H3-0", "burst-H3-1"} {
				checkFinite(t, flows[name], 100_000, 16_000)
			}
			qt.Check(t, qt.IsNil(flows["long"].EndNs))
			qt.Check(t, qt.IsNil(flows["limited"].EndNs))

			startsSlowly := []string{"timely", "cubic", "ldcp", "pcn_dctcp"}
			if !slices.Contains(startsSlowly, scheme) {
				checkRate(t, run, "limited", 4e9)
			}
			if scheme == "pfc" { // without control it stays where it starts
				checkRate(t, run, "long", 10e9)
				qt.Check(t, qt.Equals(flows["long"].CNPDecrease+flows["long"].CNPIncrease, 0))
				return
			}
			sent := meanOf(run, result.KindSender, "long", 0)
			qt.Check(t, qt.IsTrue(sent > 1e9), qt.Commentf("%.0f bit/s", sent))
			if scheme != "pcn" {
				return
			}
			qt.Check(t, qt.IsTrue(flows["long"].CNPIncrease > 0))
			qt.Check(t, qt.IsTrue(meanRate(run, "long", 0) > 12e9))
			qt.Check(t, qt.IsTrue(flows["long"].SendRateBps > 0 && statOf(t, flows["long"], "w") > 0))
		})
	}
}

// statOf returns a statistic of the flow's algorithm, which must be there.
func statOf(t *testing.T, f result.Flow, key string) float64 {
	t.Helper()
	i := slices.IndexFunc(f.Stats, func(s result.Stat) bool { return s.Key == key })
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("no %q in %+v", key, f.Stats))
	return f.Stats[i].Value
}

// checkFinite: the flow has arrived as a whole, after its start.
func checkFinite(t *testing.T, f result.Flow, startNs int64, bytes uint64) {
	t.Helper()
	about := qt.Commentf("flow %+v", f)
	qt.Assert(t, qt.IsNotNil(f.EndNs), about)
	qt.Check(t, qt.Equals(f.ReceivedBytes, bytes), about)
	qt.Check(t, qt.Equals(f.SentBytes, bytes), about)
	qt.Check(t, qt.Equals(f.StartNs, startNs), about)
	// at 40 Gbit/s, with the shortest way of 10 us
	minNs := int64(bytes)*8/40 + 10_000
	qt.Check(t, qt.IsTrue(*f.EndNs >= f.StartNs+minNs && *f.EndNs <= 500_000), about)
}

// meanRate is that of a flow in frames, from a time on.
func meanRate(run *result.Run, flow string, fromNs int64) float64 {
	return meanOf(run, result.KindFlow, flow, fromNs)
}

func meanOf(run *result.Run, kind result.Kind, name string, fromNs int64) float64 {
	var sum, bins float64
	for _, s := range run.Series {
		if s.Kind == kind && s.Name == name && s.TimeNs >= fromNs {
			sum += float64(s.RateBps)
			bins++
		}
	}
	return sum / bins
}

// checkRate allows for the 1% that is a packet at the edge of the time, and for what the burst lets
// wait.
func checkRate(t *testing.T, run *result.Run, flow string, want float64) {
	t.Helper()
	got := meanRate(run, flow, -200_000)
	qt.Check(t, qt.IsTrue(got > 0.99*want && got < 1.01*want), qt.Commentf("flow %s: %.0f bit/s, want %.0f", flow, got, want))
}

// checkSeries: each object has a row for each bin, and the rows add up to the counters.
func checkSeries(t *testing.T, run *result.Run) {
	t.Helper()
	const bins = (300_000 + 500_000) / 50_000
	rows := map[string]int{}
	var received, sent float64
	for _, s := range run.Series {
		about := qt.Commentf("%+v", s)
		object := string(s.Kind) + " " + s.Name
		qt.Check(t, qt.Equals(s.TimeNs, -300_000+int64(rows[object])*50_000), about)
		rows[object]++
		switch s.Kind {
		case result.KindSender:
			qt.Check(t, qt.IsTrue(s.RateBps <= 40e9 || s.CwndPackets > 0), about)
		case result.KindFlow:
			received += float64(s.RateBps) * 50e-6 / 8
			qt.Check(t, qt.IsTrue(float64(s.RateBps) <= 40e9*1.03), about) // a frame at the edge
		case result.KindPort:
			qt.Check(t, qt.IsTrue(s.QueueBytes <= s.QueueMaxBytes), about)
			if strings.HasPrefix(s.Name, "S1->R") {
				sent += float64(s.RateBps) * 50e-6 / 8
			}
		}
	}
	senders := 0
	for _, f := range run.Flows {
		if f.Proto == result.TCP {
			senders++
		}
	}
	qt.Check(t, qt.HasLen(rows, len(run.Ports)+len(run.Flows)+senders))
	for name, n := range rows {
		qt.Check(t, qt.Equals(n, bins), qt.Commentf(name))
	}
	// what the receivers got is what the ports to them sent, but for what is on the last link and
	// not data
	qt.Check(t, qt.IsTrue(received <= sent && received > 0.9*sent), qt.Commentf("received %.0f B, sent %.0f B", received, sent))
}

// TestCancel: a run that is cancelled leaves nothing and says so.
func TestCancel(t *testing.T) {
	e := parse(t, strings.Replace(shortYAML, "duration: 0.5ms", "duration: 20ms", 1))
	before := context.Background()
	leavesNothing(t, func() {
		ctx, cancel := context.WithCancel(before)
		defer cancel()
		calls := 0
		run, err := Run(ctx, e, "pcn", func(done, total int64) {
			calls++
			cancel()
		})
		qt.Check(t, qt.ErrorIs(err, context.Canceled))
		qt.Check(t, qt.IsNil(run))
		qt.Check(t, qt.Equals(calls, 1))
	})
	leavesNothing(t, func() {
		ctx, cancel := context.WithCancel(before)
		cancel()
		_, err := Run(ctx, e, "pfc", nil)
		qt.Check(t, qt.ErrorIs(err, context.Canceled))
	})
}

// TestStartBelowTheFloor: a flow may be given an initial rate below its control's floor, as in the
// simulator.
func TestStartBelowTheFloor(t *testing.T) {
	yaml := strings.ReplaceAll(shortYAML, "[pfc, pcn]", "[dcqcn]")
	yaml = strings.ReplaceAll(yaml, "pcn: {w_min: 1/64}", "dcqcn: {min_rate: 5Gbps}")
	yaml = strings.ReplaceAll(yaml, "initial_rate: 10Gbps", "initial_rate: 1Gbps")
	run := runShort(t, yaml, "dcqcn")
	i := slices.IndexFunc(run.Flows, func(f result.Flow) bool { return f.Name == "long" })
	qt.Check(t, qt.IsTrue(run.Flows[i].SendRateBps >= 5e9), qt.Commentf("%+v", run.Flows[i]))
}

// TestInvalidRuns: what goes wrong in a run makes it INVALID.
func TestInvalidRuns(t *testing.T) {
	for _, test := range []struct {
		name    string
		yaml    string
		inQEMU  bool
		change  func(f *fabric)
		reasons []string
	}{
		{
			name:    "small buffer",
			yaml:    "switch: {buffer: 20KB, pfc: {xoff: 20KB}}",
			reasons: []string{`port S1->R1 dropped \d+ packets`, "lost packets, tcp retransmissions: .*"},
		},
		{
			name: "too fast for the machine", inQEMU: true,
			yaml: "dilation: 3",
			reasons: []string{
				"99% of packets were up to .* ns late, over 5% of the base RTT .*: raise `dilation`",
				".* packets came after their ideal time had been decided: raise `dilation`",
			},
		},
		{
			name:    "small ring buffer",
			change:  func(f *fabric) { f.options.EventsBytes = 4096 },
			reasons: []string{"\\d+ events found the ring buffer full: the run is too dense for it .*"},
		},
	} {
		t.Run(test.name, func(t *testing.T) {
			if test.inQEMU {
				vmtest.NeedsDebian(t)
			}
			p := planOf(t, shortYAML+test.yaml)
			f := describeFabric(p, algorithmIn(t, p, "pfc"))
			if test.change != nil {
				test.change(f)
			}
			qt.Assert(t, qt.IsNil(f.build(f.steps()...)))
			t.Cleanup(func() { qt.Check(t, qt.IsNil(f.close())) })
			run, err := measure(context.Background(), f, nil)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Invalid))
			for _, want := range test.reasons {
				qt.Check(t, qt.SliceAny(run.Manifest.Reasons, qt.F2(qt.Matches[string], want)))
			}
		})
	}
}

// TestStartOf: bursts are handed over ahead of their time.
func TestStartOf(t *testing.T) {
	f := buildFabric(t, shortYAML, "pfc")
	tr, err := newTraffic(context.Background(), f)
	qt.Assert(t, qt.IsNil(err))
	defer func() { qt.Check(t, qt.IsNil(tr.close())) }()
	// t = 0 leaves time to settle, to warm up, and 100 us of the kernel's time for each packet; on
	// a bin of the series
	t0Ns, nowNs := startOf(f, tr), f.clock.nowNs()
	qt.Check(t, qt.Equals(tr.bursts.frames(), 4*17)) // 16 KB are 17 frames
	leastNs := uint64(prepareNs + 300_000 + 4*17*100_000>>10)
	qt.Check(t, qt.IsTrue(t0Ns+1000 >= nowNs+leastNs && t0Ns <= nowNs+leastNs+50_000), qt.Commentf("%d ns", t0Ns-nowNs))
	qt.Check(t, qt.Equals(t0Ns%50_000, 0))
}

// TestJudge: a run without fault is valid, and each fault alone is not.
func TestJudge(t *testing.T) {
	f := buildFabric(t, shortYAML, "pfc")
	for _, test := range []struct {
		name  string
		spoil func(v *verdict, run *result.Run)
		want  string // the only reason; "": valid
	}{
		{"nothing", func(*verdict, *result.Run) {}, ""},
		{"as late as may be", func(_ *verdict, run *result.Run) { run.Manifest.LatenessP99Ns = 1500 }, ""},
		{
			"late", func(_ *verdict, run *result.Run) { run.Manifest.LatenessP99Ns = 1501 },
			"99% of packets were up to 1501 ns late, over 5% of the base RTT \\(1500 ns\\): raise `dilation`",
		},
		{
			"causality", func(_ *verdict, run *result.Run) { run.Manifest.CausalityViolations = 2 },
			"2 packets came after their ideal time had been decided: raise `dilation`",
		},
		{"lost", func(v *verdict, _ *result.Run) { v.lost["backlog"] = 3 }, "lost packets, backlog: 3"},
		{"event ring", func(v *verdict, _ *result.Run) { v.pfcOverflow = 4 }, "4 PAUSE or RESUME events found a port's event ring full"},
		{"UDP needs no ECN", func(_ *verdict, run *result.Run) { run.Flows[1].ECN = false }, ""},
		{"ECN", func(_ *verdict, run *result.Run) { run.Flows[0].ECN = false }, "flow F0 did not negotiate ECN"},
		{"dropped on the way out", func(_ *verdict, run *result.Run) {
			run.Ports[1].DroppedRingPackets = 5
			run.Ports[0].SentPackets += 5
			run.Ports[0].EnqueuedPackets += 5
		}, "port S0->R0 dropped 5 packets"},
		{"kept", func(_ *verdict, run *result.Run) { run.Ports[1].SentPackets-- }, "port S0->R0 accepted 10 packets, but sent 9, holds 0 and dropped 0"},
		{
			"vanished on a link", func(_ *verdict, run *result.Run) { run.Ports[1].SentPackets--; run.Ports[1].EnqueuedPackets-- },
			"switch S0 was sent 10 packets, but its ports took in 9",
		},
		{
			"PFC log", func(_ *verdict, run *result.Run) { run.Ports[0].PauseSent = 1 },
			"port H0->S0 sent 1 pause frames, but the log has 0",
		},
	} {
		v := &verdict{fabric: f, lost: map[string]uint64{"backlog": 0}}
		run := &result.Run{
			Manifest: result.Manifest{BaseRTTNs: 30_000},
			Flows:    []result.Flow{{Name: "F0", Proto: result.TCP, ECN: true}, {Name: "B", Proto: result.UDP}},
			Ports: []result.Port{
				{Name: "H0->S0", Node: "H0", Peer: "S0", EnqueuedPackets: 10, SentPackets: 10},
				{Name: "S0->R0", Node: "S0", Peer: "R0", EnqueuedPackets: 10, SentPackets: 10},
			},
		}
		test.spoil(v, run)
		qt.Assert(t, qt.IsNil(v.judge(run)))
		m := run.Manifest
		if test.want == "" {
			qt.Check(t, qt.Equals(m.Verdict, result.Valid), qt.Commentf("%s: %s", test.name, m.Reasons))
			continue
		}
		qt.Check(t, qt.Equals(m.Verdict, result.Invalid), qt.Commentf(test.name))
		qt.Assert(t, qt.HasLen(m.Reasons, 1), qt.Commentf("%s: %s", test.name, m.Reasons))
		qt.Check(t, qt.Matches(m.Reasons[0], test.want), qt.Commentf(test.name))
	}
}

// TestPriorities: the first priority takes a link whole, and only the other is paused.
func TestPriorities(t *testing.T) {
	run := runShort(t, `
name: priorities
topology: {kind: dumbbell, senders: 3}
switch: {pfc: {xoff: 30KB}}
schemes: [pfc]
warmup: 0.1ms
duration: 0.4ms
sample: 50us
flows:
  - {name: F, from: A0..A1, to: B0..B1, priority: 2}
  - {name: first, from: A2, to: B2, start: 0ms}
`, "pfc")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	rates, err := run.Measure(experiment.Measure{Metric: experiment.MeanRate, Flows: []string{"first", "F"}, From: 100_000})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(rates[0].Value > 39e9), qt.Commentf("%v", rates))
	qt.Check(t, qt.IsTrue(rates[1].Value+rates[2].Value < 0.5e9), qt.Commentf("%v", rates))
	for _, e := range run.PFC {
		qt.Check(t, qt.Equals(e.Class, experiment.DataClass(2)))
		qt.Check(t, qt.Not(qt.Equals(e.To, "A2")))
	}
	qt.Check(t, qt.IsTrue(len(run.PFC) > 0))
	for _, f := range run.Flows {
		want := uint8(2)
		if f.Name == "first" {
			want = 0
		}
		qt.Check(t, qt.Equals(f.Priority, want))
	}
}
