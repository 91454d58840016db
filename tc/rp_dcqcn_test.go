// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// dcqcnParams are DCQCN's, with g large enough for alpha to change visibly.
func dcqcnParams() rpdcqcnDcqcnParams {
	var p rpdcqcnDcqcnParams
	p.Recovery.LineRateBps, p.Recovery.MinRateBps = lineRateBps, 100e6
	p.Recovery.RaiBps, p.Recovery.RhaiBps = 40e6, 200e6
	p.Recovery.TimerNs, p.Recovery.ByteCounterBytes, p.Recovery.Threshold = 55_000, 1_000_000, 5
	p.AlphaTimerNs, p.G, p.InitialAlpha = 50_000, q24/16, q24
	p.ClampTarget = 1
	return p
}

// newDCQCNRP loads DCQCN's reaction point with a flow table of its own, that holds these flows as
// they start.
func newDCQCNRP(t *testing.T, flows ...flow) *RP {
	t.Helper()
	return newDCQCNRPAt(t, 0, flows...)
}

// dcqcnStartNs is when the flows start.
const dcqcnStartNs = 1_000_000

func newDCQCNRPAt(t *testing.T, dilationShift uint32, flows ...flow) *RP {
	t.Helper()
	return newDCQCNRPOf(t, map[string]any{rpdcqcnVarDilationShift: dilationShift}, flows...)
}

func newDCQCNRPOf(t *testing.T, vars map[string]any, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadRpdcqcn()
	qt.Assert(t, qt.IsNil(err))
	p := dcqcnParams()
	vars[rpdcqcnVarParams], vars[rpdcqcnVarIdealTime] = p, true
	obj, err := load("rp", pruned(spec), vars, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	r := &RP{object: obj}
	for _, f := range flows {
		var v rpdcqcnDcqcnFlow
		v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps = lineRateBps, lineRateBps
		v.Rp.Recovery.TimerAtNs = dcqcnStartNs + p.Recovery.TimerNs
		v.Rp.Recovery.CounterAtBytes = p.Recovery.ByteCounterBytes
		v.Rp.AlphaAtNs, v.Rp.Alpha = dcqcnStartNs+p.AlphaTimerNs, p.InitialAlpha
		r.putDCQCN(t, f, v)
	}
	return r
}

func (r *RP) putDCQCN(t *testing.T, f flow, v rpdcqcnDcqcnFlow) {
	t.Helper()
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &v)))
}

func (r *RP) dcqcn(t *testing.T, f flow) (v rpdcqcnDcqcnFlow) {
	t.Helper()
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Lookup(f.key(6), &v)))
	return v
}

// dcqcn is DCQCN's reaction point, in floating point: the timers' and the byte counter's cycles as
// they end, and CNPs.
type dcqcn struct {
	p                     rpdcqcnDcqcnParams
	rate, target, alpha   float64
	timerNs, alphaNs      uint64 // when the cycles end
	counterBytes          uint64
	timeStage, countStage int
	heard                 bool // alpha waits for the first CNP
}

func newDCQCN() *dcqcn {
	p := dcqcnParams()
	return &dcqcn{p: p, rate: lineRateBps, target: lineRateBps, alpha: 1,
		timerNs: dcqcnStartNs + p.Recovery.TimerNs, alphaNs: dcqcnStartNs + p.AlphaTimerNs,
		counterBytes: p.Recovery.ByteCounterBytes}
}

func (d *dcqcn) g() float64 { return float64(d.p.G) / q24 }

func (d *dcqcn) increase() {
	const f = 5
	switch {
	case d.timeStage >= f && d.countStage >= f:
		d.target += float64(min(d.timeStage, d.countStage)-f+1) * float64(d.p.Recovery.RhaiBps)
	case d.timeStage >= f || d.countStage >= f:
		d.target += float64(d.p.Recovery.RaiBps)
	}
	d.target = min(d.target, lineRateBps)
	d.rate = (d.rate + d.target) / 2
}

