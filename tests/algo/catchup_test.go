// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// hostRP is a sender on a host, in real numbers: Algorithm 1 with what a flow of few packets needs.
type hostRP struct {
	p       algoPcnRpParams
	rate, w float64
	rates   []float64 // before each CNP
	heardNs uint64
	quiet   uint32 // round trips with CNPs, and none of them with CE
	quietNs uint64 // when the latest began
}

func newHostRP(p algoPcnRpParams) *hostRP {
	return &hostRP{p: p, rate: float64(p.LineRateBps), w: float64(p.W_min) / wOne}
}

func (o *hostRP) apply(s algoRpStep) {
	wMin, wMax := float64(o.p.W_min)/wOne, float64(o.p.W_max)/wOne
	line, floor := float64(o.p.LineRateBps), float64(o.p.MinRateBps)
	if s.Event == algoRpEventRP_LOSS {
		o.rate, o.w, o.quiet = max(o.rate/2, floor), wMin, 0
		return
	}
	periods := 1.0
	if o.heardNs != 0 && s.NowNs > o.heardNs {
		elapsed := float64(s.NowNs-o.heardNs) / float64(o.p.T_ns)
		periods = math.Floor(min(elapsed, float64(o.p.CatchUp))*256) / 256
	}
	o.heardNs = s.NowNs
	before := o.rate
	if s.Ce {
		// the rate of the packets that RecRate is about: two CNPs ago
		then := line
		if n := len(o.rates); n >= 2 {
			then = o.rates[n-2]
		}
		rec := float64(s.RecRateBps)
		target := max(rec, o.rate*min(1, rec/then)) * (1 - wMin)
		if s.AppLimited {
			target = max(target, o.rate*(1-float64(o.p.IdleCut)/wOne))
		}
		o.rate = min(o.rate, max(target, floor))
		o.w = wMin
		o.quiet, o.quietNs = 0, s.NowNs
	} else {
		step := max(line-o.rate, 0) * o.w
		if step < 2*o.rate {
			step = min(step*periods, 2*o.rate, max(line-o.rate, 0))
		}
		o.rate += step
		switch {
		case o.quiet >= o.p.Patience:
			o.w = o.w*(1-o.w) + wMax*o.w
		case s.NowNs >= o.quietNs+s.RttNs:
			o.quiet++
			o.quietNs = s.NowNs
		}
	}
	o.rates = append(o.rates, before)
}

func TestRPCatchesUp(t *testing.T) {
	b := load(t)
	const tNs = 50_000
	for seed := range uint64(200) {
		r := rand.New(rand.NewPCG(seed, 17))
		line := logUniform(r, 1e7, 800e9)
		p := algoPcnRpParams{LineRateBps: line, MinRateBps: 1e6, W_min: wOne / 128, W_max: wOne / 2,
			CatchUp: pick[uint32](r, 1, 8, 64), T_ns: tNs, IdleCut: pick[uint32](r, wOne, wOne/8),
			Patience: pick[uint32](r, 0, 1, 8)}
		o := newHostRP(p)
		steps := []algoRpStep{{Event: algoRpEventRP_INIT}}
		var want []float64
		now, ceShare := uint64(startNs), pick(r, 0.1, 0.5, 0.9)
		for range 300 {
			now += logUniform(r, 1, 100*tNs)
			s := algoRpStep{Event: algoRpEventRP_CNP, NowNs: now, Ce: r.Float64() < ceShare,
				AppLimited: r.IntN(3) == 0, RttNs: pick[uint64](r, 0, tNs, 20*tNs)}
			s.RecRateBps = uint64(o.rate*(0.2+r.Float64()))/1e6*1e6 + 1e6
			if r.IntN(50) == 0 {
				s.Event = algoRpEventRP_LOSS
			}
			o.apply(s)
			steps, want = append(steps, s), append(want, o.rate)
		}
		b.rp(t, p, steps)
		for i, rate := range want {
			got := float64(steps[i+1].SendRateBps)
			qt.Assert(t, qt.IsTrue(math.Abs(got-rate) <= 0.002*rate+400),
				qt.Commentf("seed %d, step %d: %.0f bit/s, want %.0f: %+v", seed, i, got, rate,
					steps[i+1]))
		}
	}
}

