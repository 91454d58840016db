// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// powertcpPaper has the values of PowerTCP's paper, section 4.1: gamma of 0.9, and beta for ten
// flows of a host.
func powertcpPaper(lineBps uint64) ratePowertcpParams {
	return ratePowertcpParams{
		LineRateBps: lineBps, MinRateBps: lineBps / 1000, BetaBps: lineBps / 10, RttNs: 13_000,
		Gamma: q24One / 10 * 9, IntMulti: uint32(max(1, lineBps/25e9)),
	}
}

// powertcpOracle is Algorithm 1 of PowerTCP's paper in real numbers that do not wrap, with windows
// in bit/s: cwnd / tau. The err fields say how far integers may be from them.
type powertcpOracle struct {
	params     ratePowertcpParams
	tau, gamma float64

	cwnd, cwndOld, smooth hpccReal
	prevInt               []hpccLink
	lastUpdate            uint64
	first                 bool
}

func newPowerTCPOracle(p ratePowertcpParams, beginBps uint64) *powertcpOracle {
	if beginBps == 0 {
		beginBps = p.LineRateBps
	}
	return &powertcpOracle{
		params: p, tau: float64(p.RttNs), gamma: q24Float(p.Gamma), first: true,
		cwnd: hpccReal{is: float64(beginBps)}, cwndOld: hpccReal{is: float64(beginBps)},
		smooth: hpccReal{is: 1},
	}
}

// seen is what the telemetry's fields keep of a link.
func (o *powertcpOracle) seen(l hpccLink) hpccLink {
	h := hpccOracle{params: rateHpccParams{IntMulti: o.params.IntMulti}}
	return h.seen(l)
}

// norm is the loop of NORM_POWER for one link. Times that a link needs for units are rounded down,
// and so is each quotient.
func (o *powertcpOracle) norm(now, before hpccLink) (hpccReal, float64) {
	dt := math.Max(float64(now.nowNs-before.nowNs), 1)
	b := now.rateBps / 8e9 // bytes per ns
	q := float64(now.queue)
	qDot := (q - float64(before.queue)) / dt
	mu := float64(now.bytes-before.bytes) / dt
	lambda := math.Max(qDot+mu, 0)
	nu := q + b*o.tau
	unit := float64(80 * o.params.IntMulti)
	ulps := (float64(now.bytes-before.bytes)+q+float64(before.queue))/unit/dt + 2
	current := hpccReal{min(lambda/b, 128), ulps * q24Ulp}
	voltage := hpccReal{min(nu/(b*o.tau), 128), (q/unit/o.tau + 2) * q24Ulp}
	power := hpccReal{is: current.is * voltage.is} // lambda * nu / (b^2 tau)
	power.err = current.err*voltage.is + voltage.err*current.is + current.err*voltage.err + q24Ulp
	return power, dt
}

// smoothed is the last line of NORM_POWER.
func (o *powertcpOracle) smoothed(norm hpccReal, dt float64) hpccReal {
	share := math.Min(dt, o.tau) / o.tau
	return hpccReal{
		(1-share)*o.smooth.is + share*norm.is,
		(1-share)*o.smooth.err + share*norm.err + q24Ulp,
	}
}

// power is NORM_POWER.
func (o *powertcpOracle) power(links []hpccLink, got float64) hpccReal {
	best, most := fullest(links, o.prevInt, o.norm, o.smoothed, got)
	// where no link has any power that integers show, no time passes either
	if none := o.smoothed(hpccReal{}, 0); most.is <= most.err &&
		math.Abs(none.is-got) < math.Abs(best.is-got) {
		best = none
	}
	return best
}

// update is UPDATE_WINDOW, between the least and the line rate.
func (o *powertcpOracle) update() hpccReal {
	low := math.Max(o.smooth.is-o.smooth.err, 1./1024)
	is := math.Max(o.smooth.is, 1./1024)
	at := func(old, power, cwnd float64) float64 {
		w := o.gamma*(old/power+float64(o.params.BetaBps)) + (1-o.gamma)*cwnd
		return min(max(w, float64(o.params.MinRateBps)), float64(o.params.LineRateBps))
	}
	W := at(o.cwndOld.is, is, o.cwnd.is)
	return hpccReal{W, at(o.cwndOld.is+o.cwndOld.err, low, o.cwnd.is+o.cwnd.err) - W + 2}
}

// ack is NEW_ACK.
func (o *powertcpOracle) ack(a hpccACK, got ratePowertcpRp) {
	links := make([]hpccLink, len(a.links))
	for i, l := range a.links {
		links[i] = o.seen(l)
	}
	switch {
	case len(links) == 0 || len(links) > 5:
		return
	case o.first || len(links) != len(o.prevInt):
		o.first, o.lastUpdate, o.prevInt = false, a.sent, links
		return
	}
	o.smooth = o.power(links, u24(got.Power))
	o.cwnd = o.update()
	o.prevInt = links
	if a.acked > o.lastUpdate {
		o.cwndOld = o.cwnd
		o.lastUpdate = max(o.lastUpdate, a.sent)
	}
}

