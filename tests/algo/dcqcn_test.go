// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// The parameter sets in use: SIGCOMM 2015, Fig. 14; ns3-rdma's mix/config.txt; HPCC's run.py --cc dcqcn.
var dcqcnSets = []struct {
	name   string
	params func(lineBps uint64) rateDcqcnParams
}{
	{"paper", paperDCQCN},
	{"ns3-rdma", func(lineBps uint64) rateDcqcnParams {
		p := paperDCQCN(lineBps)
		p.Recovery.TimerNs = 60_000
		p.Recovery.ByteCounterBytes = 300e6
		p.Recovery.Half = halfHyper
		p.Recovery.TargetGuard = 1
		p.InitialAlpha = q24One / 2
		p.AlphaFirst = 1
		return p
	}},
	{"hpcc", hpccDCQCN},
	{"ROOTECNCC", func(lineBps uint64) rateDcqcnParams {
		p := paperDCQCN(lineBps)
		p.UeResets = 1
		return p
	}},
}

func paperDCQCN(lineBps uint64) rateDcqcnParams {
	return rateDcqcnParams{
		Recovery: rateRecoveryParams{
			LineRateBps:      lineBps,
			MinRateBps:       min(100e6, lineBps/10),
			RaiBps:           40e6,
			RhaiBps:          200e6,
			TimerNs:          55_000,
			ByteCounterBytes: 10e6,
			Threshold:        5,
		},
		AlphaTimerNs: 55_000,
		G:            q24One / 256,
		InitialAlpha: q24One,
		ClampTarget:  1,
	}
}

func hpccDCQCN(lineBps uint64) rateDcqcnParams {
	return rateDcqcnParams{
		Recovery: rateRecoveryParams{
			LineRateBps: lineBps,
			MinRateBps:  min(1000e6, lineBps/10),
			RaiBps:      lineBps / 5000,
			RhaiBps:     lineBps / 500,
			TimerNs:     300_000,
			Threshold:   1,
		},
		AlphaTimerNs:       1000,
		DecreaseIntervalNs: 4000,
		DecreaseClock:      1,
		G:                  q24One / 256,
		InitialAlpha:       q24One,
	}
}

// dcqcnOracle is the RP of SIGCOMM 2015, sec. 3.1, in real numbers, with how far integers may stray:
//
//	(1 - g) alpha + g  rounded to 2^-24   moves alpha by at most 1/2 * 2^-24
//	(1 - g)^k alpha                       by at most that for each k, as far as it still counts
//	CR alpha / 2       with alpha / 2 rounded down to 2^-24
type dcqcnOracle struct {
	recoveryOracle
	params          rateDcqcnParams
	alpha, alphaErr float64

	heard    bool   // of congestion: before the first CNP, alpha waits
	alphaEnd uint64 // of the running period of K
	alphaDue bool   // a CNP came in it

	cuts   bool
	cutAt  uint64 // the latest
	cutDue bool   // a CNP came less than the decrease interval after
	tickAt uint64 // the next tick of the decrease clock; 0: it stands still
}

func (o *dcqcnOracle) apply(s rateDcqcnStep) {
	switch s.Event {
	case rateEventINIT:
		*o = dcqcnOracle{
			recoveryOracle: newRecoveryOracle(o.params.Recovery, s.NowNs),
			params:         o.params,
			alpha:          q24Float(o.params.InitialAlpha),
		}
	case rateEventACK:
		o.ack(s.NowNs, s.SentBytes)
	case rateEventNOTICE:
		o.ack(s.NowNs, s.SentBytes)
		o.cnp(s.NowNs, s.SentBytes)
	case rateEventHOLD:
		o.ack(s.NowNs, s.SentBytes)
		if o.params.UeResets != 0 { // rpr_cnm_received(i, 0, 2) of TCD's authors
			o.recoveryOracle.cut(s.NowNs, s.SentBytes, 1, 0, true)
		} else {
			o.hold(s.NowNs, s.SentBytes)
		}
	case rateEventLOSS: // not in the paper: see dcqcn_rp_loss
		o.recoveryOracle.cut(s.NowNs, s.SentBytes, 0.5, 0, true)
	}
}

// ack brings everything to now: what is due to happen does so at the first ACK or CNP after.
func (o *dcqcnOracle) ack(nowNs, sentBytes uint64) {
	o.ticks(nowNs, sentBytes)
	o.periods(nowNs)
	if o.cutDue && o.tickAt == 0 && nowNs-o.cutAt >= o.params.DecreaseIntervalNs {
		o.cut(nowNs, sentBytes)
	}
	o.advance(nowNs, sentBytes)
}

