// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Of recovery.h.
const (
	halfNever  = rateRecoveryHalfRECOVERY_HALF_NEVER
	halfActive = rateRecoveryHalfRECOVERY_HALF_AI
	halfHyper  = rateRecoveryHalfRECOVERY_HALF_HAI

	recoveryCycles = 32 // of one call
)

const maxLineBps = uint64(800e9)

// recoveryOracle is QCN's rate increase (Prabhakar's slides 26 and 27; the guard and the steps of hyper increase from
// ns3-rdma; HPCC's simulator where there is no byte counter), in real numbers, with how far integers may stray:
//
//	(CR + TR) / 2  rounded down to 1 bit/s  moves the rate by at most 1/2
//	TR / 8         rounded down             moves the target by less than 1
//
// and what strayed before is carried through the same equations.
type recoveryOracle struct {
	params rateRecoveryParams

	rate, target       float64 // CR and TR, in bit/s
	rateErr, targetErr float64
	timer, counter     cycles
	cutAtBytes         uint64

	unsure  bool // rounding decides whether the guard acted: TR is next to 10 CR
	unsures int
}

// cycles are the periods of the timer, or of the byte counter, since the latest cut.
type cycles struct {
	over uint32 // so many are
	end  uint64 // of the one that runs
}

type phase int

const (
	fastRecovery phase = iota
	activeIncrease
	hyperIncrease
)

func newRecoveryOracle(p rateRecoveryParams, nowNs uint64) recoveryOracle {
	return recoveryOracle{
		params:  p,
		rate:    float64(p.LineRateBps),
		target:  float64(p.LineRateBps),
		timer:   cycles{end: nowNs + p.TimerNs},
		counter: cycles{end: p.ByteCounterBytes},
	}
}

// advance takes the cycles that are over, the timer's first.
func (o *recoveryOracle) advance(nowNs, sentBytes uint64) {
	p := o.params
	for range recoveryCycles {
		switch {
		case o.timer.end <= nowNs:
			o.timer.over++
			o.increase(sentBytes)
			o.timer.end += o.length(p.TimerNs, o.timer, sentBytes)
		case p.ByteCounterBytes > 0 && o.counter.end <= sentBytes:
			o.counter.over++
			o.increase(sentBytes)
			o.counter.end += o.length(p.ByteCounterBytes, o.counter, sentBytes)
		default:
			return
		}
	}
}

// phase is slide 27: fast recovery if both the timer and the byte counter are in it, hyper increase if neither is.
func (o *recoveryOracle) phase(sentBytes uint64) phase {
	p := o.params
	if p.ByteCounterBytes == 0 {
		// HPCC's simulator counts the cycle afterwards: F of fast recovery, one of active increase.
		return min(max(phase(o.timer.over)-phase(p.Threshold), fastRecovery), hyperIncrease)
	}
	n := fastRecovery
	for _, c := range []cycles{o.timer, o.counter} {
		if c.over >= p.Threshold {
			n++
		}
	}
	if n == hyperIncrease && sentBytes-o.cutAtBytes < p.HyperBytes {
		return activeIncrease
	}
	return n
}

// length of the next cycle. "5 cycles of FR (T msec per cycle), AI cycles afterwards (T/2 msec per cycle)": each of
// the two by its own count.
func (o *recoveryOracle) length(full uint64, c cycles, sentBytes uint64) uint64 {
	switch o.params.Half {
	case halfActive:
		if c.over >= o.params.Threshold {
			return full / 2
		}
	case halfHyper:
		if o.phase(sentBytes) == hyperIncrease {
			return full / 2
		}
	}
	return full
}

func (o *recoveryOracle) increase(sentBytes uint64) {
	p := o.params
	phase := o.phase(sentBytes)
	switch {
	case o.guarded():
		o.target /= 8
		o.targetErr = o.targetErr/8 + 1
	case phase == activeIncrease:
		o.target += float64(p.RaiBps)
	case phase == hyperIncrease && p.ByteCounterBytes == 0:
		o.target += float64(p.RhaiBps)
	case phase == hyperIncrease:
		o.target += float64(min(o.timer.over, o.counter.over)-p.Threshold+1) * float64(p.RhaiBps)
	}
	o.target = o.limit(o.target)
	o.rate = o.limit((o.rate + o.target) / 2)
	o.rateErr = (o.rateErr+o.targetErr)/2 + 0.5
}

// guarded tells whether the cycle lowers the target: the first of either since a cut that went deep.
func (o *recoveryOracle) guarded() bool {
	if o.params.TargetGuard == 0 || o.timer.over != 1 && o.counter.over != 1 {
		return false
	}
	if math.Abs(o.target-10*o.rate) <= o.targetErr+10*o.rateErr {
		o.unsure = true
	}
	return o.target > 10*o.rate
}