// checkPowerTCP runs the ACKs of a flow and compares every rate and power with the oracle.
func checkPowerTCP(
	t testing.TB, s *senders, p ratePowertcpParams, beginBps uint64, acks []hpccACK,
) []ratePowertcpStep {
	t.Helper()
	steps := []ratePowertcpStep{{Event: rateEventINIT, BeginBps: beginBps}}
	for _, a := range acks {
		h := a.step(rateHpccParams{IntMulti: p.IntMulti})
		steps = append(steps, ratePowertcpStep{
			Sent: h.Sent, Acked: h.Acked, Ack: ratePowertcpStep{}.Ack, Event: rateEventACK,
		})
		ack := &steps[len(steps)-1].Ack
		ack.Hop, ack.RateKbps, ack.Hops = h.Ack.Hop, h.Ack.RateKbps, h.Ack.Hops
	}
	s.powertcp(t, p, steps)
	o := newPowerTCPOracle(p, beginBps)
	for i, a := range acks {
		got := steps[i+1].Rp
		o.ack(a, got)
		near(t, u24(got.Power), o.smooth.is, o.smooth.err*(1+1e-9)+1e-12,
			"power, ACK %d of %+v", i, p)
		near(t, float64(got.RateBps), o.cwnd.is, o.cwnd.err*(1+1e-9)+o.cwnd.is*1e-6+1,
			"rate, ACK %d of %+v", i, p)
	}
	return steps
}

// A link of 100 Gbit/s carries 162,500 bytes in tau, 13 us. With beta of 10 Gbit/s and gamma of 0.9
// one update of a window of W is 0.9 * (W / power + 10) + 0.1 * W.
func TestPowerTCPSteps(t *testing.T) {
	s := loadSenders(t)
	p := powertcpPaper(100e9)
	p.IntMulti = 1
	growing := steady(2, 100e9, 1, 13000, 0) // at line rate, and a queue grows as fast
	growing[1].links[0].queue = 162_500
	for _, test := range []struct {
		name  string
		acks  []hpccACK
		rate  float64
		power float64
	}{
		{"starts at line rate, and keeps the first ACK", steady(1, 100e9, 1, 13000, 0), 100e9, 1},
		{"a full link and no queue: nothing to cut", steady(2, 100e9, 1, 13000, 0), 100e9, 1},
		{"a queue of a round trip that stands: half", steady(2, 100e9, 1, 13000, 162_500),
			0.9*(50e9+10e9) + 10e9, 2},
		{"one that has grown to it in a round trip: a quarter", growing,
			0.9*(25e9+10e9) + 10e9, 4},
		{"half a round trip counts for half", steady(2, 100e9, 1, 6500, 162_500),
			0.9*(100e9/1.5+10e9) + 10e9, 1.5},
		{"a link that is half used: line rate", steady(20, 100e9, 0.5, 13000, 0), 100e9, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := checkPowerTCP(t, s, p, 0, test.acks)
			last := steps[len(steps)-1].Rp
			near(t, u24(last.Power), test.power, test.power/200, "power")
			near(t, float64(last.RateBps), test.rate, test.rate/200, "rate")
		})
	}
}

var _ = oracle(TestPowerTCPRandomACKs, "powertcp")

func TestPowerTCPRandomACKs(t *testing.T) {
	s := loadSenders(t)
	const sequences, length = 60, 1000
	cuts, grows := 0, 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 74))
		p := powertcpPaper(logUniform(r, 1e9, mostHPCCBps))
		p.BetaBps = pick(r, p.BetaBps, logUniform(r, 1, p.LineRateBps))
		p.Gamma = pick(r, p.Gamma, q24One/1024+r.Uint32N(q24One-q24One/1024+1))
		p.IntMulti = pick(r, p.IntMulti, 1+r.Uint32N(64))
		p.RttNs = pick(r, p.RttNs, logUniform(r, 1000, 10_000_000))
		h := rateHpccParams{LineRateBps: p.LineRateBps, RttNs: p.RttNs, IntMulti: p.IntMulti,
			FastReact: 1}
		steps := checkPowerTCP(t, s, p, pick(r, 0, p.MinRateBps), randomHPCC(r, h, length))
		for i := range steps[1:] {
			a, b := steps[i].Rp, steps[i+1].Rp
			qt.Assert(t, qt.IsTrue(b.RateBps <= p.LineRateBps && b.RateBps >= p.MinRateBps))
			switch {
			case b.RateBps < a.RateBps:
				cuts++
			case b.RateBps > a.RateBps:
				grows++
			}
		}
	}
	qt.Check(t, qt.IsTrue(cuts > 1000 && grows > 1000), qt.Commentf("%d and %d", cuts, grows))
}