// ticks takes the ticks of the decrease clock that are over. The first cuts, if a CNP came before.
func (o *dcqcnOracle) ticks(nowNs, sentBytes uint64) {
	if o.tickAt == 0 || nowNs < o.tickAt {
		return
	}
	if o.cutDue {
		o.periods(o.tickAt)
		o.advance(o.tickAt, sentBytes)
		o.cut(o.tickAt, sentBytes)
	}
	o.tickAt += (1 + (nowNs-o.tickAt)/o.params.DecreaseIntervalNs) * o.params.DecreaseIntervalNs
}

// periods takes the periods of K that are over: one with a CNP raises alpha, k without lower it by (1 - g)^k.
func (o *dcqcnOracle) periods(nowNs uint64) {
	if !o.heard || nowNs < o.alphaEnd {
		return
	}
	k := 1 + (nowNs-o.alphaEnd)/o.params.AlphaTimerNs
	o.alphaEnd += k * o.params.AlphaTimerNs
	if o.alphaDue {
		o.alphaDue = false
		o.raiseAlpha()
		k--
	}
	g := q24Float(o.params.G)
	decay := math.Pow(1-g, float64(k))
	o.alphaErr = o.alphaErr*decay + powerErr(1-g, k) + q24Ulp/2
	o.alpha *= decay
}

func (o *dcqcnOracle) raiseAlpha() {
	g := q24Float(o.params.G)
	o.alpha = (1-g)*o.alpha + g
	o.alphaErr = (1-g)*o.alphaErr + q24Ulp/2
}

func (o *dcqcnOracle) cut(nowNs, sentBytes uint64) {
	moved := o.timer.over > 0 || o.counter.over > 0
	o.recoveryOracle.cut(nowNs, sentBytes, 1-o.alpha/2, o.alphaErr/2+q24Ulp/2, moved || o.params.ClampTarget != 0)
	o.cuts, o.cutAt, o.cutDue = true, nowNs, false
}

func (o *dcqcnOracle) cnp(nowNs, sentBytes uint64) {
	if o.params.DecreaseIntervalNs > 0 && o.params.DecreaseClock != 0 { // HPCC's simulator
		o.cutDue = true
		if o.tickAt != 0 {
			o.alphaDue = true
			return
		}
		o.heard = true
		o.alphaEnd = nowNs + o.params.AlphaTimerNs
		o.tickAt = nowNs + o.params.DecreaseIntervalNs
		return
	}
	if o.params.DecreaseIntervalNs > 0 { // Mellanox's NICs
		if !o.heard {
			o.alphaEnd = nowNs + o.params.AlphaTimerNs
		}
		o.heard, o.alphaDue, o.cutDue = true, true, true
		if !o.cuts || nowNs-o.cutAt >= o.params.DecreaseIntervalNs {
			o.cut(nowNs, sentBytes)
		}
		return
	}
	o.heard = true
	if o.params.AlphaFirst != 0 {
		o.raiseAlpha()
		o.cut(nowNs, sentBytes)
	} else {
		o.cut(nowNs, sentBytes)
		o.raiseAlpha()
	}
	o.alphaEnd = nowNs + o.params.AlphaTimerNs
}

func (o *dcqcnOracle) check(got rateDcqcnRp) error {
	const slack = 1e-12 // float64

	if err := math.Abs(q24Float(got.Alpha) - o.alpha); err > o.alphaErr+slack {
		return fmt.Errorf("alpha is %.9f, want %.9f within %.3g", q24Float(got.Alpha), o.alpha, o.alphaErr)
	}
	if got.Alpha > q24One {
		return fmt.Errorf("alpha is %g", q24Float(got.Alpha))
	}
	return o.recoveryOracle.check(got.Recovery)
}

// checkDCQCN runs the steps of one flow and compares each with the oracle. It returns the last state.
func checkDCQCN(t testing.TB, s *senders, p rateDcqcnParams, steps []rateDcqcnStep) rateDcqcnRp {
	t.Helper()

	s.dcqcn(t, p, steps)
	o := dcqcnOracle{params: p}
	for i, step := range steps {
		o.apply(step)
		if err := o.check(step.Rp); err != nil {
			t.Fatalf("step %d: %v; %+v, params %+v", i, err, step, p)
		}
	}
	qt.Assert(t, qt.IsTrue(o.unsures*20 <= len(steps)), qt.Commentf("%d of %d steps hang on rounding", o.unsures, len(steps)))
	return steps[len(steps)-1].Rp
}

