// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const cctEntries = 128

// cctEntry is two bits of shift and 14 of multiplier.
func cctEntry(multiplier, shift uint16) uint16 { return shift<<14 | multiplier }

// halvesIBCC has a table whose entry i is a delay of i/2 packet times, so that CCTI 2 halves the rate.
func halvesIBCC(lineBps uint64) rateIbccParams {
	p := rateIbccParams{LineRateBps: lineBps, TimerNs: 20_480, Increase: 1, Limit: cctEntries - 1}
	for i := range p.Cct {
		p.Cct[i] = cctEntry(uint16(i), 1)
	}
	return p
}

// ibccOracle is annex A10 as a calendar: the timer, if it runs, ends at these times, one after the other.
type ibccOracle struct {
	params rateIbccParams
	ccti   int64
	runs   bool
	endNs  uint64
}

func (o *ibccOracle) apply(s rateIbccStep) {
	if s.Event == rateEventINIT {
		*o = ibccOracle{params: o.params, ccti: int64(o.params.Min)}
		return
	}
	for o.runs && o.endNs <= s.NowNs { // each CCTI_Timer expiry
		o.ccti--
		o.endNs += o.params.TimerNs
		o.runs = o.ccti > int64(o.params.Min)
	}
	switch s.Event {
	case rateEventNOTICE, rateEventLOSS:
		o.ccti = min(o.ccti+int64(o.params.Increase), int64(o.params.Limit))
		if !o.runs {
			o.runs, o.endNs = o.ccti > int64(o.params.Min), s.NowNs+o.params.TimerNs
		}
	case rateEventHOLD:
		o.endNs = s.NowNs + o.params.TimerNs
	}
}

// rateBps is one packet in the time of itself and the delay, exactly, rounded down.
func (o *ibccOracle) rateBps() uint64 {
	entry := o.params.Cct[o.ccti]
	delay := big.NewRat(int64(entry%(1<<14)), int64(1)<<(entry/(1<<14))) // packet times
	rate := new(big.Rat).SetUint64(o.params.LineRateBps)
	rate.Quo(rate, delay.Add(delay, big.NewRat(1, 1)))
	return new(big.Int).Quo(rate.Num(), rate.Denom()).Uint64()
}

// checkIBCC runs the steps of one flow, INIT put before them, and compares each with the oracle. It returns all.
func checkIBCC(t testing.TB, s *senders, p rateIbccParams, steps []rateIbccStep) []rateIbccStep {
	t.Helper()

	steps = append([]rateIbccStep{{Event: rateEventINIT}}, steps...)
	s.ibcc(t, p, steps)
	o := ibccOracle{params: p}
	for i, step := range steps {
		o.apply(step)
		if int64(step.Rp.Ccti) != o.ccti || step.RateBps != o.rateBps() {
			t.Fatalf("step %d: CCTI %d, %d bit/s, want %d, %d bit/s; %+v, params %+v", i, step.Rp.Ccti, step.RateBps, o.ccti, o.rateBps(), step, p)
		}
	}
	return steps
}

// ibccFlow writes down what happens to a flow that starts at startNs.
type ibccFlow struct {
	steps []rateIbccStep
	nowNs uint64
}

func newIBCCFlow() *ibccFlow { return &ibccFlow{nowNs: startNs} }

func (f *ibccFlow) add(e rateEvent, n int) *ibccFlow {
	for range n {
		f.steps = append(f.steps, rateIbccStep{NowNs: f.nowNs, Event: e})
	}
	return f
}

func (f *ibccFlow) becn(n int) *ibccFlow { return f.add(rateEventNOTICE, n) }

func (f *ibccFlow) ue() *ibccFlow { return f.add(rateEventHOLD, 1) }

// wait lets time pass, with an ACK after it.
func (f *ibccFlow) wait(ns uint64) *ibccFlow { return f.jump(ns).add(rateEventACK, 1) }

func (f *ibccFlow) jump(ns uint64) *ibccFlow {
	f.nowNs += ns
	return f
}

