// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"cmp"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// The parameter sets in use: the authors' code snippet, which paces every packet; SIGCOMM 2015; ns3-rdma's branch.
var timelySets = []struct {
	name   string
	params func(lineBps uint64) rateTimelyParams
}{
	{"snippet", snippetTIMELY},
	{"paper", paperTIMELY},
	{"ns3-rdma", func(lineBps uint64) rateTimelyParams {
		p := paperTIMELY(lineBps)
		p.MinRateBps = lineBps / 100
		p.SegmentBytes = 16_000
		p.HaiAfter, p.HaiFactor = 0, 1
		return p
	}},
	{"hpcc", hpccTIMELY},
}

func hpccTIMELY(lineBps uint64) rateTimelyParams {
	p := paperTIMELY(lineBps)
	p.MinRateBps = min(1e9, lineBps/10)
	p.DeltaBps = lineBps / 1000
	p.SegmentBytes = 0
	p.PerRtt, p.CountIncreases = 1, 1
	return p
}

func snippetTIMELY(lineBps uint64) rateTimelyParams {
	return rateTimelyParams{
		LineRateBps: lineBps,
		MinRateBps:  lineBps / 1000,
		DeltaBps:    lineBps / 1000,
		T_highNs:    1_000_000,
		MinRttNs:    30_000,
		Ewma:        q24(0.02),
		Beta:        q24(0.8),
		MaxCut:      q24One / 2,
		HaiAfter:    5,
		HaiFactor:   5,
		DeltaFactor: 1,
	}
}

func paperTIMELY(lineBps uint64) rateTimelyParams {
	return rateTimelyParams{
		LineRateBps:  lineBps,
		MinRateBps:   lineBps / 1000,
		DeltaBps:     10e6,
		T_lowNs:      50_000,
		T_highNs:     500_000,
		MinRttNs:     20_000,
		SegmentBytes: 64_000,
		Ewma:         q24(0.875),
		Beta:         q24(0.8),
		MaxCut:       q24One,
		HaiAfter:     5,
		HaiFactor:    5,
	}
}

const (
	maxRTTNs = uint64(100e9)

	timelyNsUlp = 1. / (1 << 16) // of the mean RTT difference
)

// timelyOracle is Algorithm 1 in real numbers, with how far integers may stray:
//
//	the mean difference  rounded to 2^-16 ns
//	delta_factor         rounded down to 2^-24
//	a cut                is a share of the rate, rounded to 2^-24 after each of up to three products
type timelyOracle struct {
	params rateTimelyParams

	rate, rateErr float64
	diff, diffErr float64 // the mean difference, ns
	prevNs        float64 // the latest RTT; 0: none
	updateNs      uint64
	falling       uint32
	increases     uint32
	ackedBytes    uint64 // of the running segment

	heard []rateTimelyStep // TCD: all CNPs
}

func (o *timelyOracle) apply(s rateTimelyStep) {
	switch s.Event {
	case rateEventINIT:
		*o = timelyOracle{params: o.params, rate: float64(o.params.LineRateBps)}
	case rateEventACK:
		o.ackedBytes += uint64(s.AckedBytes)
		if s.RttNs == 0 || s.AckedBytes == 0 || o.ackedBytes < o.params.SegmentBytes {
			return
		}
		if o.params.PerRtt != 0 {
			switch sentNs := int64(s.NowNs - s.RttNs); {
			case o.prevNs == 0: // HPCC's simulator: m_lastUpdateSeq is 0
				o.ackedBytes, o.prevNs, o.updateNs = 0, float64(s.RttNs), s.NowNs
				return
			case sentNs < int64(o.updateNs):
				return
			}
		}
		o.ackedBytes = 0
		before := *o
		o.completion(s)
		if o.params.TcdHoldNs > 0 {
			o.gate(before, s.NowNs)
		}
	case rateEventNOTICE, rateEventHOLD:
		o.heard = append(o.heard, s)
	case rateEventLOSS: // not in the paper: see timely_rp_loss
		o.cut(0.5, 0)
	}
}