// dcqcnFlow writes down what happens to a flow that starts at startNs.
type dcqcnFlow struct {
	steps     []rateDcqcnStep
	nowNs     uint64
	sentBytes uint64
}

func newDCQCNFlow() *dcqcnFlow {
	f := &dcqcnFlow{nowNs: startNs}
	return f.add(rateEventINIT)
}

func (f *dcqcnFlow) add(e rateEvent) *dcqcnFlow {
	f.steps = append(f.steps, rateDcqcnStep{NowNs: f.nowNs, SentBytes: f.sentBytes, Event: e})
	return f
}

func (f *dcqcnFlow) cnp() *dcqcnFlow { return f.add(rateEventNOTICE) }

func (f *dcqcnFlow) ue() *dcqcnFlow { return f.add(rateEventHOLD) }

// wait lets n times ns pass, with an ACK after each.
func (f *dcqcnFlow) wait(n int, ns uint64) *dcqcnFlow {
	for range n {
		f.nowNs += ns
		f.add(rateEventACK)
	}
	return f
}

// send sends n times so many bytes in no time, with an ACK after each.
func (f *dcqcnFlow) send(n int, bytes uint64) *dcqcnFlow {
	for range n {
		f.sentBytes += bytes
		f.add(rateEventACK)
	}
	return f
}

// jump lets time pass and bytes be sent, with one ACK after it all.
func (f *dcqcnFlow) jump(ns, bytes uint64) *dcqcnFlow {
	f.nowNs += ns
	f.sentBytes += bytes
	return f.add(rateEventACK)
}

// jumpUE lets time pass, with a UE after it and no ACK before.
func (f *dcqcnFlow) jumpUE(ns uint64) *dcqcnFlow {
	f.nowNs += ns
	return f.ue()
}

// holdFor makes n UEs, so far apart, with ACKs between.
func (f *dcqcnFlow) holdFor(n int, ns uint64) *dcqcnFlow {
	for range n {
		f.ue().wait(1, ns)
	}
	return f
}

