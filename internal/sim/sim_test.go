// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// simulator runs the simulations of all tests.
var simulator = New()

// newWorld builds the network of a scheme's run, as one part.
func newWorld(
	ctx context.Context, r runtime, e *experiment.Experiment, name string,
) (*world, error) {
	return newWorlds(ctx, func() runtime { return r }, e, name, Options{})
}

// simulate runs a scheme of an experiment.
func simulate(t *testing.T, e *experiment.Experiment, scheme string) *result.Run {
	t.Helper()
	run, err := simulator.Run(t.Context(), e, scheme, func(float64) {})
	qt.Assert(t, qt.IsNil(err))
	return run
}

func parse(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("test.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return e
}

// shorten ends the experiment as early as its flows allow. Of flows that come again and again it
// keeps the first three.
func shorten(t *testing.T, e *experiment.Experiment) *experiment.Experiment {
	t.Helper()
	const starts = 3
	c := *e
	c.FlowGroups = slices.Clone(e.FlowGroups)
	for i := range c.FlowGroups {
		if g := &c.FlowGroups[i]; g.Every > 0 {
			g.Count = min(g.Count, starts)
		}
	}
	for d := 500 * experiment.Microsecond; d < e.Duration; d *= 2 {
		if short, err := c.With(experiment.Changes{Duration: &d}); err == nil {
			return short
		}
	}
	return e
}

// Every experiment runs with every scheme in every case, and loses nothing if it is lossless. A
// control of Linux is refused.
func TestEveryExperimentRuns(t *testing.T) {
	for _, name := range experiments.Names() {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			e, err := experiments.Load(name)
			qt.Assert(t, qt.IsNil(err))
			for _, caseName := range e.CaseNames() {
				c, err := e.Case(caseName)
				qt.Assert(t, qt.IsNil(err))
				c = shorten(t, c)
				for _, s := range c.Schemes {
					if scheme.IsKernelControl(s) {
						_, err := simulator.Run(t.Context(), c, s, func(float64) {})
						qt.Check(t, qt.ErrorMatches(err, ".*is Linux's own and not in the "+
							"simulator: run it with `--engine kernel`.*"))
						continue
					}
					run := simulate(t, c, s)
					qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid),
						qt.Commentf("%s %s: %v", caseName, s, run.Manifest.Reasons))
					qt.Check(t, qt.Equals(len(run.States) > 0, c.Switch.Detectors))
				}
			}
		})
	}
}

// Two runs give the same bytes in every file.
func TestSameBytes(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e = shorten(t, e)
	for _, s := range []string{"pcn", "dcqcn", "qcn"} {
		dirs := [2]string{t.TempDir(), t.TempDir()}
		for _, dir := range dirs {
			qt.Assert(t, qt.IsNil(simulate(t, e, s).Write(dir)))
		}
		sameFiles(t, dirs[0], dirs[1])
	}
}

// sameFiles checks that the files of two folders have the same bytes, but for some.
func sameFiles(t *testing.T, dirA, dirB string, but ...string) {
	t.Helper()
	files, err := os.ReadDir(dirA)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range files {
		if slices.Contains(but, f.Name()) {
			continue
		}
		a, err1 := os.ReadFile(filepath.Join(dirA, f.Name()))
		b, err2 := os.ReadFile(filepath.Join(dirB, f.Name()))
		qt.Assert(t, qt.IsNil(err1))
		qt.Assert(t, qt.IsNil(err2))
		qt.Check(t, qt.IsTrue(bytes.Equal(a, b)), qt.Commentf("%s of %s", f.Name(), dirB))
	}
}

const oneFlow = `
name: one
topology: {kind: dumbbell, senders: 1, rate: 10Gbps, delay: 5us}
schemes: [pfc]
warmup: 0ms
duration: 1ms
flows: [{name: F0, from: A0, to: B0, start: 0ms, size: 9340B}]
`

// A flow of ten full frames takes, on three links of 10 Gbit/s and 5 us: nine frames of 800 ns on
// the first, the last on all three, 15 us, and its ACK of 66 bytes, 52 ns on each link, back.
func TestCompletionToTheNanosecond(t *testing.T) {
	run := simulate(t, parse(t, oneFlow), "pfc")
	qt.Assert(t, qt.HasLen(run.Completions, 1))
	const want = 9*800 + 3*800 + 15_000 + 3*52 + 15_000
	qt.Check(t, qt.Equals(*run.Completions[0].FCTNs, want))
	qt.Check(t, qt.Equals(run.Flows[0].Packets, 10))
	qt.Check(t, qt.Equals(run.Flows[0].ReceivedBytes, 9340))
}

// Receivers of ack_every: 2 hold the ACK of an odd packet for Linux's least, 40 ms of a clock that
// is 1024 times slower, counted from that packet: the timer of an ACK that was sent is over
// (inet_csk_clear_xmit_timer). So the third of three waits for all of it, and a hundred, one each
// 800 ns, need fifty ACKs.
func TestDelayedACKToTheNanosecond(t *testing.T) {
	run := func(packets int) *result.Run {
		text := strings.Replace(oneFlow, "9340B", fmt.Sprintf("%dB", packets*934), 1)
		r := simulate(t, parse(t, text+"ack_every: 2\n"), "pfc")
		qt.Assert(t, qt.HasLen(r.Completions, 1))
		return r
	}
	const there, back, wait = 3*800 + 15_000, 3*52 + 15_000, 40_000_000 / 1024
	qt.Check(t, qt.Equals(*run(2).Completions[0].FCTNs, 800+there+back))
	qt.Check(t, qt.Equals(*run(3).Completions[0].FCTNs, 2*800+there+wait+back))
	hundred := run(100)
	qt.Check(t, qt.Equals(*hundred.Completions[0].FCTNs, 99*800+there+back))
	for _, p := range hundred.Ports {
		if p.Name == "B0->S1" {
			qt.Check(t, qt.Equals(p.SentPackets, 50))
		}
	}
}