// gate is TCD's rule: CE decreases, UE holds, nothing increases. What was heard less than the hold time ago counts, and CE
// overrides UE.
func (o *timelyOracle) gate(before timelyOracle, nowNs uint64) {
	var ue, ce bool
	for _, cnp := range o.heard {
		if nowNs-cnp.NowNs < o.params.TcdHoldNs {
			ue = ue || cnp.Event == rateEventHOLD
			ce = ce || cnp.Event == rateEventNOTICE
		}
	}
	allowed := o.rate >= before.rate
	if ce {
		allowed = o.rate <= before.rate
	} else if ue {
		allowed = false
	}
	if !allowed {
		o.rate, o.rateErr = before.rate, before.rateErr
	}
}

// completion is the completion of a segment: Algorithm 1.
func (o *timelyOracle) completion(s rateTimelyStep) {
	p := o.params
	rttNs := float64(s.RttNs)
	newDiff := 0.
	if o.prevNs > 0 {
		newDiff = rttNs - o.prevNs
	}
	o.prevNs = rttNs
	if newDiff < 0 {
		o.falling++
	} else {
		o.falling = 0
	}
	increases := o.increases // HPCC's simulator: m_incStage
	o.increases = 0
	a := q24Float(p.Ewma)
	o.diff = (1-a)*o.diff + a*newDiff
	o.diffErr = (1-a)*o.diffErr + timelyNsUlp/2

	factor := 1.
	if p.DeltaFactor != 0 {
		factor = min(float64(s.NowNs-o.updateNs)/float64(p.MinRttNs), 1)
	}
	o.updateNs = s.NowNs

	beta := q24Float(p.Beta)
	delta := factor * float64(p.DeltaBps)
	deltaErr := float64(p.DeltaBps) * q24Ulp
	switch {
	case rttNs < float64(p.T_lowNs):
		n := 1.
		if p.CountIncreases != 0 {
			o.increases = increases + 1
			n = o.steps(increases)
		}
		o.add(n*delta, n*deltaErr)
	case rttNs > float64(p.T_highNs):
		o.cut(factor*beta*(1-float64(p.T_highNs)/rttNs), 4*q24Ulp)
	case !o.rises(s.Rp.RttDiff):
		n := o.steps(o.falling)
		if p.CountIncreases != 0 {
			o.increases = increases + 1
			n = o.steps(increases)
		}
		o.add(n*delta, n*deltaErr)
	default:
		gradient := o.diff / float64(p.MinRttNs)
		o.cut(beta*gradient, (beta*o.diffErr+timelyNsUlp)/float64(p.MinRttNs)+q24Ulp)
	}
}

// steps is N, behind so many falls or increases.
func (o *timelyOracle) steps(behind uint32) float64 {
	if o.params.HaiAfter > 0 && behind >= o.params.HaiAfter {
		return float64(o.params.HaiFactor)
	}
	return 1
}

// rises tells whether the gradient is positive. Where rounding decides, it is what the bytecode takes it for.
func (o *timelyOracle) rises(got int64) bool {
	if math.Abs(o.diff) <= o.diffErr {
		return got > 0
	}
	return o.diff > 0
}

func (o *timelyOracle) add(bps, err float64) {
	o.rate = min(o.rate+bps, float64(o.params.LineRateBps))
	o.rateErr += err + 0.5
}

func (o *timelyOracle) cut(share, err float64) {
	share = min(share, q24Float(o.params.MaxCut))
	o.rateErr = o.rateErr*(1-share) + o.rate*err + 0.5
	o.rate = max(o.rate*(1-share), float64(o.params.MinRateBps))
}

