// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// hpccDCTCP are the values of HPCC's simulation/run.py --cc dctcp.
func hpccDCTCP(lineBps uint64) rateDctcpRateParams {
	return rateDctcpRateParams{
		LineRateBps: lineBps, MinRateBps: min(1e9, lineBps/10), RateAiBps: 615e6,
		G: q24One / 16, InitialAlpha: q24One,
	}
}

// dctcpRateOracle is RdmaHw::HandleAckDctcp of HPCC's simulator: sequence numbers of bytes, which
// do not wrap, and real numbers, with how far integers may stray:
//
//	alpha   a share rounded down, and two products to nearest: 2 ulps of 2^-24 each round trip
//	a cut   alpha / 2 rounded down, and the product to nearest
type dctcpRateOracle struct {
	params rateDctcpRateParams

	rate, rateErr, alpha, alphaErr        float64
	lastUpdateSeq, highSeq, ecnCnt, batch uint64
	inCWR                                 bool
}

const dctcpRateMTU = 1000

func (o *dctcpRateOracle) init() {
	*o = dctcpRateOracle{
		params: o.params, rate: float64(o.params.LineRateBps),
		alpha: q24Float(o.params.InitialAlpha),
	}
}

func (o *dctcpRateOracle) set(rate, err float64) {
	o.rate = min(max(rate, float64(o.params.MinRateBps)), float64(o.params.LineRateBps))
	o.rateErr = err
}

func (o *dctcpRateOracle) ack(ackSeq, sndNxt, marks uint64) {
	newBatch := false
	o.ecnCnt += marks
	if ackSeq > o.lastUpdateSeq {
		newBatch = true
		if o.lastUpdateSeq == 0 {
			o.batch = sndNxt/dctcpRateMTU + 1
		} else {
			g := q24Float(o.params.G)
			frac := min(1, float64(o.ecnCnt)/float64(o.batch))
			o.alpha = (1-g)*o.alpha + g*frac
			o.alphaErr = (1-g)*o.alphaErr + 2*q24Ulp
			o.ecnCnt = 0
			o.batch = (sndNxt-ackSeq)/dctcpRateMTU + 1
		}
		o.lastUpdateSeq = sndNxt
	}
	if o.inCWR && ackSeq > o.highSeq {
		o.inCWR = false
	}
	if marks > 0 && !o.inCWR {
		share := 1 - o.alpha/2
		o.set(o.rate*share, o.rateErr*share+o.rate*(o.alphaErr/2+q24Ulp)+1)
		o.inCWR, o.highSeq = true, sndNxt
	}
	if !o.inCWR && newBatch {
		o.set(o.rate+float64(o.params.RateAiBps), o.rateErr)
	}
}

// dctcpRateACK is an ACK, in packets since the flow began.
type dctcpRateACK struct {
	sent, acked, marked uint64
	loss                bool // a loss in place of an ACK
}

// checkDCTCPRate runs the ACKs of a flow and compares every rate and alpha with HPCC's simulator.
func checkDCTCPRate(
	t testing.TB, s *senders, p rateDctcpRateParams, acks []dctcpRateACK,
) []rateDctcpRateStep {
	t.Helper()
	steps := []rateDctcpRateStep{{Event: rateEventINIT}}
	for _, a := range acks {
		step := rateDctcpRateStep{
			Sent: uint32(a.sent), Acked: uint32(a.acked), Marked: uint32(a.marked),
			Event: rateEventACK,
		}
		if a.loss {
			step.Event = rateEventLOSS
		}
		steps = append(steps, step)
	}
	s.dctcpRate(t, p, steps)
	o := dctcpRateOracle{params: p}
	o.init()
	marked := uint64(0)
	for i, a := range acks {
		if a.loss {
			o.set(o.rate/2, o.rateErr/2+1)
		} else {
			o.ack(a.acked*dctcpRateMTU, a.sent*dctcpRateMTU, a.marked-marked)
			marked = a.marked
		}
		got := steps[i+1].Rp
		near(t, q24Float(got.Alpha), o.alpha, o.alphaErr+1e-12, "alpha, ACK %d of %+v", i, p)
		near(t, float64(got.RateBps), o.rate, o.rateErr+1e-3, "rate, ACK %d of %+v", i, p)
	}
	return steps[1:]
}