const twoIntoOne = `
name: two
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 1us}
switch: {pfc: {xoff: 20KB, xon: 18KB}}
schemes: [pfc]
warmup: 0ms
duration: 1ms
bursts:
  - {name: X, from: H0, to: H2, at: 0ms, size: 100KB}
  - {name: Y, from: H1, to: H2, at: 0ms, size: 100KB}
`

// Two hosts send to a third at line rate. Each port holds half of what came in by it, so the 20,000
// bytes of XOFF are exceeded by the arrival of its 41st frame, or the one behind.
func TestPauseToTheNanosecond(t *testing.T) {
	run := simulate(t, parse(t, twoIntoOne), "pfc")
	qt.Assert(t, qt.Not(qt.HasLen(run.PFC, 0)))
	first := run.PFC[0]
	qt.Check(t, qt.Equals(first.Kind, result.Pause))
	qt.Check(t, qt.Equals(first.EffectNs-first.SentNs, 1000))
	qt.Check(t, qt.IsTrue(first.SentNs == 1000+41*800 || first.SentNs == 1000+40*800),
		qt.Commentf("%d", first.SentNs))
	paused := map[string]int{}
	for _, e := range run.PFC {
		if e.Kind == result.Pause {
			paused[e.To]++
		} else {
			paused[e.To]--
		}
	}
	for to, n := range paused {
		qt.Check(t, qt.Equals(n, 0), qt.Commentf("%s was paused and not resumed", to))
	}
	for _, f := range run.Flows {
		qt.Check(t, qt.Equals(f.ReceivedBytes, 100_000))
	}
}

// A lossy network drops, and every flow still arrives.
func TestLossIsRepaired(t *testing.T) {
	const lossy = `
name: lossy
topology: {kind: star, hosts: 5, rate: 10Gbps, delay: 1us}
switch: {buffer: 30KB, pfc: {off: true}}
schemes: [SCHEME]
warmup: 0ms
duration: 60ms
flows: [{name: F, from: H0..H3, to: H4, start: 0ms, size: 200KB}]
`
	for _, s := range []string{"ldcp", "pcn_dctcp", "dcqcn"} {
		run := simulate(t, parse(t, strings.ReplaceAll(lossy, "SCHEME", s)), s)
		var dropped, again uint64
		for _, p := range run.Ports {
			dropped += p.DroppedPackets()
		}
		for _, f := range run.Flows {
			again += f.Retransmissions
			qt.Check(t, qt.IsTrue(f.CompletionNs > 0), qt.Commentf("%s: %s", s, f.Name))
		}
		qt.Check(t, qt.IsTrue(dropped > 0), qt.Commentf("%s dropped nothing", s))
		qt.Check(t, qt.IsTrue(again > 0), qt.Commentf("%s sent nothing again", s))
	}
}

// The window of a flow falls to a few packets when it loses its first ones, and the rest of its
// flight is lost too: no timeout is needed to find that. Round trips of packets that were sent
// again count, or flows that lost much would pace by an old one, and be unequal.
func TestLostFlightNeedsNoTimeout(t *testing.T) {
	e, err := experiments.Load("ldcp-incast")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.Case("long-1000")
	qt.Assert(t, qt.IsNil(err))
	run := simulate(t, e, "ldcp")
	var again, timeouts uint64
	least, most := int64(1<<62), int64(0)
	for _, f := range run.Flows {
		again += f.Retransmissions
		timeouts += f.Timeouts
		least, most = min(least, f.SRTTNs), max(most, f.SRTTNs)
	}
	qt.Check(t, qt.IsTrue(again > 1000), qt.Commentf("sent again: %d", again))
	qt.Check(t, qt.Equals(timeouts, 0))
	qt.Check(t, qt.IsTrue(most < 2*least), qt.Commentf("round trips of %d to %d ns", least, most))
}

// Parameters that are auto have the values in a run that the file's check computes: the results are
// those of a file that gives these values.
func TestAutoIsItsValue(t *testing.T) {
	const text = `name: auto
topology: {kind: dumbbell, senders: 20, rate: 40Gbps, delay: 1us}
schemes: [pcn]
pcn: {T: %s, w_min: %s}
duration: 2ms
sample: 1ms
flows: [{name: F, from: A0..A19, to: B0..B19, count: 2, start: 0ms}]
`
	run := func(T, wMin string) (*experiment.Experiment, *result.Run) {
		e := parse(t, fmt.Sprintf(text, T, wMin))
		return e, simulate(t, e, "pcn")
	}
	e, auto := run("auto", "auto")
	values := e.Section("pcn")
	qt.Assert(t, qt.Equals(values.Get("w_min").Number, 1./(10*40)))
	_, given := run(values.Get("T").String(), "1/400")
	qt.Check(t, qt.DeepEquals(auto.Flows, given.Flows))
}