func (o *timelyOracle) check(got rateTimelyRp) error {
	const slack = 1e-2 // bit/s: float64

	diffNs := float64(got.RttDiff) * timelyNsUlp
	diffErr := o.diffErr + math.Abs(o.diff)*1e-12
	switch {
	case math.Abs(diffNs-o.diff) > diffErr:
		return fmt.Errorf("mean RTT difference is %.6f ns, want %.6f within %.3g", diffNs, o.diff, diffErr)
	case math.Abs(float64(got.RateBps)-o.rate) > o.rateErr+slack:
		return fmt.Errorf("rate is %d bit/s, want %.1f within %.3g", got.RateBps, o.rate, o.rateErr)
	case got.RateBps < o.params.MinRateBps || got.RateBps > o.params.LineRateBps:
		return fmt.Errorf("rate %d is outside of %d to %d", got.RateBps, o.params.MinRateBps, o.params.LineRateBps)
	}
	return nil
}

// checkTIMELY runs the steps of one flow, INIT put before them, and compares each with the oracle. It returns all.
func checkTIMELY(t testing.TB, s *senders, p rateTimelyParams, steps []rateTimelyStep) []rateTimelyStep {
	t.Helper()

	steps = append([]rateTimelyStep{{Event: rateEventINIT}}, steps...)
	s.timely(t, p, steps)
	o := timelyOracle{params: p}
	for i, step := range steps {
		o.apply(step)
		if err := o.check(step.Rp); err != nil {
			t.Fatalf("step %d: %v; %+v, params %+v", i, err, step, p)
		}
	}
	return steps
}

// rtts makes completions of a segment of 64 KB with these RTTs, 1 ms apart.
func rtts(us ...float64) []rateTimelyStep {
	steps := make([]rateTimelyStep, len(us))
	for i, us := range us {
		steps[i] = rateTimelyStep{
			NowNs: startNs + uint64(i)*1e6, RttNs: uint64(us * 1000), AckedBytes: 64_000, Event: rateEventACK,
		}
	}
	return steps
}

// lastRate is the rate after the steps.
func lastRate(steps []rateTimelyStep) uint64 { return steps[len(steps)-1].Rp.RateBps }

func TestTIMELYSteps(t *testing.T) {
	s := loadSenders(t)

	paper := paperTIMELY(10e9)
	paper.MinRateBps = 1e6
	snippet := snippetTIMELY(10e9)
	never := paper
	never.HaiAfter = 0
	mean := paper // that the numbers stay round
	mean.Ewma = q24One / 2

	// The first RTT is over T_high by as much again: 1 - 0.8 / 2 of 10 Gbit/s.
	const low = 6e9
	for _, test := range []struct {
		name   string
		params rateTimelyParams
		us     []float64
		want   float64
		within float64
	}{
		{"starts at line rate", paper, nil, 10e9, 0},
		{"below T_low at line rate", paper, []float64{30}, 10e9, 0},
		{"above T_high", paper, []float64{1000}, low, 1000},
		{"far above", paper, []float64{1e8}, 2e9, 100_000},
		{"below T_low", paper, []float64{1000, 30}, low + 10e6, 1000},
		{"below T_low, though rising", paper, []float64{1000, 20, 30}, low + 20e6, 1000},
		{"at T_low the gradient decides", paper, []float64{48, 50}, 9.3e9, 1000},
		{"at T_high too", paper, []float64{1000, 500}, low + 10e6, 1000},
		{"falling", paper, []float64{1000, 400}, low + 10e6, 1000},
		{"no difference", paper, []float64{100, 100, 100}, 10e9, 0},
		{"rising by 2 us in 20: 1 - 0.8 * 0.875 * 0.1", paper, []float64{100, 102}, 9.3e9, 1000},
		{"rising by half that", mean, []float64{100, 102}, 9.6e9, 1000},
		{"what rose before counts", mean, []float64{100, 102, 102}, 9.6e9 * 0.98, 1000},
		{"and outweighs a small fall", mean, []float64{100, 102, 101.5}, 9.6e9 * 0.99, 1000},
		{"but not a large one", mean, []float64{100, 102, 100}, 9.61e9, 1000},
		{"all of it, but for the floor", paper, []float64{100, 200}, 1e6, 0},
		{"at most half", snippet, []float64{100, 1000}, 10e9 * (1 - 0.8*0.02*30), 1e6},
		{"of the cut above T_high", snippet, []float64{1e8}, 5e9, 0},
		{"hyper increase at the fifth fall", paper, []float64{1000, 400, 399, 398, 397, 396}, low + 90e6, 1000},
		{"not before", paper, []float64{1000, 400, 399, 398, 397}, low + 40e6, 1000},
		{"and from then on", paper, []float64{1000, 400, 399, 398, 397, 396, 395}, low + 140e6, 1000},
		{"a fall above T_high counts", paper, []float64{1000, 600, 400, 399, 398, 397}, low*(1-0.8/6) + 80e6, 1000},
		{"one below T_low too", paper, []float64{1000, 49, 48, 47, 46, 45}, low + 50e6, 1000},
		{"no fall, no hyper increase", paper, []float64{1000, 400, 399, 398, 397, 397, 396, 395, 394, 393}, low + 90e6, 1000},
		{"until five more", paper, []float64{1000, 400, 399, 398, 397, 397, 396, 395, 394, 393, 392}, low + 140e6, 1000},
		{"never", never, []float64{1000, 400, 399, 398, 397, 396, 395, 394}, low + 70e6, 1000},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := checkTIMELY(t, s, test.params, rtts(test.us...))
			near(t, float64(lastRate(steps)), test.want, test.within, "rate")
		})
	}
}

