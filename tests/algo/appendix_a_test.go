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

const (
	loopSeconds = paperTNs * 1e-9

	// What a receiving rate is off by at most: half the unit of RecRate, and a byte that did not fit in T.
	recRateErrBps = 0.5e6 + 8/loopSeconds

	// chunks is how many packets carry a source's data of one loop. The packet that opens a window comes before
	// them, empty and unmarked, and must be less than 5% of all.
	chunks = 24
)

// fluid is the model of Appendix A, where N sources share a bottleneck and time goes in control loops of T. NP and RP
// of every source are the bytecode.
type fluid struct {
	b           *bytecode
	rp          algoPcnRpParams
	capacityBps float64 // C
	wMin        float64
	ratesBps    []float64 // R_i(k)
	queueBits   float64   // Q(k)
	sentBytes   []float64 // not a whole byte yet
	loop        int       // k
}

func newFluid(t testing.TB, b *bytecode, capacityBps float64, wMin uint32, ratesBps []float64) *fluid {
	t.Helper()

	f := &fluid{
		b:           b,
		rp:          algoPcnRpParams{LineRateBps: uint64(capacityBps), MinRateBps: 1e6, W_min: wMin, W_max: wOne / 2},
		capacityBps: capacityBps,
		wMin:        float64(wMin) / wOne,
		ratesBps:    ratesBps,
		sentBytes:   make([]float64, len(ratesBps)),
	}
	for i, bps := range ratesBps {
		qt.Assert(t, qt.IsNil(b.objs.RpFlows.Put(uint32(i), algoPcnRp{SendRateBps: uint64(bps), W: wMin})))
		qt.Assert(t, qt.IsNil(b.objs.NpFlows.Put(uint32(i), algoPcnNp{})))
	}
	f.receive(t, f.openers())
	return f
}

// step goes from k to k+1 and returns p(k), whether the link was congested: equations (3) to (7).
func (f *fluid) step(t testing.TB) (congested bool) {
	t.Helper()

	sumBps := f.sumBps()
	f.queueBits = max(0, f.queueBits+(sumBps-f.capacityBps)*loopSeconds) // (3)
	congested = f.queueBits > 0                                          // (4)

	var packets []algoNpStep
	for i, bps := range f.ratesBps {
		if congested {
			bps *= f.capacityBps / sumBps // (5)
		}
		f.sentBytes[i] += bps * loopSeconds / 8
		whole := math.Floor(f.sentBytes[i])
		f.sentBytes[i] -= whole
		packets = append(packets, f.data(i, uint64(whole), congested)...)
	}
	f.loop++
	f.receive(t, append(packets, f.openers()...)) // (6), (7)
	return congested
}

// data cuts a source's data of this loop into packets.
func (f *fluid) data(flow int, bytes uint64, marked bool) []algoNpStep {
	packets := make([]algoNpStep, chunks)
	for i := range packets {
		c := uint64(i)
		packets[i] = algoNpStep{
			NowNs:     f.nowNs() + (c+1)*paperTNs/(chunks+1),
			SizeBytes: uint32((c+1)*bytes/chunks - c*bytes/chunks),
			Flow:      uint32(flow),
			Ce:        marked,
		}
	}
	return packets
}

// openers close every source's window and open the next.
func (f *fluid) openers() []algoNpStep {
	packets := make([]algoNpStep, len(f.ratesBps))
	for i := range packets {
		packets[i] = algoNpStep{NowNs: f.nowNs(), Flow: uint32(i)}
	}
	return packets
}

// receive hands packets to NP and its CNPs to RP.
func (f *fluid) receive(t testing.TB, packets []algoNpStep) {
	t.Helper()

	f.b.np(t, algoPcnNpParams{T_ns: paperTNs, CongestedPermille: paperPermille}, packets)
	var cnps []algoRpStep
	for _, s := range packets {
		if !s.Cnp.Send {
			continue
		}
		cnps = append(cnps, algoRpStep{
			Event: algoRpEventRP_CNP, Flow: s.Flow, Ce: s.Cnp.Ce, RecRateBps: uint64(s.Cnp.RecRate) * 1e6,
		})
	}
	f.b.rp(t, f.rp, cnps)
	for _, s := range cnps {
		f.ratesBps[s.Flow] = float64(s.SendRateBps)
	}
}

func (f *fluid) nowNs() uint64 { return startNs + uint64(f.loop)*paperTNs }

func (f *fluid) sumBps() (sum float64) {
	for _, bps := range f.ratesBps {
		sum += bps
	}
	return sum
}