func TestDCQCNSteps(t *testing.T) {
	s := loadSenders(t)

	const timer, counter = 55_000, 10e6
	paper := paperDCQCN(40e9)
	keep := paper
	keep.ClampTarget = 0
	after := paper
	after.InitialAlpha = q24One / 2
	first := after
	first.AlphaFirst = 1
	reset := paper
	reset.UeResets = 1

	start := newDCQCNFlow
	cut := func() *dcqcnFlow { return start().cnp().cnp() } // CR 10, TR 20 Gbit/s
	for _, test := range []struct {
		name           string
		params         rateDcqcnParams
		flow           *dcqcnFlow
		wantCR, wantTR uint64
	}{
		{"starts at line rate", paper, start(), 40e9, 40e9},
		{"the first CNP halves", paper, start().cnp(), 20e9, 40e9},
		{"so does the second, and the target follows", paper, cut(), 10e9, 20e9},
		{"or not, if cuts keep their target", keep, cut(), 10e9, 40e9},
		{"but after a cycle of the timer it follows", keep, start().cnp().wait(1, timer).cnp(), 15_058_593_750, 30e9},
		{"and after one of the byte counter", keep, start().cnp().send(1, counter).cnp(), 15e9, 30e9},
		{"floor", paper, start().cnp().cnp().cnp().cnp().cnp().cnp().cnp().cnp().cnp(), 100e6, 156_250_000},
		{"alpha after the cut", after, start().cnp(), 30e9, 40e9},
		{"alpha before the cut", first, start().cnp(), 29_960_937_500, 40e9}, // (1/2 * 255/256 + 1/256) / 2 of it
		{"fast recovery goes half way to the target", paper, cut().wait(1, timer), 15e9, 20e9},
		{"not before the timer ends", paper, cut().wait(1, timer-1), 10e9, 20e9},
		{"nor before the bytes are sent", paper, cut().send(1, counter-1), 10e9, 20e9},
		{"by the byte counter", paper, cut().send(4, counter), 19.375e9, 20e9},
		{"additive increase from the fifth cycle on", paper, cut().send(5, counter), 19_707_500_000, 20.04e9},
		{"of the timer", paper, cut().wait(5, timer), 19_707_500_000, 20.04e9},
		{"and again", paper, cut().send(6, counter), 19_893_750_000, 20.08e9},
		{"both in fast recovery", paper, cut().send(4, counter).wait(4, timer), 19_960_937_500, 20e9},
		{"additive while one of them is", paper, cut().send(4, counter).wait(6, timer), 20_040_234_375, 20.08e9},
		{"hyper increase", paper, cut().send(4, counter).wait(5, timer).send(1, counter), 20_120_234_375, 20.24e9},
		{"by the lesser of the two", paper, cut().send(4, counter).wait(5, timer).send(2, counter), 20_280_117_187, 20.44e9},
		{"when both went on", paper, cut().send(4, counter).wait(5, timer).send(2, counter).wait(1, timer), 20_560_058_593, 20.84e9},
		{"many cycles at once, the timer's first", paper, cut().jump(6*timer, 5*counter), 20_315_429_687, 20.44e9},
		{"never over line rate", paper, cut().send(9, counter).wait(100, timer), 40e9 - 1, 40e9},
		{"a CNP ends it", paper, cut().send(9, counter).wait(100, timer).cnp().cnp().send(1, counter), 0, 0},
		{"UE changes nothing", paper, cut().ue(), 10e9, 20e9},
		{"and puts the timer's cycle off", paper, cut().wait(1, timer-1).ue().wait(1, timer-1), 10e9, 20e9},
		{"by a cycle", paper, cut().wait(1, timer-1).ue().wait(1, timer), 15e9, 20e9},
		{"and the byte counter's", paper, cut().send(1, counter-1).ue().send(1, counter-1), 10e9, 20e9},
		{"by a cycle of it", paper, cut().send(1, counter-1).ue().send(1, counter), 15e9, 20e9},
		{"stages stay", paper, cut().wait(4, timer).ue().wait(1, timer), 19_707_500_000, 20.04e9},
		{"what was due before it is done", paper, cut().jumpUE(timer), 15e9, 20e9},
		{"UE after UE holds", paper, cut().holdFor(100, 50_000), 10e9, 20e9},
		{"and CE cuts as ever", paper, cut().ue().cnp(), 5e9, 10e9},
		{"UE leaves the rate of a fresh flow", paper, start().ue().wait(3, timer), 40e9, 40e9},
		{"ROOTECNCC takes back what is to recover", reset, cut().ue().wait(4, timer), 10e9, 10e9},
		{"for a cycle of additive increase", reset, cut().ue().wait(5, timer), 10.02e9, 10.04e9},
		{"and stages", reset, cut().wait(4, timer).ue().wait(4, timer), 19.375e9, 19.375e9},
		{"loss halves", paper, start().cnp().wait(1, timer).add(rateEventLOSS), 15e9, 30e9},
		{"and starts over", paper, start().cnp().wait(6, timer).send(6, counter).add(rateEventLOSS).send(4, counter).wait(1, timer-1), 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			got := checkDCQCN(t, s, test.params, test.flow.steps)
			if test.wantCR == 0 {
				return // what the oracle says
			}
			qt.Check(t, qt.Equals(got.Recovery.RateBps, test.wantCR))
			qt.Check(t, qt.Equals(got.Recovery.TargetBps, test.wantTR))
		})
	}
}

// Sec. 5: five cycles of fast recovery bring the rate back to the target, but for 2^-5 of the way.
func TestDCQCNFastRecovery(t *testing.T) {
	s := loadSenders(t)

	for _, lineBps := range []uint64{1e6, 10e9, 40e9, 100e9, maxLineBps} {
		p := paperDCQCN(lineBps)
		p.Recovery.Threshold = 6
		before := checkDCQCN(t, s, p, newDCQCNFlow().cnp().cnp().steps).Recovery
		after := checkDCQCN(t, s, p, newDCQCNFlow().cnp().cnp().wait(5, p.Recovery.TimerNs).steps).Recovery
		gapBps := before.TargetBps - before.RateBps
		qt.Check(t, qt.Equals(after.TargetBps, before.TargetBps))
		near(t, float64(after.RateBps), float64(after.TargetBps)-float64(gapBps)/32, 1, "CR at %d bit/s", lineBps)
	}
}