// advance takes the cycles that are over.
func (d *dcqcn) advance(nowNs, sentBytes uint64) {
	for ; d.heard && nowNs >= d.alphaNs; d.alphaNs += d.p.AlphaTimerNs {
		d.alpha *= 1 - d.g()
	}
	for ; nowNs >= d.timerNs; d.timerNs += d.p.Recovery.TimerNs {
		d.timeStage++
		d.increase()
	}
	for ; sentBytes >= d.counterBytes; d.counterBytes += d.p.Recovery.ByteCounterBytes {
		d.countStage++
		d.increase()
	}
}

func (d *dcqcn) cnp(nowNs, sentBytes uint64) {
	d.advance(nowNs, sentBytes)
	d.heard = true
	d.target = d.rate
	d.rate = max(float64(d.p.Recovery.MinRateBps), d.rate*(1-d.alpha/2))
	d.alpha = (1-d.g())*d.alpha + d.g()
	d.timerNs, d.alphaNs = nowNs+d.p.Recovery.TimerNs, nowNs+d.p.AlphaTimerNs
	d.counterBytes = sentBytes + d.p.Recovery.ByteCounterBytes
	d.timeStage, d.countStage = 0, 0
}

// A CNP halves the rate at first, and less as alpha falls: worked out by hand.
func TestDCQCNRPCuts(t *testing.T) {
	f := someFlow()
	r := newDCQCNRP(t, f)
	for i, want := range []struct {
		atNs         uint64 // from the start on
		rate, target float64
		alpha        float64
	}{
		{40_000_000, 20e9, 40e9, 1}, // alpha waits for the first
		{40_000_000, 10e9, 20e9, 1},
		// 2 cycles of alpha's timer: (15/16)^2; 2 of the rate's: half of the way back, twice
		{40_110_000, 17.5e9 * (1 - 0.87890625/2), 17.5e9, 0.87890625*15/16 + 1.0/16},
	} {
		now := dcqcnStartNs + want.atNs
		got := r.run(t, here, "rp_ingress", encode(t, f.cnp(true, 0)),
			skBuff{CB: carry(now, false)})
		qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
		v := r.dcqcn(t, f)
		about := qt.Commentf("CNP %d: %+v", i, v.Rp)
		qt.Check(t, qt.IsTrue(near(float64(v.Rp.Recovery.RateBps), want.rate)), about)
		qt.Check(t, qt.IsTrue(near(float64(v.Rp.Recovery.TargetBps), want.target)), about)
		qt.Check(t, qt.IsTrue(near(float64(v.Rp.Alpha)/q24, want.alpha)), about)
		qt.Check(t, qt.Equals(v.Rp.CutAtNs, now))
		qt.Check(t, qt.Equals(v.Sender.CnpDecrease, uint64(i+1)))
		qt.Check(t, qt.Equals(v.Sender.CnpIncrease+v.Sender.RecRateBps, 0))
	}
	qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": 3}))
}

// hold starts the cycles that run again.
func (d *dcqcn) hold(nowNs, sentBytes uint64) {
	d.advance(nowNs, sentBytes)
	d.timerNs, d.counterBytes = nowNs+d.p.Recovery.TimerNs, sentBytes+d.p.Recovery.ByteCounterBytes
}

// CNPs, at any time and after any number of bytes, change the flow they name as the paper says, and
// no other flow. What they say of rates is nothing to DCQCN.
func TestDCQCNRPObeys(t *testing.T) { checkDCQCNRP(t, newDCQCNRP, false) }

// With TCD one in four says UE.
func TestDCQCNRPObeysTCD(t *testing.T) {
	checkDCQCNRP(t, func(t *testing.T, flows ...flow) *RP {
		return newDCQCNRPOf(t, map[string]any{rpdcqcnVarTcd: true}, flows...)
	}, true)
}

