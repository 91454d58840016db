// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	wOne = q24One

	maxRateBps = math.MaxUint32 * uint64(1e6) // the most RecRate can say

	// Below these weights the Q24 rounding of w, one part in w each step, adds up to more than 0.1%.
	preciseWMin = wOne / 1024
	preciseWMax = wOne / 8
)

// rpOracle is Algorithm 1 in real numbers, with how far integers may stray from it:
//
//	rate + gap * w  rounded to 1 bit/s       moves the rate by at most 1/2
//	w - w*w + wmax * w  rounded to 2^-24     moves w by at most 2 * 1/2 * 2^-24
//
// and what strayed before is carried through the same equations.
type rpOracle struct {
	line, floor, wMin, wMax *big.Float

	rate, w       *big.Float
	rateErr, wErr float64
	steps         float64
}

func newRPOracle(p algoPcnRpParams) *rpOracle {
	o := &rpOracle{
		line:  real(p.LineRateBps),
		floor: real(p.MinRateBps),
		wMin:  fraction(p.W_min),
		wMax:  fraction(p.W_max),
	}
	o.rate, o.w = o.line, o.wMin // lines 1 and 2
	return o
}

func (o *rpOracle) cnp(ce bool, recRateBps uint64) {
	o.steps++
	if ce {
		target := mul(real(recRateBps), sub(real(1), o.wMin))
		o.rate = least(o.rate, greatest(target, o.floor)) // line 6
		o.rateErr = max(o.rateErr, 0.5)
		o.w, o.wErr = o.wMin, 0 // line 7
		return
	}

	keep := sub(real(1), o.w)
	gap := float(sub(o.line, o.rate))
	w, wMax := float(o.w), float(o.wMax)
	o.rateErr = (1-w+o.wErr)*o.rateErr + gap*o.wErr + 0.5
	o.wErr = math.Abs(1-2*w+wMax)*o.wErr + o.wErr*o.wErr + 1./wOne

	o.rate = add(mul(o.rate, keep), mul(o.line, o.w)) // line 10
	o.w = add(mul(o.w, keep), mul(o.wMax, o.w))       // line 11
}

// loss is not in the paper: see pcn_rp_loss.
func (o *rpOracle) loss() {
	o.steps++
	o.rate = greatest(mul(o.rate, big.NewFloat(0.5)), o.floor)
	o.rateErr = o.rateErr/2 + 0.5
	o.w, o.wErr = o.wMin, 0
}

func (o *rpOracle) apply(s algoRpStep) {
	switch s.Event {
	case algoRpEventRP_CNP:
		o.cnp(s.Ce, s.RecRateBps)
	case algoRpEventRP_LOSS:
		o.loss()
	}
}

// check tells whether the outcome of a step is what the paper asks for.
func (o *rpOracle) check(s algoRpStep) error {
	const slack = 1 + 1e-9 // of the error bound, which is in float64

	rate, w := float(o.rate), float(o.w)
	rateErr := math.Abs(float(sub(real(s.SendRateBps), o.rate)))
	wErr := math.Abs(float(sub(fraction(s.W), o.w)))
	if rateErr > o.rateErr*slack {
		return fmt.Errorf("sendRate is %d bit/s, want %.1f within %.3g", s.SendRateBps, rate, o.rateErr)
	}
	if wErr > o.wErr*slack {
		return fmt.Errorf("w is %.8f, want %.8f within %.3g", float(fraction(s.W)), w, o.wErr)
	}
	if float(o.wMin)*wOne < preciseWMin || float(o.wMax)*wOne < preciseWMax {
		return nil
	}
	if rateErr > 0.001*rate+o.steps {
		return fmt.Errorf("sendRate is %d bit/s, want %.1f within 0.1%%", s.SendRateBps, rate)
	}
	if wErr > 0.001*w {
		return fmt.Errorf("w is %.8f, want %.8f within 0.1%%", float(fraction(s.W)), w)
	}
	return nil
}