// shares returns eta_i(k).
func (f *fluid) shares() []float64 {
	sumBps := f.sumBps()
	shares := make([]float64, len(f.ratesBps))
	for i, bps := range f.ratesBps {
		shares[i] = bps / sumBps
	}
	return shares
}

// sumErr bounds how far the sum of the rates strays from (1 - w_min) C while the queue drains. Above, every RecRate
// may be rounded up. Below, line 6 never takes a rounding down back, until the sum is so low that the receiving
// rate, eta C, exceeds the sending rate by more than a rounding; no share here is under 1/3 of the fair one.
func (f *fluid) sumErr() (aboveBps, belowBps float64) {
	n := float64(len(f.ratesBps))
	return n * recRateErrBps, 4 * n * recRateErrBps
}

type fluidCase struct {
	capacityBps float64
	wMin        uint32
	flows       int
}

func (c fluidCase) String() string {
	return fmt.Sprintf("%d flows, %g Gbit/s, w_min %.5f", c.flows, c.capacityBps/1e9, float64(c.wMin)/wOne)
}

func fluidCases() []fluidCase {
	rule := func(flows float64) uint32 { return uint32(math.Round(0.1 / flows * wOne)) } // w_min = 0.1/N, sec. 6.2
	return []fluidCase{
		{40e9, wOne / 16, 2},
		{10e9, wOne / 128, 4},
		{40e9, wOne / 128, 4},
		{40e9, rule(4), 4},
		{40e9, wOne / 128, 12},
		{100e9, rule(12), 12},
		{400e9, wOne / 128, 64},
	}
}

// overload draws rates whose sum exceeds C, none over C nor under 1/3 of the fair share.
func overload(r *rand.Rand, c fluidCase) []float64 {
	weights := make([]float64, c.flows)
	sum := 0.
	for i := range weights {
		weights[i] = 0.5 + r.Float64()
		sum += weights[i]
	}
	factor := 1.1 + 0.2*r.Float64()
	for i := range weights {
		weights[i] = math.Floor(min(1, weights[i]/sum*factor) * c.capacityBps)
	}
	return weights
}

// Proposition 1: after one loop the sum of the rates is (1 - w_min) C, and shares are kept (8). Then the queue is
// empty after ceil(1 + (sum R(0) - C) / (w_min C)) loops.
func TestFluidConvergence(t *testing.T) {
	b := load(t)

	for _, c := range fluidCases() {
		t.Run(c.String(), func(t *testing.T) {
			for seed := range uint64(5) {
				r := rand.New(rand.NewPCG(seed, 7))
				f := newFluid(t, b, c.capacityBps, c.wMin, overload(r, c))
				shares := f.shares()
				excessBps := f.sumBps() - c.capacityBps
				aboveBps, belowBps := f.sumErr()

				qt.Assert(t, qt.IsTrue(f.step(t)))
				near(t, f.queueBits, excessBps*loopSeconds, 1, "Q(1)")
				near(t, f.sumBps(), (1-f.wMin)*c.capacityBps, aboveBps, "sum of rates after one loop")
				for i, bps := range f.ratesBps {
					near(t, bps, (1-f.wMin)*shares[i]*c.capacityBps, recRateErrBps, "rate of source %d after one loop", i)
				}

				drainBps := f.wMin * c.capacityBps
				fastest := math.Ceil(1 + excessBps/(drainBps+belowBps))
				slowest := math.Ceil(1 + excessBps/(drainBps-aboveBps))
				for f.queueBits > 0 && float64(f.loop) <= slowest {
					f.step(t)
				}
				qt.Check(t, qt.IsTrue(float64(f.loop) >= fastest && float64(f.loop) <= slowest),
					qt.Commentf("the queue took %d loops to drain, want %g to %g", f.loop, fastest, slowest))
			}
		})
	}
}

// From an idle link, fewer than 10 loops fill it (Appendix A, case 2).
func TestFluidFillsIdleLink(t *testing.T) {
	b := load(t)

	for _, c := range fluidCases()[1:] { // two flows need 10, see Fig. 10
		t.Run(c.String(), func(t *testing.T) {
			f := newFluid(t, b, c.capacityBps, wOne/128, slices.Repeat([]float64{1e6}, c.flows))
			for !f.step(t) && f.loop < 100 {
			}
			increases := f.loop - 1
			qt.Check(t, qt.IsTrue(increases < 10), qt.Commentf("the link was full after %d loops", increases))
		})
	}
}