func checkDCQCNRP(t *testing.T, newRP func(*testing.T, ...flow) *RP, tcd bool) {
	t.Helper()
	const cnps = 3000
	f := someFlow()
	otherPort, otherAddr := f, f
	otherPort.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1)
	otherAddr.dst = netip.AddrPortFrom(f.dst.Addr().Next(), f.dst.Port())
	others := []flow{otherPort, otherAddr, {src: f.dst, dst: f.src}}
	r := newRP(t, append(others, f)...)
	before := r.dcqcn(t, otherPort)
	rnd := rand.New(rand.NewPCG(15, 16))
	want, now := newDCQCN(), uint64(dcqcnStartNs)
	lowest, active, holds := want.rate, 0, uint64(0)
	for i := range cnps {
		v := r.dcqcn(t, f)
		if i/30%2 == 0 { // congestion
			now += rnd.Uint64N(2 * dcqcnParams().Recovery.TimerNs)
			// of the 32 cycles that one CNP finds over up to 19 are the timer's and 10 the byte
			// counter's
		} else {
			now += rnd.Uint64N(1_100_000)
			v.Sender.SentBytes += rnd.Uint64N(11_000_000)
		}
		r.putDCQCN(t, f, v)
		c := f.cnp(rnd.IntN(2) == 0, rnd.Uint32())
		c.Undetermined = tcd && !c.Decrease && rnd.IntN(2) == 0
		frame := encode(t, c)
		got := r.run(t, here, "rp_ingress", frame, skBuff{CB: carry(now, false)})
		qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
		if c.Undetermined {
			holds++
			want.hold(now, v.Sender.SentBytes)
		} else {
			want.cnp(now, v.Sender.SentBytes)
		}
		v = r.dcqcn(t, f)
		about := qt.Commentf("CNP %d: %+v, want %+v", i, v.Rp, want)
		qt.Assert(t, qt.IsTrue(math.Abs(float64(v.Rp.Recovery.RateBps)/want.rate-1) < 1e-4), about)
		qt.Assert(t, qt.IsTrue(math.Abs(float64(v.Rp.Recovery.TargetBps)/want.target-1) < 1e-4),
			about)
		qt.Assert(t, qt.IsTrue(math.Abs(float64(v.Rp.Alpha)/q24-want.alpha) < 1e-5), about)
		qt.Assert(t, qt.Equals(v.Sender.CnpDecrease, uint64(i+1)-holds))
		qt.Assert(t, qt.Equals(v.Sender.CnpHold, holds))
		lowest = min(lowest, want.rate)
		if want.target < lineRateBps && want.target > 1e9 {
			active++
		}
	}
	qt.Assert(t, qt.IsTrue(lowest == 100e6 && active > cnps/3),
		qt.Commentf("down to %g, %d rates between", lowest, active))
	qt.Assert(t, qt.Equals(holds > cnps/5, tcd))
	qt.Assert(t, qt.DeepEquals(r.counts(t), nonZero(t,
		Counts{"cnp_decrease": cnps - holds, "cnp_hold": holds}, nil)))
	for _, o := range others {
		qt.Assert(t, qt.Equals(r.dcqcn(t, o), before))
	}
}

// A CNP that no port of the lab sent arrives now, on the papers' clock.
func TestDCQCNRPKernelClock(t *testing.T) {
	for _, shift := range []uint32{0, 10} {
		f := someFlow()
		r := newDCQCNRPAt(t, shift, f)
		cb := carry(5, false)
		cb[0] ^= 1 << 8 // not the magic
		before := monotonicNs(t) >> shift
		r.run(t, here, "rp_ingress", encode(t, f.cnp(true, 0)), skBuff{CB: cb})
		after := monotonicNs(t) >> shift
		at := r.dcqcn(t, f).Rp.CutAtNs
		qt.Check(t, qt.IsTrue(before <= at && at <= after),
			qt.Commentf("shift %d: %d, want %d to %d", shift, at, before, after))
	}
}