func real(x uint64) *big.Float { return new(big.Float).SetPrec(160).SetUint64(x) }
func fraction(q24 uint32) *big.Float {
	return new(big.Float).SetPrec(160).SetMantExp(real(uint64(q24)), -24)
}
func add(a, b *big.Float) *big.Float { return new(big.Float).Add(a, b) }
func sub(a, b *big.Float) *big.Float { return new(big.Float).Sub(a, b) }
func mul(a, b *big.Float) *big.Float { return new(big.Float).Mul(a, b) }

func float(x *big.Float) float64 {
	f, _ := x.Float64()
	return f
}

func least(a, b *big.Float) *big.Float {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greatest(a, b *big.Float) *big.Float {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

// checkRPInvariants tells whether a step broke what must hold whatever the numbers are.
func checkRPInvariants(p algoPcnRpParams, before, after algoRpStep) error {
	rate, w := after.SendRateBps, after.W
	switch {
	case rate > p.LineRateBps:
		return fmt.Errorf("sendRate %d over lineRate %d", rate, p.LineRateBps)
	case rate < p.MinRateBps:
		return fmt.Errorf("sendRate %d under the floor %d", rate, p.MinRateBps)
	case w < p.W_min || w > p.W_max:
		return fmt.Errorf("w %d outside of w_min %d to w_max %d", w, p.W_min, p.W_max)
	}

	switch {
	case after.Event == algoRpEventRP_INIT:
		return nil
	case after.Event == algoRpEventRP_CNP && !after.Ce:
		if rate < before.SendRateBps || w < before.W {
			return fmt.Errorf("an increase lowered (%d, %d) to (%d, %d)", before.SendRateBps, before.W, rate, w)
		}
	default:
		if rate > before.SendRateBps || w != p.W_min {
			return fmt.Errorf("a decrease turned (%d, %d) into (%d, %d)", before.SendRateBps, before.W, rate, w)
		}
	}
	return nil
}

// checkRP runs the steps of one flow, RP_INIT put before them, and compares each with the oracle.
func checkRP(t testing.TB, b *bytecode, p algoPcnRpParams, steps []algoRpStep) {
	t.Helper()

	steps = append([]algoRpStep{{Event: algoRpEventRP_INIT}}, steps...)
	b.rp(t, p, steps)

	o := newRPOracle(p)
	for i, s := range steps {
		o.apply(s)
		comment := qt.Commentf("step %d: %+v, params %+v", i, s, p)
		qt.Assert(t, qt.IsNil(o.check(s)), comment)
		qt.Assert(t, qt.IsNil(checkRPInvariants(p, steps[max(i-1, 0)], s)), comment)
	}
}

func TestRPFig10(t *testing.T) {
	b := load(t)

	// Rate as a fraction of the line rate, and w, after k increases from rate 0. Fig. 10, w_min = 1/128, w_max = 0.5.
	rates := map[int]float64{
		1: .00781, 2: .01938, 3: .03639, 4: .06118, 5: .09679, 6: .14687, 8: .30447, 10: .53812, 12: .77649, 15: .95840, 20: .99859,
	}
	weights := map[int]float64{5: .05545, 10: .27267, 15: .47952}
	const digits = 5e-6 // of the values above

	linesBps := []uint64{
		1e6, 1_000_003, 7_777_777, 1e7, 1e8, 123_456_789, 1e9, 2_500_000_000, 1e10, 25e9, 40e9, 39_062_500, 1<<35 + 1,
		100e9, 399_999_999_989, 400e9, 800e9, maxRateBps,
	}
	for _, lineBps := range linesBps {
		t.Run(fmt.Sprint(lineBps), func(t *testing.T) {
			p := algoPcnRpParams{LineRateBps: lineBps, W_min: wOne / 128, W_max: wOne / 2}
			steps := make([]algoRpStep, 22)
			for k := range steps {
				steps[k].Event = algoRpEventRP_CNP
			}
			steps[0].Event = algoRpEventRP_INIT
			steps[1].Ce = true // RecRate 0
			b.rp(t, p, steps)
			qt.Assert(t, qt.Equals(steps[0].SendRateBps, lineBps))
			qt.Assert(t, qt.Equals(steps[0].W, p.W_min))

			curve := steps[1:]
			qt.Assert(t, qt.Equals(curve[0].SendRateBps, 0))
			for k, want := range rates {
				got := float64(curve[k].SendRateBps) / float64(lineBps)
				near(t, got, want, 0.001*want+digits+float64(k)/float64(lineBps), "rate after %d CNPs", k)
			}
			for k, want := range weights {
				near(t, float64(curve[k].W)/wOne, want, 0.001*want+digits, "w after %d CNPs", k)
			}
			// Sec. 5.3: "no more than 10% of the line rate in the first 5 CNPs, but 95% after only 15".
			qt.Check(t, qt.IsTrue(curve[5].SendRateBps*100 <= lineBps*10))
			qt.Check(t, qt.IsTrue(curve[15].SendRateBps*100 >= lineBps*95))
		})
	}
}

func TestRPSteps(t *testing.T) {
	b := load(t)

	p := algoPcnRpParams{LineRateBps: 40e9, MinRateBps: 1e6, W_min: wOne / 128, W_max: wOne / 2}
	increase := algoRpStep{Event: algoRpEventRP_CNP}
	decrease := func(recRateBps uint64) algoRpStep {
		return algoRpStep{Event: algoRpEventRP_CNP, Ce: true, RecRateBps: recRateBps}
	}
	loss := algoRpStep{Event: algoRpEventRP_LOSS}

	for _, test := range []struct {
		name        string
		steps       []algoRpStep
		wantRateBps uint64
		wantW       uint32
	}{
		{"starts at line rate", nil, 40e9, wOne / 128},
		{"decrease goes below the receiving rate", []algoRpStep{decrease(12.8e9)}, 12.7e9, wOne / 128},
		{"a higher receiving rate is ignored", []algoRpStep{decrease(12.8e9), decrease(25.6e9)}, 12.7e9, wOne / 128},
		{"receiving at line rate", []algoRpStep{decrease(40e9)}, 39.6875e9, wOne / 128},
		{"floor", []algoRpStep{decrease(1e6)}, 1e6, wOne / 128},
		{"receiving rate 0", []algoRpStep{decrease(0)}, 1e6, wOne / 128},
		{"largest receiving rate", []algoRpStep{decrease(maxRateBps)}, 40e9, wOne / 128},
		// 12.7 + (40 - 12.7) / 128 Gbit/s; w (1 + 1/2 - w) = 191/16384
		{"increase", []algoRpStep{decrease(12.8e9), increase}, 12_913_281_250, 191 << 10},
		{"decrease resets w", []algoRpStep{increase, increase, decrease(12.8e9)}, 12.7e9, wOne / 128},
		{"increase at line rate raises only w", []algoRpStep{increase}, 40e9, 191 << 10},
		{"loss halves", []algoRpStep{decrease(12.8e9), loss}, 6.35e9, wOne / 128},
		{"loss resets w", []algoRpStep{increase, loss}, 20e9, wOne / 128},
		{"loss stops at the floor", []algoRpStep{decrease(1_500_000), loss}, 1e6, wOne / 128},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := append([]algoRpStep{{Event: algoRpEventRP_INIT}}, test.steps...)
			b.rp(t, p, steps)
			got := steps[len(steps)-1]
			qt.Check(t, qt.Equals(got.SendRateBps, test.wantRateBps))
			qt.Check(t, qt.Equals(got.W, test.wantW))
		})
	}
}