// HPCC's simulator (rdma-hw.cc, RateIncEventMlx): with F = 1 a cycle of fast recovery, one that adds R_AI, and R_HAI
// each from then on.
func TestDCQCNTimerAlone(t *testing.T) {
	s := loadSenders(t)

	for _, f := range []int{1, 2, 5} {
		p := hpccDCQCN(40e9)
		p.Recovery.Threshold = uint32(f)
		p.ClampTarget = 1
		p.DecreaseClock = 0
		flow := newDCQCNFlow().cnp().wait(1, p.DecreaseIntervalNs).cnp()
		target := checkDCQCN(t, s, p, flow.steps).Recovery.TargetBps
		var want []uint64
		for range f {
			want = append(want, target)
		}
		want = append(want, target+p.Recovery.RaiBps)
		for n := range uint64(4) {
			want = append(want, target+p.Recovery.RaiBps+(n+1)*p.Recovery.RhaiBps)
		}

		cut := len(flow.steps)
		flow.wait(len(want), p.Recovery.TimerNs)
		checkDCQCN(t, s, p, flow.steps)
		var got []uint64
		for _, step := range flow.steps[cut:] {
			got = append(got, step.Rp.Recovery.TargetBps)
		}
		qt.Check(t, qt.DeepEquals(got, want), qt.Commentf("targets, F = %d", f))
	}
}

// Without CNPs alpha is (1 - g)^k of what it was, whether each period of K is seen or many go by at once.
func TestDCQCNAlphaAfterSilence(t *testing.T) {
	s := loadSenders(t)

	const k = 55_000
	for _, g := range []float64{1. / 16, 1. / 256, 1. / 1024} {
		p := paperDCQCN(40e9)
		p.G = q24(g)
		tolerance := 2 * powerErr(1-g, math.MaxUint64)
		for _, n := range []uint64{1, 2, 7, 100, 256, 1000, 10_000, 1 << 32, 1<<32 + 1, 1 << 40} {
			at := newDCQCNFlow().cnp().wait(1, n*k)
			got := checkDCQCN(t, s, p, at.steps)
			near(t, q24Float(got.Alpha), math.Pow(1-g, float64(n)), tolerance, "alpha after %d periods, g %g", n, g)

			before := newDCQCNFlow().cnp().wait(1, n*k-1)
			got = checkDCQCN(t, s, p, before.steps)
			near(t, q24Float(got.Alpha), math.Pow(1-g, float64(n-1)), tolerance, "alpha before period %d ends, g %g", n, g)
		}
		oneByOne := newDCQCNFlow().cnp().wait(1000, k)
		got := checkDCQCN(t, s, p, oneByOne.steps)
		near(t, q24Float(got.Alpha), math.Pow(1-g, 1000), tolerance, "alpha after 1000 periods one by one, g %g", g)
	}
}

// Alpha waits for the first CNP (ns3-rdma and HPCC's simulator arm its timer there), however long a flow runs before.
func TestDCQCNFirstCNP(t *testing.T) {
	s := loadSenders(t)

	for _, set := range dcqcnSets {
		t.Run(set.name, func(t *testing.T) {
			p := set.params(40e9)
			early := checkDCQCN(t, s, p, newDCQCNFlow().cnp().steps)
			late := checkDCQCN(t, s, p, newDCQCNFlow().wait(100, 1e6).cnp().steps)
			qt.Check(t, qt.Equals(late.Recovery.RateBps, early.Recovery.RateBps))
			qt.Check(t, qt.Equals(late.Alpha, early.Alpha))
		})
	}
}

// Cuts are at least the decrease interval apart, and a CNP in between is answered when it is over, once.
func TestDCQCNDecreaseInterval(t *testing.T) {
	s := loadSenders(t)

	p := hpccDCQCN(40e9)
	p.DecreaseClock = 0
	cutTimes := func(flow *dcqcnFlow) (us []uint64) {
		checkDCQCN(t, s, p, flow.steps)
		for i, step := range flow.steps {
			if i > 0 && step.Rp.Recovery.RateBps < flow.steps[i-1].Rp.Recovery.RateBps {
				us = append(us, (step.NowNs-startNs)/1000)
			}
		}
		return us
	}
	everyMicrosecond := newDCQCNFlow().wait(1, 1000)
	for range 20 {
		everyMicrosecond.cnp().wait(1, 1000)
	}
	qt.Check(t, qt.DeepEquals(cutTimes(everyMicrosecond), []uint64{1, 5, 9, 13, 17, 21}))

	two := newDCQCNFlow().wait(1, 1000).cnp().wait(2, 1000).cnp().cnp().wait(20, 1000)
	qt.Check(t, qt.DeepEquals(cutTimes(two), []uint64{1, 5}))

	apart := newDCQCNFlow().wait(1, 1000).cnp().wait(9, 1000).cnp().wait(20, 1000)
	qt.Check(t, qt.DeepEquals(cutTimes(apart), []uint64{1, 10}))

	p.DecreaseClock = 1 // it ticks at 5, 9, 13 us and so on
	qt.Check(t, qt.DeepEquals(cutTimes(everyMicrosecond), []uint64{5, 9, 13, 17, 21}))
	qt.Check(t, qt.DeepEquals(cutTimes(two), []uint64{5}))
	qt.Check(t, qt.DeepEquals(cutTimes(apart), []uint64{5, 13}))

	p.DecreaseIntervalNs = 0 // each CNP cuts
	qt.Check(t, qt.DeepEquals(cutTimes(newDCQCNFlow().cnp().cnp().cnp()), []uint64{0, 0, 0}))
}