// The values of run.py at 100 Gbit/s, ten packets a round trip.
func TestDCTCPRateSteps(t *testing.T) {
	s := loadSenders(t)

	const g = 1. / 16
	for _, test := range []struct {
		name  string
		acks  []dctcpRateACK
		rate  float64
		alpha float64
	}{
		{"starts at line rate", nil, 100e9, 1},
		{"stays there", []dctcpRateACK{{sent: 10, acked: 1}}, 100e9, 1},
		{"the first mark halves", []dctcpRateACK{{sent: 10, acked: 1, marked: 1}}, 50e9, 1},
		{"and one a round trip", []dctcpRateACK{
			{sent: 10, acked: 1, marked: 1}, {sent: 12, acked: 10, marked: 10},
		}, 50e9, 1},
		{"the next is of 11 packets", []dctcpRateACK{
			{sent: 10, acked: 1, marked: 1}, {sent: 12, acked: 11, marked: 1},
		}, 50.615e9, 1 - g + g/11},
		{"and may cut again", []dctcpRateACK{
			{sent: 10, acked: 1, marked: 1}, {sent: 12, acked: 11, marked: 11},
		}, 25e9, 1},
		{"a loss halves", []dctcpRateACK{{loss: true}}, 50e9, 1},
		{"not below the least rate", []dctcpRateACK{
			{loss: true}, {loss: true}, {loss: true}, {loss: true}, {loss: true}, {loss: true},
			{loss: true},
		}, 1e9, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			acks := test.acks
			if acks == nil {
				acks = []dctcpRateACK{{sent: 1, acked: 1}}
			}
			steps := checkDCTCPRate(t, s, hpccDCTCP(100e9), acks)
			last := steps[len(steps)-1].Rp
			near(t, float64(last.RateBps), test.rate, 1e4, "rate")
			near(t, q24Float(last.Alpha), test.alpha, 3*q24Ulp, "alpha")
		})
	}
}

var _ = oracle(TestDCTCPRateRandomACKs, "dctcp_rate")

func TestDCTCPRateRandomACKs(t *testing.T) {
	s := loadSenders(t)

	const sequences, length = 100, 1000
	rounds := 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 61))
		p := hpccDCTCP(logUniform(r, 1e6, maxLineBps))
		p.RateAiBps = logUniform(r, 1, p.LineRateBps)
		p.G = pick(r, p.G, 1+r.Uint32N(q24One))
		p.InitialAlpha = pick(r, p.InitialAlpha, r.Uint32N(q24One+1))
		steps := checkDCTCPRate(t, s, p, randomRateACKs(r, length))
		for i := range steps[1:] {
			if steps[i].Rp.RoundEnd != steps[i+1].Rp.RoundEnd {
				rounds++
			}
		}
	}
	qt.Assert(t, qt.IsTrue(rounds > 20*sequences), qt.Commentf("%d round trips", rounds))
}

// randomRateACKs makes a flow with windows that change, and marks that come and go. In every fourth
// flow the counts of packets wrap.
func randomRateACKs(r *rand.Rand, n int) []dctcpRateACK {
	a := dctcpRateACK{sent: 1 + r.Uint64N(40)}
	if r.IntN(4) == 0 {
		a.sent = math.MaxUint32 - r.Uint64N(1000)
		a.acked = a.sent - 1 - r.Uint64N(40)
	}
	var acks []dctcpRateACK
	share := 0.
	for len(acks) < n {
		if r.IntN(50) == 0 {
			share = pick(r, 0, 0.01, 0.3, 1)
		}
		if r.IntN(200) == 0 {
			acks = append(acks, dctcpRateACK{loss: true})
			continue
		}
		for range min(pick[uint64](r, 1, 1, 1, 1+r.Uint64N(10)), a.sent-a.acked) {
			a.acked++
			if r.Float64() < share {
				a.marked++
			}
		}
		acks = append(acks, a)
		a.sent = max(a.sent, a.acked+1+logUniform(r, 1, 60))
		if uint32(a.sent) == 0 {
			a.sent++ // HPCC's simulator takes that for the first round trip
		}
	}
	return acks
}
