// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// swiftHTSim are the values of csg-htsim's swift.cpp, but for its first window.
var swiftHTSim = rateSwiftParams{
	BaseTargetNs: 20_000, FsRangeNs: 100_000, Ai: q24One, Beta: q24One / 10 * 8,
	MaxMdf: q24One / 2, FsMin: q24One / 10, FsMax: 100, MaxCwnd: 1000, FirstCwnd: 10,
}

// swiftOracle is Algorithm 1 of Swift's paper with the target of section 3.5, in real numbers.
type swiftOracle struct {
	p                  rateSwiftParams
	cwnd, err          float64 // err: how far integers may be from it
	tLastDecrease, rtt uint64
	decreased          bool
}

// target is TargetDelay(), and how far it may be off: 1/sqrt is in units of 2^-16.
func (o *swiftOracle) target() (ns, err float64) {
	rangeNs := float64(o.p.FsRangeNs)
	fsMin, fsMax := q24Float(o.p.FsMin), float64(o.p.FsMax)
	span := 1/math.Sqrt(fsMin) - 1/math.Sqrt(fsMax)
	alpha := rangeNs / span
	beta := -alpha / math.Sqrt(fsMax)
	term := max(0, min(alpha/math.Sqrt(o.cwnd)+beta, rangeNs))
	err = 4*alpha/65536*(1+term/max(rangeNs, 1)) + alpha*o.err/2/math.Pow(o.cwnd, 1.5) + 1
	return float64(o.p.BaseTargetNs) + term, err
}

func (o *swiftOracle) canDecrease(now uint64) bool {
	return !o.decreased || now-o.tLastDecrease >= o.rtt
}

// cut multiplies the window; one packet is the least.
func (o *swiftOracle) cut(now uint64, factor, err float64) {
	before := o.cwnd
	o.err = o.err*factor + err*o.cwnd + 1/float64(q24One)
	o.cwnd = max(o.cwnd*factor, 1)
	if o.cwnd < before {
		o.tLastDecrease, o.decreased = now, true
	}
}

// step is one event. Where the delay is as near to the target as rounding goes, it does as got, the
// window that is to be checked, says.
func (o *swiftOracle) step(s rateSwiftStep) {
	got := u24(s.Rp.Cwnd)
	canDecrease := o.canDecrease(s.NowNs)
	if s.Event == rateEventLOSS {
		if canDecrease {
			o.cut(s.NowNs, 1-q24Float(o.p.MaxMdf), 1/float64(q24One))
		}
		return
	}
	if s.DelayNs == 0 || s.Acked == 0 {
		return
	}
	target, err := o.target()
	o.rtt = s.DelayNs
	delay := float64(s.DelayNs)
	over := delay >= target
	if math.Abs(delay-target) <= err {
		over = got <= o.cwnd
	}
	if over {
		if canDecrease {
			mdf := q24Float(o.p.MaxMdf)
			share := q24Float(o.p.Beta) * max(delay-target, 0) / delay
			o.cut(s.NowNs, max(1-share, 1-mdf), err/delay+3/float64(q24One))
		}
		return
	}
	if s.Limited != 0 {
		grown := o.cwnd + q24Float(o.p.Ai)/o.cwnd*float64(s.Acked)
		o.err = o.err*(1+q24Float(o.p.Ai)*float64(s.Acked)/o.cwnd/o.cwnd) + 1/float64(q24One)
		o.cwnd = min(grown, float64(o.p.MaxCwnd))
	}
}

// checkSwift runs the steps of a flow, of which the first is INIT, and compares each window with
// the oracle.
func checkSwift(t testing.TB, s *senders, p rateSwiftParams, steps []rateSwiftStep) {
	t.Helper()
	s.swift(t, p, steps)
	o := &swiftOracle{p: p, cwnd: float64(p.FirstCwnd)}
	for i, step := range steps[1:] {
		o.step(step)
		qt.Assert(t, qt.IsTrue(o.err < 0.01*o.cwnd),
			qt.Commentf("step %d: the bound is %g", i, o.err))
		near(t, u24(step.Rp.Cwnd), o.cwnd, o.err*(1+1e-6)+1e-7, "window, step %d of %+v", i, p)
		o.cwnd, o.err = u24(step.Rp.Cwnd), 0 // each step by itself
	}
}