// Proposition 2 and equations (12) to (16): the steady state repeats one increase and N-1 decreases.
func TestFluidSteadyState(t *testing.T) {
	b := load(t)

	for _, c := range fluidCases() {
		t.Run(c.String(), func(t *testing.T) {
			f := newFluid(t, b, c.capacityBps, c.wMin, overload(rand.New(rand.NewPCG(1, 8)), c))
			f.period(t)

			n, w := float64(c.flows), f.wMin
			keep := (1 - w) * (1 - w) / ((1-w)*(1-w) + n*w) // a of (14)
			// What a share is off by after a period: its own rounding, and that of all others.
			shareErr := 2 * recRateErrBps / c.capacityBps
			fairErr := shareErr / (1 - keep)
			periods := int(math.Ceil(math.Log(fairErr*n) / math.Log(keep)))
			for range periods {
				before := f.shares()
				f.period(t)
				for i, share := range f.shares() {
					near(t, share, keep*before[i]+(1-keep)/n, shareErr, "share of source %d", i) // (13)
				}
			}
			for i, share := range f.shares() {
				near(t, share, 1/n, 2*fairErr, "share of source %d after %d periods", i, periods)
			}
			checkPeriod(t, f, 2*fairErr)
		})
	}
}

// Fair "regardless of the initial sending rates" (Proposition 2): a newcomer at line rate among sources at the floor.
func TestFluidFairFromUnfair(t *testing.T) {
	b := load(t)

	const capacityBps, flows, loops = 40e9, 4, 1500
	ratesBps := slices.Repeat([]float64{1e6}, flows)
	ratesBps[0] = capacityBps
	f := newFluid(t, b, capacityBps, wOne/128, ratesBps)
	for range loops {
		f.step(t)
	}
	for i, share := range f.shares() {
		near(t, share, 1./flows, 0.01/flows, "share of source %d", i)
	}
}

// fluidPeriod is what happened from one increase to the next.
type fluidPeriod struct {
	congestedLoops int
	maxQueueBits   float64
	swingBps       float64 // largest of any source
}

// period goes on until right after the next increase.
func (f *fluid) period(t testing.TB) fluidPeriod {
	t.Helper()

	var p fluidPeriod
	highest, lowest := slices.Clone(f.ratesBps), slices.Clone(f.ratesBps)
	for {
		congested := f.step(t)
		if !congested {
			break
		}
		p.congestedLoops++
		p.maxQueueBits = max(p.maxQueueBits, f.queueBits)
		for i, bps := range f.ratesBps {
			highest[i] = max(highest[i], bps)
			lowest[i] = min(lowest[i], bps)
		}
		qt.Assert(t, qt.IsTrue(p.congestedLoops < 1000), qt.Commentf("the queue does not drain"))
	}
	for i := range highest {
		p.swingBps = max(p.swingBps, highest[i]-lowest[i])
	}
	return p
}

// checkPeriod checks a period of the steady state, where every share is 1/N within fairErr.
func checkPeriod(t testing.TB, f *fluid, fairErr float64) {
	t.Helper()

	p := f.period(t)
	n, w, capacityBps := float64(len(f.ratesBps)), f.wMin, f.capacityBps
	aboveBps, belowBps := f.sumErr()

	excessBps := (n - 2 + w) * w * capacityBps
	qt.Check(t, qt.IsTrue(p.maxQueueBits <= (excessBps+aboveBps)*loopSeconds && p.maxQueueBits >= (excessBps-belowBps)*loopSeconds),
		qt.Commentf("max queue %g bytes, want %g", p.maxQueueBits/8, excessBps*loopSeconds/8)) // (15)

	fewest := math.Ceil((excessBps - belowBps) / (w*capacityBps + belowBps))
	most := math.Ceil((excessBps + aboveBps) / (w*capacityBps - aboveBps))
	qt.Check(t, qt.IsTrue(float64(p.congestedLoops) >= fewest && float64(p.congestedLoops) <= most),
		qt.Commentf("%d decreases in a row, want %g, from %g to %g", p.congestedLoops, n-1, fewest, most))

	// (11) and (12) are w_min C (1 - (1 - w_min)/N) apart; (16) rounds that up to w_min C.
	swingBps := w * capacityBps * (1 - (1-w)/n)
	near(t, p.swingBps, swingBps, 4*recRateErrBps+w*fairErr*capacityBps, "rate swing")
	qt.Check(t, qt.IsTrue(p.swingBps <= w*capacityBps))
}