// TCD: alpha is of CNPs that say CE. However many say UE, it decays; and a cut that waits for its interval is made.
func TestDCQCNAlphaWhileUE(t *testing.T) {
	s := loadSenders(t)

	p := paperDCQCN(40e9)
	p.G = q24(1. / 16)
	got := checkDCQCN(t, s, p, newDCQCNFlow().cnp().holdFor(11*10, p.AlphaTimerNs/11).steps)
	near(t, q24Float(got.Alpha), math.Pow(15./16, 10), 1e-5, "alpha after 10 periods of UE")

	p = hpccDCQCN(40e9)
	p.DecreaseClock = 0
	got = checkDCQCN(t, s, p, newDCQCNFlow().cnp().wait(1, 1000).cnp().holdFor(4, 1000).steps)
	qt.Check(t, qt.IsTrue(got.Recovery.RateBps < 10.1e9), qt.Commentf("%d", got.Recovery.RateBps))
}

var _ = oracle(TestDCQCNRandomCNPs, "dcqcn", "dcqcn+tcd")

func TestDCQCNRandomCNPs(t *testing.T) {
	s := loadSenders(t)

	const length = 500
	for _, set := range dcqcnSets {
		t.Run(set.name, func(t *testing.T) {
			for i, lineBps := range []uint64{1e6, 100e6, 1e9, 10e9, 25e9, 40e9, 100e9, 400e9, maxLineBps} {
				r := rand.New(rand.NewPCG(uint64(i), 20))
				p := set.params(lineBps)
				checkDCQCN(t, s, p, randomDCQCNSteps(r, p, length))
			}
		})
	}
	t.Run("any", func(t *testing.T) {
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, 21))
			p := randomDCQCNParams(r)
			checkDCQCN(t, s, p, randomDCQCNSteps(r, p, length))
		}
	})
}

func randomDCQCNParams(r *rand.Rand) rateDcqcnParams {
	p := rateDcqcnParams{
		Recovery:     randomRecoveryParams(r, pick(r, halfNever, halfActive, halfHyper)),
		AlphaTimerNs: logUniform(r, 1, 1e9),
		G:            uint32(logUniform(r, 1, q24One-1)),
		InitialAlpha: uint32(r.IntN(q24One + 1)),
		ClampTarget:  uint32(r.IntN(2)),
		AlphaFirst:   uint32(r.IntN(2)),
	}
	if r.IntN(3) == 0 {
		p.DecreaseIntervalNs = logUniform(r, 1, 1e9)
		p.DecreaseClock = uint32(r.IntN(2))
	}
	if r.IntN(3) == 0 {
		p.Recovery.ByteCounterBytes = 0
	}
	return p
}

// randomDCQCNSteps makes a flow that hears CNPs now and then, or in bursts.
func randomDCQCNSteps(r *rand.Rand, p rateDcqcnParams, n int) []rateDcqcnStep {
	c := newSenderClock(r, p.Recovery)
	steps := []rateDcqcnStep{{NowNs: c.nowNs, Event: rateEventINIT}}
	share := pick(r, 0.02, 0.1, 0.5)
	for len(steps) < n {
		if r.IntN(4) > 0 {
			c.tick(r)
		}
		step := rateDcqcnStep{NowNs: c.nowNs, SentBytes: c.sentBytes, Event: rateEventACK}
		switch {
		case r.Float64() < share:
			step.Event = pick(r, rateEventNOTICE, rateEventNOTICE, rateEventHOLD)
		case r.IntN(100) == 0:
			step.Event = rateEventLOSS
		}
		steps = append(steps, step)
	}
	return steps
}