// The authors' snippet scales additions, and the cut above T_high, by the time since the last update over minRTT; but
// not the cut by the gradient.
func TestTIMELYDeltaFactor(t *testing.T) {
	s := loadSenders(t)

	p := snippetTIMELY(10e9)
	ack := func(ns, rttNs uint64) rateTimelyStep {
		return rateTimelyStep{NowNs: startNs + ns, RttNs: rttNs, AckedBytes: 1000, Event: rateEventACK}
	}
	rate := func(steps ...rateTimelyStep) float64 { return float64(lastRate(checkTIMELY(t, s, p, steps))) }
	const half = 5e9 // after the first, which was cut at most that much

	for _, test := range []struct {
		name      string
		afterNs   uint64
		add, over float64 // shares
	}{
		{"at once", 0, 0, 0},
		{"a third of minRTT", 10_000, 1. / 3, 1. / 3},
		{"minRTT", 30_000, 1, 1},
		{"more", 60_000, 1, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			near(t, rate(ack(0, 1e9), ack(test.afterNs, 1000)), half+10e6*test.add, 100, "addition")
			near(t, rate(ack(0, 1e9), ack(test.afterNs, 1_250_000)), half*(1-0.8*0.2*test.over), 2000, "cut above T_high")

			first := ack(0, 100_000)
			near(t, rate(first, ack(test.afterNs, 130_000)), 10e9*(1-0.8*0.02), 2000, "cut by the gradient")
		})
	}
}

// One update for each segment, however it is acknowledged.
func TestTIMELYSegments(t *testing.T) {
	s := loadSenders(t)

	p := paperTIMELY(10e9)
	updates := func(ackedBytes ...uint32) (at []int) {
		steps := []rateTimelyStep{{Event: rateEventACK, NowNs: startNs, RttNs: 30_000, AckedBytes: 64_000}}
		for i, n := range ackedBytes {
			steps = append(steps, rateTimelyStep{Event: rateEventACK, NowNs: startNs + uint64(i+1)*1000, RttNs: 30_000, AckedBytes: n})
		}
		steps = checkTIMELY(t, s, p, steps)
		for i := range ackedBytes {
			if steps[i+2].Rp.UpdateNs == steps[i+2].NowNs {
				at = append(at, i)
			}
		}
		return at
	}
	qt.Check(t, qt.DeepEquals(updates(64_000, 64_000), []int{0, 1}))
	qt.Check(t, qt.DeepEquals(updates(63_999, 1, 63_999, 1), []int{1, 3}))
	qt.Check(t, qt.DeepEquals(updates(16_000, 16_000, 16_000, 16_000, 16_000), []int{3}))
	qt.Check(t, qt.DeepEquals(updates(100_000, 64_000), []int{0, 1}))
	p.SegmentBytes = 0
	qt.Check(t, qt.DeepEquals(updates(1, 0, 1), []int{0, 2}), qt.Commentf("an ACK of nothing is none"))
}