// A flow of 100 packets has a target of 20 us, as its window is fs_max_cwnd.
func TestSwiftSteps(t *testing.T) {
	s := loadSenders(t)
	p := swiftHTSim
	p.FirstCwnd = 100
	ack := func(nowUs, delayUs uint64, acked uint32) rateSwiftStep {
		return rateSwiftStep{Event: rateEventACK, NowNs: 1e9 + nowUs*1000, DelayNs: delayUs * 1000,
			Acked: acked, Limited: 1}
	}
	lost := func(nowUs uint64) rateSwiftStep {
		return rateSwiftStep{Event: rateEventLOSS, NowNs: 1e9 + nowUs*1000}
	}
	for _, test := range []struct {
		name  string
		steps []rateSwiftStep
		want  float64
	}{
		{"below the target: a packet more for a window", []rateSwiftStep{ack(0, 19, 100)}, 101},
		{"at twice the target: 0.8 of a half less", []rateSwiftStep{ack(0, 40, 1)}, 60},
		{"a half at most", []rateSwiftStep{ack(0, 400, 1)}, 50},
		{"once a round trip", []rateSwiftStep{ack(0, 40, 1), ack(39, 40, 1)}, 60},
		{"the next", []rateSwiftStep{ack(0, 400, 1), ack(400, 400, 1)}, 25},
		{"a loss", []rateSwiftStep{lost(0)}, 50},
		{"a loss in the same round trip", []rateSwiftStep{ack(0, 400, 1), lost(10)}, 50},
		{"not measured", []rateSwiftStep{ack(0, 0, 1)}, 100},
		{"not below a packet", []rateSwiftStep{ack(0, 4000, 1), ack(4000, 4000, 1),
			ack(8000, 4000, 1), ack(12000, 4000, 1), ack(16000, 4000, 1), ack(20000, 4000, 1),
			ack(24000, 4000, 1), ack(28000, 4000, 1)}, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := append([]rateSwiftStep{{Event: rateEventINIT}}, test.steps...)
			checkSwift(t, s, p, steps)
			near(t, u24(steps[len(steps)-1].Rp.Cwnd), test.want, test.want/500, "window")
		})
	}
	// 1 / sqrt(4) is 0.5 of (0.5 - 0.1) / (sqrt(10) - 0.1) of 100 us
	p.FirstCwnd = 4
	steps := []rateSwiftStep{{Event: rateEventINIT}, ack(0, 10, 1)}
	checkSwift(t, s, p, steps)
	near(t, float64(steps[1].Rp.TargetNs), 20_000+100_000*0.4/(math.Sqrt(10)-0.1), 20, "target")
}

// randomSwift draws parameters and the events of a flow, behind its INIT.
func randomSwift(r *rand.Rand, events int) (rateSwiftParams, []rateSwiftStep) {
	p := swiftHTSim
	p.BaseTargetNs = logUniform(r, 1000, 1_000_000)
	p.FsRangeNs = pick(r, 0, logUniform(r, 1, 20*p.BaseTargetNs))
	p.Ai = pick(r, p.Ai, q24One/65536+r.Uint32N(q24One*4))
	p.Beta = pick(r, p.Beta, q24One/65536+r.Uint32N(q24One-q24One/65536+1))
	p.MaxMdf = pick(r, p.MaxMdf, q24One/65536+r.Uint32N(q24One-q24One/65536+1))
	p.FsMax = pick(r, p.FsMax, 2+r.Uint32N(65534))
	p.FirstCwnd = 1 + r.Uint32N(1000)
	now := uint64(1e9)
	steps := []rateSwiftStep{{Event: rateEventINIT, NowNs: now}}
	for range events {
		now += logUniform(r, 10, 1_000_000)
		step := rateSwiftStep{Event: rateEventACK, NowNs: now, Acked: r.Uint32N(20),
			DelayNs: logUniform(r, p.BaseTargetNs/2, 4*p.BaseTargetNs+p.FsRangeNs),
			Limited: min(1, r.Uint32N(5))}
		if r.Uint32N(50) == 0 {
			step.Event = rateEventLOSS
		}
		steps = append(steps, step)
	}
	return p, steps
}

var _ = oracle(TestSwiftRandomACKs, "swift")

func TestSwiftRandomACKs(t *testing.T) {
	s := loadSenders(t)
	cuts, grows := 0, 0
	for seed := range uint64(100) {
		p, steps := randomSwift(rand.New(rand.NewPCG(seed, 75)), 1000)
		checkSwift(t, s, p, steps)
		for i := range steps[1:] {
			switch a, b := steps[i].Rp.Cwnd, steps[i+1].Rp.Cwnd; {
			case b < a:
				cuts++
			case b > a:
				grows++
			}
		}
	}
	qt.Check(t, qt.IsTrue(cuts > 1000 && grows > 1000), qt.Commentf("%d and %d", cuts, grows))
}