func (o *recoveryOracle) limit(rate float64) float64 {
	return min(max(rate, float64(o.params.MinRateBps)), float64(o.params.LineRateBps))
}

// cut lowers the rate to share of itself, which integers miss by shareErr, and starts the timer again; and the byte
// counter too, if the target follows.
func (o *recoveryOracle) cut(nowNs, sentBytes uint64, share, shareErr float64, follow bool) {
	if follow {
		o.target, o.targetErr = o.rate, o.rateErr
		o.counter.end = sentBytes + o.params.ByteCounterBytes
	}
	o.rateErr = o.rateErr*share + o.rate*shareErr + 0.5
	o.rate = o.limit(o.rate * share)
	o.timer = cycles{end: nowNs + o.params.TimerNs}
	o.counter.over = 0
	o.cutAtBytes = sentBytes
}

// hold starts the running cycles again.
func (o *recoveryOracle) hold(nowNs, sentBytes uint64) {
	o.timer.end = nowNs + o.length(o.params.TimerNs, o.timer, sentBytes)
	o.counter.end = sentBytes + o.length(o.params.ByteCounterBytes, o.counter, sentBytes)
}

// check tells whether a state is what it should be.
func (o *recoveryOracle) check(got rateRecovery) error {
	const slack = 1e-2 // bit/s: float64

	if o.unsure {
		o.unsure = false
		o.unsures++
		o.rate, o.rateErr = float64(got.RateBps), 0
		o.target, o.targetErr = float64(got.TargetBps), 0
	}
	p := o.params
	switch {
	case math.Abs(float64(got.RateBps)-o.rate) > o.rateErr+slack:
		return fmt.Errorf("CR is %d bit/s, want %.1f within %.3g", got.RateBps, o.rate, o.rateErr)
	case math.Abs(float64(got.TargetBps)-o.target) > o.targetErr+slack:
		return fmt.Errorf("TR is %d bit/s, want %.1f within %.3g", got.TargetBps, o.target, o.targetErr)
	case got.TimeStage != o.timer.over || got.TimerAtNs != o.timer.end:
		return fmt.Errorf("timer is at stage %d until %d, want %d until %d", got.TimeStage, got.TimerAtNs, o.timer.over, o.timer.end)
	case p.ByteCounterBytes > 0 && (got.ByteStage != o.counter.over || got.CounterAtBytes != o.counter.end):
		return fmt.Errorf("byte counter is at stage %d until %d, want %d until %d", got.ByteStage, got.CounterAtBytes, o.counter.over, o.counter.end)
	case got.RateBps < p.MinRateBps || got.RateBps > p.LineRateBps:
		return fmt.Errorf("CR %d is outside of %d to %d", got.RateBps, p.MinRateBps, p.LineRateBps)
	case got.TargetBps > p.LineRateBps:
		return fmt.Errorf("TR %d over line rate %d", got.TargetBps, p.LineRateBps)
	}
	return nil
}

// randomRecoveryParams is any line rate from 1 Mbit/s to 800 Gbit/s, and anything that fits it.
func randomRecoveryParams(r *rand.Rand, half rateRecoveryHalf) rateRecoveryParams {
	lineBps := logUniform(r, 1e6, maxLineBps)
	return rateRecoveryParams{
		LineRateBps:      lineBps,
		MinRateBps:       pick(r, 1, lineBps/1000, lineBps/10, lineBps),
		RaiBps:           logUniform(r, 1, lineBps),
		RhaiBps:          logUniform(r, 1, lineBps),
		TimerNs:          logUniform(r, 1000, 1e9),
		ByteCounterBytes: logUniform(r, 1000, 1e9),
		HyperBytes:       pick(r, 0, 750_000, logUniform(r, 1, 1e10)),
		Threshold:        pick[uint32](r, 1, 2, 5, 5, 5),
		Half:             half,
		TargetGuard:      uint32(r.IntN(2)),
	}
}

// senderClock is how time passes and bytes are sent between the events of a flow.
type senderClock struct {
	nowNs, sentBytes uint64
	cycleNs          uint64 // mostly, a fraction of it passes
	cycleBytes       uint64
}

func newSenderClock(r *rand.Rand, p rateRecoveryParams) senderClock {
	return senderClock{
		nowNs:      logUniform(r, 1, 1<<62),
		cycleNs:    max(2*p.TimerNs, 2),
		cycleBytes: max(2*p.ByteCounterBytes, 2),
	}
}

// tick lets some time pass, now and then of many cycles.
func (c *senderClock) tick(r *rand.Rand) {
	long := pick[uint64](r, 1, 1, 1, 1, 1, 1, 1, 8, 100)
	c.nowNs += uint64(r.Int64N(int64(long*c.cycleNs))) / 2
	c.sentBytes += uint64(r.Int64N(int64(long*c.cycleBytes))) / 2
}