// The loader may lower a line rate under a running flow.
func TestRPOverLineRate(t *testing.T) {
	b := load(t)

	flow := algoPcnRp{SendRateBps: 40e9, W: wOne / 2}
	qt.Assert(t, qt.IsNil(b.objs.RpFlows.Put(uint32(0), flow)))
	steps := []algoRpStep{{Event: algoRpEventRP_CNP}}
	b.rp(t, algoPcnRpParams{LineRateBps: 10e9, W_min: wOne / 128, W_max: wOne / 2}, steps)
	qt.Assert(t, qt.Equals(steps[0].SendRateBps, 40e9), qt.Commentf("an increase without room must change nothing"))
}

var _ = oracle(TestRPRandomCNPs, "pcn")

func TestRPRandomCNPs(t *testing.T) {
	b := load(t)

	const sequences, length = 400, 600
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 0))
		p := randomRPParams(r)
		checkRP(t, b, p, randomCNPs(r, p, length))
	}
}

func randomRPParams(r *rand.Rand) algoPcnRpParams {
	lineBps := logUniform(r, 1e6, pick(r, 800e9, maxRateBps))
	wMin := uint32(logUniform(r, pick[uint64](r, 1, preciseWMin), wOne-1))
	return algoPcnRpParams{
		LineRateBps: lineBps,
		MinRateBps:  pick(r, 0, min(1e6, lineBps), lineBps/1000, lineBps),
		W_min:       wMin,
		W_max:       uint32(logUniform(r, uint64(wMin), wOne-1)),
	}
}

