// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
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
	case rateEventLOSS: // not in the paper: see dcqcn_rp_loss
		o.recoveryOracle.cut(s.NowNs, s.SentBytes, 0.5, 0, true)
	}
}

// ack brings everything to now: what is due to happen does so at the first ACK or CNP after.
func (o *dcqcnOracle) ack(nowNs, sentBytes uint64) {
	o.periods(nowNs)
	if o.cutDue && nowNs-o.cutAt >= o.params.DecreaseIntervalNs {
		o.cut(nowNs, sentBytes)
	}
	o.advance(nowNs, sentBytes)
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
	if o.params.DecreaseIntervalNs > 0 { // HPCC's simulator, and Mellanox's NICs
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

// checkDCQCN runs the steps of one flow and compares each with the oracle. It returns the last state, and the oracle.
func checkDCQCN(t testing.TB, s *senders, p rateDcqcnParams, steps []rateDcqcnStep) (rateDcqcnRp, dcqcnOracle) {
	t.Helper()

	s.dcqcn(t, p, steps)
	o := dcqcnOracle{params: p}
	for i, step := range steps {
		o.apply(step)
		if err := o.check(step.Rp); err != nil {
			t.Fatalf("step %d: %v; %+v, params %+v", i, err, step, p)
		}
	}
	return steps[len(steps)-1].Rp, o
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

func TestDCQCNSteps(t *testing.T) {
	s := loadSenders(t)

	paper := paperDCQCN(40e9)
	keep := paper
	keep.ClampTarget = 0
	hpcc := hpccDCQCN(40e9)
	alphaFirst := paper
	alphaFirst.InitialAlpha, alphaFirst.AlphaFirst = q24One/2, 1
	alphaAfter := alphaFirst
	alphaAfter.AlphaFirst = 0
	const timer, counter = 55_000, 10e6

	for _, test := range []struct {
		name             string
		params           rateDcqcnParams
		flow             *dcqcnFlow
		wantCR, wantTR   uint64
		wantAlphaPer2048 uint32 // 2048 alpha
	}{
		{"starts at line rate", paper, newDCQCNFlow(), 40e9, 40e9, 2048},
		{"the first CNP halves", paper, newDCQCNFlow().cnp(), 20e9, 40e9, 2048},
		{"the second too, and the target follows", paper, newDCQCNFlow().cnp().cnp(), 10e9, 20e9, 2048},
		{"or not, if it keeps its target", keep, newDCQCNFlow().cnp().cnp(), 10e9, 40e9, 2048},
		{"but once there was a cycle, it follows", keep, newDCQCNFlow().cnp().wait(1, timer).cnp(), 15_029_296_875, 30e9, 2040 + 0},
		{"a cycle of bytes counts as well", keep, newDCQCNFlow().cnp().send(1, counter).cnp(), 15e9, 30e9, 2048},
		{"floor", paper, newDCQCNFlow().cnp().cnp().cnp().cnp().cnp().cnp().cnp().cnp().cnp(), 100e6, 156_250_000, 2048},
		{"alpha before the cut", alphaFirst, newDCQCNFlow().cnp(), 29_960_937_500, 40e9, 1028},
		{"alpha after the cut", alphaAfter, newDCQCNFlow().cnp(), 30e9, 40e9, 1028},
		{"fast recovery: halfway to the target", paper, newDCQCNFlow().cnp().cnp().wait(1, timer), 15e9, 20e9, 2040},
		{"not before the timer ends", paper, newDCQCNFlow().cnp().cnp().wait(1, timer-1), 10e9, 20e9, 2048},
		{"nor before the bytes are sent", paper, newDCQCNFlow().cnp().cnp().send(1, counter-1), 10e9, 20e9, 2048},
		{"four cycles of bytes", paper, newDCQCNFlow().cnp().cnp().send(4, counter), 19_375e6, 20e9, 2048},
		{"additive increase from the fifth on", paper, newDCQCNFlow().cnp().cnp().send(5, counter), 19_707_500_000, 20_040e6, 2048},
		{"and again", paper, newDCQCNFlow().cnp().cnp().send(6, counter), 19_893_750_000, 20_080e6, 2048},
		// CR = 20e9 - 10e9 / 16 after 8 cycles would be fast recovery by both: 20e9 - 10e9 / 256.
		{"both in fast recovery", paper, newDCQCNFlow().cnp().cnp().send(4, counter).wait(4, timer), 19_960_937_500, 20e9, 0},
		{"additive as long as one is", paper, newDCQCNFlow().cnp().cnp().send(4, counter).wait(6, timer), 20_050_234_375, 20_080e6, 0},
		{"hyper: R_HAI", paper, newDCQCNFlow().cnp().cnp().send(4, counter).wait(5, timer).send(1, counter), 0, 20_240e6, 0},
		{"hyper: by the lesser of the two", paper, newDCQCNFlow().cnp().cnp().send(4, counter).wait(5, timer).send(2, counter), 0, 20_440e6, 0},
		{"hyper: twice as fast once both have six", paper, newDCQCNFlow().cnp().cnp().send(4, counter).wait(5, timer).send(2, counter).wait(1, timer), 0, 20_840e6, 0},
		{"a CNP ends it", paper, newDCQCNFlow().cnp().cnp().send(9, counter).wait(9, timer).cnp().send(1, counter), 0, 0, 0},
		// HPCC's rpg_threshold 1: a cycle of fast recovery, one of R_AI = 8 Mbit/s, then R_HAI = 80 Mbit/s each.
		{"timer alone: fast recovery", hpcc, newDCQCNFlow().cnp().wait(1, 4000).cnp().wait(1, 300_000), 0, 40e9, 0},
		{"loss halves", paper, newDCQCNFlow().cnp().wait(1, timer).add(rateEventLOSS), 15e9, 30e9, 2040},
	} {
		t.Run(test.name, func(t *testing.T) {
			got, _ := checkDCQCN(t, s, test.params, test.flow.steps)
			if test.wantCR > 0 {
				qt.Check(t, qt.Equals(got.Recovery.RateBps, test.wantCR))
			}
			if test.wantTR > 0 {
				qt.Check(t, qt.Equals(got.Recovery.TargetBps, test.wantTR))
			}
			if test.wantAlphaPer2048 > 0 {
				qt.Check(t, qt.Equals(got.Alpha, test.wantAlphaPer2048<<13))
			}
		})
	}
}
var _ = slices.Max[[]int]
var _ = rand.New