func TestIBCCSteps(t *testing.T) {
	s := loadSenders(t)

	const timer = 20_480
	plain := halvesIBCC(40e9)
	two, short, floor := plain, plain, plain
	two.Increase, two.Limit = 2, 6
	short.Limit = 3
	floor.Min = 4
	start := newIBCCFlow
	for _, test := range []struct {
		name     string
		params   rateIbccParams
		flow     *ibccFlow
		wantCCTI uint32
		wantBps  uint64
	}{
		{"starts at line rate", plain, start().wait(0), 0, 40e9},
		{"and stays", plain, start().wait(100 * timer), 0, 40e9},
		{"a BECN", plain, start().becn(1), 1, 26_666_666_666},
		{"two halve", plain, start().becn(2), 2, 20e9},
		{"CCTI_Increase", two, start().becn(2), 4, 13_333_333_333},
		{"CCTI_Limit", short, start().becn(10), 3, 16e9},
		{"which need not be a multiple", two, start().becn(5), 6, 10e9},
		{"CCTI_Min is where it starts", floor, start().wait(0), 4, 13_333_333_333},
		{"and ends", floor, start().becn(3).wait(50 * timer), 4, 13_333_333_333},
		{"not before the timer", plain, start().becn(2).wait(timer - 1), 2, 20e9},
		{"the timer", plain, start().becn(2).wait(timer), 1, 26_666_666_666},
		{"many periods at once", plain, start().becn(9).wait(5*timer + 1), 4, 13_333_333_333},
		{"a BECN does not put it off", plain, start().becn(2).wait(timer - 1).becn(1).wait(1), 2, 20e9},
		{"it runs from the first BECN on", plain, start().wait(timer - 1).becn(1).wait(timer - 1), 1, 26_666_666_666},
		{"also after it has stood", plain, start().becn(1).wait(10*timer + 7).becn(1).wait(timer - 1), 1, 26_666_666_666},
		{"a BECN finds what was due done", plain, start().becn(3).jump(2 * timer).becn(1), 2, 20e9},
		{"UE changes nothing", plain, start().becn(2).ue(), 2, 20e9},
		{"and puts the timer off", plain, start().becn(2).wait(timer - 1).ue().wait(timer - 1), 2, 20e9},
		{"by one period", plain, start().becn(2).wait(timer - 1).ue().wait(timer), 1, 26_666_666_666},
		{"what was due before is done", plain, start().becn(3).jump(timer).ue(), 2, 20e9},
		{"UE in a fresh flow", plain, start().ue().becn(1).wait(timer), 0, 40e9},
		{"a loss is a BECN", plain, start().add(rateEventLOSS, 2), 2, 20e9},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := checkIBCC(t, s, test.params, test.flow.steps)
			last := steps[len(steps)-1]
			qt.Check(t, qt.Equals(last.Rp.Ccti, test.wantCCTI))
			qt.Check(t, qt.Equals(last.RateBps, test.wantBps))
		})
	}
}

// The delay of each kind of entry: 14 bits of multiplier, and each shift.
func TestIBCCEntries(t *testing.T) {
	s := loadSenders(t)

	for _, lineBps := range []uint64{1, 1e6, 40e9, maxLineBps} {
		p := halvesIBCC(lineBps)
		multipliers := []uint16{0, 1, 2, 3, 7, 8, 100, 1<<13 - 1, 1 << 13, 1<<14 - 1}
		p.Limit = 0
		for shift := range uint16(4) {
			for _, m := range multipliers {
				p.Cct[p.Limit] = cctEntry(m, shift)
				p.Limit++
			}
		}
		p.Limit--
		checkIBCC(t, s, p, newIBCCFlow().becn(int(p.Limit)).steps)
	}
}

var _ = oracle(TestIBCCRandomBECNs, "ibcc", "ibcc+tcd")

func TestIBCCRandomBECNs(t *testing.T) {
	s := loadSenders(t)

	const sequences, length = 150, 500
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 60))
		p := rateIbccParams{
			LineRateBps: logUniform(r, 1, maxLineBps), TimerNs: logUniform(r, 1, 1e9),
			Increase: 1 + uint32(r.IntN(5)), Limit: uint32(r.IntN(cctEntries)),
		}
		p.Min = uint32(r.IntN(int(p.Limit) + 1))
		for i := range p.Cct {
			p.Cct[i] = uint16(r.Uint32())
		}
		share := pick(r, 0.05, 0.3, 0.8)
		steps := make([]rateIbccStep, length)
		nowNs := logUniform(r, 1, 1<<62)
		for i := range steps {
			nowNs += r.Uint64N(pick[uint64](r, 1, 2, 2, 2, 20)*p.TimerNs + 1)
			steps[i] = rateIbccStep{NowNs: nowNs, Event: rateEventACK}
			switch {
			case r.Float64() < share:
				steps[i].Event = rateEventNOTICE
			case r.IntN(10) == 0:
				steps[i].Event = rateEventHOLD
			case r.IntN(100) == 0:
				steps[i].Event = rateEventLOSS
			}
		}
		checkIBCC(t, s, p, steps)
	}
}