func randomCNPs(r *rand.Rand, p algoPcnRpParams, n int) []algoRpStep {
	steps := make([]algoRpStep, n)
	o := newRPOracle(p)
	ceShare := pick(r, 0.02, 0.1, 0.5, 0.9)
	for i := range steps {
		s := algoRpStep{Event: algoRpEventRP_CNP, Ce: r.Float64() < ceShare}
		if r.IntN(100) == 0 {
			s.Event = algoRpEventRP_LOSS
		}
		nearby := uint64(float(o.rate) * (0.5 + r.Float64()))
		s.RecRateBps = min(pick(r, nearby, nearby, 0, logUniform(r, 1, maxRateBps)), maxRateBps)
		o.apply(s)
		steps[i] = s
	}
	return steps
}

func FuzzRP(f *testing.F) {
	b := load(f)

	f.Add(uint64(40e9), uint64(1e6), uint32(wOne/128), uint32(wOne/2), []byte{1, 0, 0, 0x4e, 0x20, 0, 0, 0, 0, 0, 2, 0, 0, 0, 0})
	f.Add(maxRateBps, uint64(0), uint32(wOne-1), uint32(wOne-1), []byte{1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff, 0xff, 0xff, 0xff})
	f.Add(uint64(1), uint64(1), uint32(1), uint32(1), []byte{0, 0, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0})
	f.Add(uint64(1e6), uint64(0), uint32(1), uint32(wOne-1), make([]byte, 500))
	f.Fuzz(func(t *testing.T, lineBps, minBps uint64, wMin, wMax uint32, events []byte) {
		p := algoPcnRpParams{
			LineRateBps: lineBps%maxRateBps + 1,
			W_min:       wMin%(wOne-1) + 1,
		}
		p.MinRateBps = minBps % (p.LineRateBps + 1)
		p.W_max = p.W_min + wMax%(wOne-p.W_min)
		checkRP(t, b, p, decodeCNPs(events))
	})
}

// decodeCNPs reads events of 5 bytes: 0 an increase, 1 a decrease, 2 a loss; then RecRate in Mbit/s.
func decodeCNPs(data []byte) []algoRpStep {
	const size, most = 5, 2000
	var steps []algoRpStep
	for ; len(data) >= size && len(steps) < most; data = data[size:] {
		s := algoRpStep{
			Event:      algoRpEventRP_CNP,
			Ce:         data[0]%3 == 1,
			RecRateBps: uint64(binary.BigEndian.Uint32(data[1:])) * 1e6,
		}
		if data[0]%3 == 2 {
			s.Event = algoRpEventRP_LOSS
		}
		steps = append(steps, s)
	}
	return steps
}