// An ACK without an RTT counts for the segment, and no more.
func TestTIMELYNoRTT(t *testing.T) {
	s := loadSenders(t)

	steps := rtts(1000, 0, 400)
	got := checkTIMELY(t, s, paperTIMELY(10e9), steps)
	qt.Assert(t, qt.Equals(got[2].Rp.RateBps, got[1].Rp.RateBps))
	qt.Assert(t, qt.Equals(got[3].Rp.RttDiff, -525_000<<16)) // 0.875 * (400 - 1000) us
}

// The mean comes to the slope of the RTT, up or down, and to 0 when it no longer changes: from either side, and never
// past it.
func TestTIMELYMean(t *testing.T) {
	s := loadSenders(t)

	for _, ewma := range []float64{0.02, 0.1, 0.875} {
		for _, slopeNs := range []int64{1, 2, 10, 1000, 1_000_000} {
			for _, sign := range []int64{1, -1} {
				p := snippetTIMELY(10e9)
				p.Ewma = q24(ewma)
				const slopes = 1500
				steps := make([]rateTimelyStep, 2*slopes)
				rttNs := int64(1e10)
				for i := range steps {
					if i < slopes {
						rttNs += sign * slopeNs
					}
					steps[i] = rateTimelyStep{Event: rateEventACK, NowNs: startNs + uint64(i)*1000, RttNs: uint64(rttNs), AckedBytes: 1}
				}
				got := checkTIMELY(t, s, p, steps)
				tolerance := timelyNsUlp / 2 / ewma * 1.01
				for i, step := range got[2:] {
					diff := step.Rp.RttDiff * sign
					qt.Assert(t, qt.IsTrue(diff >= 0 && diff <= slopeNs<<16), qt.Commentf("mean %d of slope %d ns", step.Rp.RttDiff, sign*slopeNs))
					if i < slopes-1 {
						qt.Assert(t, qt.IsTrue(diff > 0), qt.Commentf("sign of the mean, slope %d ns, step %d", sign*slopeNs, i))
					}
				}
				near(t, float64(got[slopes].Rp.RttDiff)*timelyNsUlp, float64(sign*slopeNs), tolerance, "mean of slope %d ns", sign*slopeNs)
				near(t, float64(got[2*slopes].Rp.RttDiff)*timelyNsUlp, 0, tolerance, "mean after slope %d ns", sign*slopeNs)
			}
		}
	}
}

var _ = oracle(TestTIMELYRandomRTTs, "timely")

func TestTIMELYRandomRTTs(t *testing.T) {
	s := loadSenders(t)

	const length = 1000
	for _, set := range timelySets {
		t.Run(set.name, func(t *testing.T) {
			for i, lineBps := range []uint64{1e6, 100e6, 1e9, 10e9, 40e9, 100e9, maxLineBps} {
				r := rand.New(rand.NewPCG(uint64(i), 40))
				p := set.params(lineBps)
				checkTIMELY(t, s, p, randomRTTs(r, p, length))
			}
		})
	}
	t.Run("any", func(t *testing.T) {
		for seed := range uint64(150) {
			r := rand.New(rand.NewPCG(seed, 41))
			p := randomTIMELYParams(r)
			checkTIMELY(t, s, p, randomRTTs(r, p, length))
		}
	})
}