// What a flow of one packet in many periods gains stays, though the packets that RecRate is about
// left before.
func TestRPKeepsGains(t *testing.T) {
	b := load(t)
	p := algoPcnRpParams{LineRateBps: 200e6, MinRateBps: 1e6, W_min: wOne / 128, W_max: wOne / 2,
		CatchUp: 8, T_ns: 1_000_000, IdleCut: wOne}
	now := uint64(startNs)
	cnp := func(ce bool, recBps uint64) algoRpStep {
		now += 12_000_000
		return algoRpStep{Event: algoRpEventRP_CNP, NowNs: now, Ce: ce, RecRateBps: recBps}
	}
	steps := []algoRpStep{{Event: algoRpEventRP_INIT}, cnp(true, 1e6), cnp(true, 1e6),
		cnp(false, 0), cnp(true, 1e6)}
	b.rp(t, p, steps)
	qt.Check(t, qt.Equals(steps[2].SendRateBps, 1e6))
	qt.Check(t, qt.Equals(steps[3].SendRateBps, 3e6)) // 8 steps of 1.55 Mbit/s, but at most 2 rates
	qt.Check(t, qt.IsTrue(steps[4].SendRateBps > 2_970_000), qt.Commentf("%+v", steps[4]))
	p.CatchUp = 0
	b.rp(t, p, steps)
	qt.Check(t, qt.Equals(steps[4].SendRateBps, 1e6)) // Algorithm 1
}

// After a decrease or a loss w stays as it is until so many round trips had a CNP without CE.
func TestRPPatience(t *testing.T) {
	b := load(t)
	const tNs, least = 1_000_000, wOne / 128
	p := algoPcnRpParams{LineRateBps: 200e6, MinRateBps: 1e6, W_min: least, W_max: wOne / 2,
		CatchUp: 8, T_ns: tNs, IdleCut: wOne, Patience: 3}
	for _, tt := range []struct {
		name     string
		patience uint32
		rttNs    uint64
		stays    int // CNPs that leave w as it is
	}{
		{"Algorithm 1", 0, 0, 0},
		{"a round trip not known", 3, 0, 3},
		{"a CNP a round trip", 3, tNs, 3},
		{"two CNPs a round trip", 3, 2 * tNs, 6},
	} {
		t.Run(tt.name, func(t *testing.T) {
			p.Patience = tt.patience
			for _, cut := range []algoRpStep{
				{Event: algoRpEventRP_CNP, Ce: true, RecRateBps: 10e6},
				{Event: algoRpEventRP_LOSS},
			} {
				now := uint64(startNs)
				step := func(s algoRpStep) algoRpStep {
					if s.Event == algoRpEventRP_CNP {
						now += tNs
					}
					s.NowNs, s.RttNs = now, tt.rttNs
					return s
				}
				up := algoRpStep{Event: algoRpEventRP_CNP}
				steps := []algoRpStep{step(algoRpStep{Event: algoRpEventRP_INIT})}
				for range 10 { // patient no more
					steps = append(steps, step(up))
				}
				steps = append(steps, step(algoRpStep{Event: algoRpEventRP_CNP, Ce: true,
					RecRateBps: 20e6}), step(cut))
				for range tt.stays + 1 {
					steps = append(steps, step(up))
				}
				b.rp(t, p, steps)
				after := steps[len(steps)-tt.stays-1:]
				for i, s := range after[:tt.stays] {
					qt.Check(t, qt.Equals(s.W, uint32(least)), qt.Commentf("CNP %d", i))
				}
				qt.Check(t, qt.IsTrue(after[tt.stays].W > least))
			}
		})
	}
}

// A young flow has w_young after a decrease: until it has sent so much, and again after a pause.
func TestRPYoung(t *testing.T) {
	b := load(t)
	p := algoPcnRpParams{LineRateBps: 200e6, MinRateBps: 1e6, W_min: wOne / 128, W_max: wOne / 2,
		T_ns: 1_000_000, IdleCut: wOne, YoungBytes: 1000, W_young: wOne / 16}
	decrease := algoRpStep{Event: algoRpEventRP_CNP, NowNs: startNs, Ce: true, RecRateBps: 10e6}
	age := func(bytes uint64) algoRpStep {
		return algoRpStep{Event: algoRpEventRP_AGE, RecRateBps: bytes}
	}
	restart := algoRpStep{Event: algoRpEventRP_RESTART}
	steps := []algoRpStep{{Event: algoRpEventRP_INIT}, decrease, age(999), decrease, age(1),
		decrease, restart, decrease, age(1 << 31), decrease}
	b.rp(t, p, steps)
	const old, young = wOne / 128, wOne / 16
	for i, want := range []uint32{0: young, 1: young, 3: young, 5: old, 7: young, 9: old} {
		if want != 0 {
			qt.Check(t, qt.Equals(steps[i].W, want), qt.Commentf("step %d", i))
		}
	}
	p.YoungBytes = 0
	b.rp(t, p, steps)
	for _, i := range []int{0, 1, 3, 5, 7, 9} {
		qt.Check(t, qt.Equals(steps[i].W, uint32(old)), qt.Commentf("step %d, never young", i))
	}
}