func randomTIMELYParams(r *rand.Rand) rateTimelyParams {
	lineBps := logUniform(r, 1e6, maxLineBps)
	low := pick(r, 0, logUniform(r, 1, maxRTTNs))
	return rateTimelyParams{
		LineRateBps:  lineBps,
		MinRateBps:   pick(r, 1, lineBps/1000, lineBps),
		DeltaBps:     logUniform(r, 1, lineBps),
		T_lowNs:      low,
		T_highNs:     logUniform(r, max(low, 1), maxRTTNs),
		MinRttNs:     logUniform(r, 1, maxRTTNs),
		SegmentBytes: pick(r, 0, 0, logUniform(r, 1, 1e6)),
		Ewma:         uint32(logUniform(r, 1, q24One)),
		Beta:         uint32(logUniform(r, 1, q24One)),
		MaxCut:       pick(r, q24One/2, q24One, uint32(r.IntN(q24One+1))),
		HaiAfter:     uint32(r.IntN(7)),
		HaiFactor:    1 + uint32(r.IntN(10)),
		DeltaFactor:  uint32(r.IntN(2)),
		TcdHoldNs:    pick(r, 0, logUniform(r, 1, maxRTTNs)),
	}
}

var _ = oracle(TestTIMELYWithTCD, "timely+tcd")

// TCD: CE lets the rate only fall, UE not change and no mark only rise, and each as far as TIMELY says.
func TestTIMELYWithTCD(t *testing.T) {
	s := loadSenders(t)

	plain := paperTIMELY(10e9)
	const low, gap, hold = 10e9 * (1 - 0.8/2), 1_000_000, 1_100_000 // low after 1000 us; completions are 1 ms apart
	const (
		falls  = 300
		ceSays = rateEventNOTICE
		ueSays = rateEventHOLD
		silent = rateEventACK
	)
	for _, test := range []struct {
		name  string
		says  rateEvent
		agoNs uint64 // before the last completion
		rttUs float64
		want  float64
	}{
		{"CE, and TIMELY adds", ceSays, 0, falls, low},
		{"CE, and it cuts", ceSays, 0, 1000, low * (1 - 0.8/2)},
		{"CE, below T_low", ceSays, 0, 40, low},
		{"UE, and TIMELY adds", ueSays, 0, falls, low},
		{"UE, and it cuts", ueSays, 0, 1000, low},
		{"UE, below T_low", ueSays, 0, 40, low},
		{"no mark, and TIMELY adds", silent, 0, falls, low + 10e6},
		{"no mark, and it cuts", silent, 0, 1000, low},
		{"no mark, below T_low", silent, 0, 40, low + 10e6},
		{"CE is in force for so long", ceSays, hold - 1, falls, low},
		{"and no longer", ceSays, hold, falls, low + 10e6},
		{"so is UE", ueSays, hold - 1, falls, low},
		{"and not longer", ueSays, hold, falls, low + 10e6},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := plain
			p.TcdHoldNs = hold
			first := rateTimelyStep{Event: ceSays, NowNs: startNs}
			steps := append([]rateTimelyStep{first}, rtts(1000)...) // cut to low
			at := startNs + 10*uint64(gap)
			if test.says != silent {
				steps = append(steps, rateTimelyStep{Event: test.says, NowNs: at - test.agoNs})
			}
			last := rtts(test.rttUs)[0]
			last.NowNs = at
			steps = checkTIMELY(t, s, p, append(steps, last))
			near(t, float64(lastRate(steps)), test.want, 1000, "rate")

			// without TCD the marks are nothing
			before := steps[len(steps)-2].Rp.RateBps
			unmarked := checkTIMELY(t, s, plain, steps[1:])
			qt.Check(t, qt.Not(qt.Equals(lastRate(unmarked), before)))
		})
	}
}

// TCD: CE is in force to its own end, whatever UE comes after it, and UE to its own.
func TestTIMELYWithTCDOverlaps(t *testing.T) {
	s := loadSenders(t)

	p := paperTIMELY(10e9)
	p.TcdHoldNs = 50_000
	cnp := func(e rateEvent, us uint64) rateTimelyStep { return rateTimelyStep{Event: e, NowNs: startNs + us*1000} }
	for _, test := range []struct {
		name                 string
		marks                []rateTimelyStep
		decrease, hold, rise uint64 // us at which the rate does so
	}{
		{"UE in CE", []rateTimelyStep{cnp(rateEventNOTICE, 0), cnp(rateEventHOLD, 20)}, 49, 60, 70},
		{"CE in UE", []rateTimelyStep{cnp(rateEventHOLD, 0), cnp(rateEventNOTICE, 10)}, 59, 0, 60},
	} {
		t.Run(test.name, func(t *testing.T) {
			for us, change := range map[uint64]int{test.decrease: -1, test.hold: 0, test.rise: 1} {
				if us == 0 {
					continue
				}
				for _, rttUs := range []float64{1000, 40} { // TIMELY cuts, TIMELY adds
					first := rtts(1000)[0]
					first.NowNs = startNs
					last := rtts(rttUs)[0]
					last.NowNs = startNs + us*1000
					steps := append([]rateTimelyStep{cnp(rateEventNOTICE, 0), first}, test.marks...)
					steps = checkTIMELY(t, s, p, append(steps, last))
					before := steps[len(steps)-2].Rp.RateBps
					want := 0
					if change < 0 && rttUs == 1000 || change > 0 && rttUs == 40 {
						want = change
					}
					qt.Check(t, qt.Equals(cmp.Compare(lastRate(steps), before), want), qt.Commentf("after %d us, RTT %g us", us, rttUs))
				}
			}
		})
	}
}

// randomRTTs makes RTTs that wander, stay for a while, or jump anywhere, with losses, marks, and ACKs that tell no RTT.
func randomRTTs(r *rand.Rand, p rateTimelyParams, n int) []rateTimelyStep {
	steps := make([]rateTimelyStep, n)
	nowNs := logUniform(r, 1, 1<<62)
	rttNs := float64(logUniform(r, max(p.MinRttNs/10, 1), min(20*p.MinRttNs, maxRTTNs)))
	spread := pick(r, 1e-6, 0.001, 0.1)
	for i := range steps {
		switch r.IntN(30) {
		case 0:
			rttNs = float64(logUniform(r, 1, maxRTTNs))
		case 1:
			rttNs = float64(p.MinRttNs)
		case 2: // no change
		default:
			rttNs = min(max(rttNs*(1+spread*r.NormFloat64()), 1), float64(maxRTTNs))
		}
		nowNs += logUniform(r, 1, 10*p.MinRttNs)
		steps[i] = rateTimelyStep{
			Event: rateEventACK, NowNs: nowNs, RttNs: uint64(rttNs), AckedBytes: uint32(logUniform(r, 1, 100_000)),
		}
		switch r.IntN(100) {
		case 0:
			steps[i].Event = rateEventLOSS
		case 1:
			steps[i].RttNs = 0
		case 2:
			steps[i].AckedBytes = 0
		case 3, 4:
			steps[i].Event = pick(r, rateEventNOTICE, rateEventHOLD)
		}
	}
	return steps
}

// HPCC's simulator: the first ACK measures, and after it one of what was sent after the latest
// update. Six increases in a row, below T_low too: the sixth adds R_HAI.
func TestTIMELYPerRoundTrip(t *testing.T) {
	s := loadSenders(t)

	p := hpccTIMELY(10e9)
	var steps []rateTimelyStep
	ack := func(atUs, rttUs uint64) {
		steps = append(steps, rateTimelyStep{
			NowNs: startNs + atUs*1000, RttNs: rttUs * 1000, AckedBytes: 1000, Event: rateEventACK,
		})
	}
	rate := func() float64 { return float64(lastRate(checkTIMELY(t, s, p, steps))) }

	ack(1000, 1000) // measures
	near(t, rate(), 10e9, 0, "rate after the first ACK")
	ack(1500, 1000) // was sent before
	near(t, rate(), 10e9, 0, "rate after an ACK of what was sent before the first")
	ack(2000, 1000) // 1 - 0.8 (1 - 500 / 1000)
	near(t, rate(), 6e9, 1000, "rate after a round trip")
	ack(2999, 1000)
	near(t, rate(), 6e9, 1000, "rate within the next")
	at := uint64(2000)
	for n := range uint64(6) {
		at += 40
		ack(at, 40)
		want := 6e9 + float64(n+1)*10e6
		if n == 5 {
			want += 40e6
		}
		near(t, rate(), want, 1000, "rate after %d increases", n+1)
	}
}
