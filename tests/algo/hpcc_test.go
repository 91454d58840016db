// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// hpccRunPy are the values of HPCC's simulation/run.py --cc hp with T of 13 us, but for maxStage,
// which is the paper's.
func hpccRunPy(lineBps uint64) rateHpccParams {
	return rateHpccParams{
		LineRateBps: lineBps, MinRateBps: min(1e9, lineBps/10), RateAiBps: lineBps / 2500,
		RttNs: 13_000, Eta: q24One / 100 * 95, MaxStage: 5,
		IntMulti: uint32(max(1, lineBps/25e9)), FastReact: 1,
	}
}

// hpccLink is what a switch port on a path would tell of itself.
type hpccLink struct {
	nowNs, bytes, queue uint64
	rateBps             float64
}

// hpccACK is an ACK, in packets since the flow began, and what it brings.
type hpccACK struct {
	sent, acked uint64
	links       []hpccLink
}

// hpccOracle is Algorithm 1 of HPCC's paper, with a window for each hop if the simulator's
// MULTI_RATE is set, in real numbers that do not wrap. The Err fields say how far integers may be
// from them.
type hpccOracle struct {
	params rateHpccParams
	eta, T float64

	window        []hpccWindow // of the path, or of each hop
	u, rate       hpccReal
	L             []hpccLink
	first         bool
	lastUpdateSeq uint64
}

type hpccReal struct{ is, err float64 }

// hpccWindow is Wc and U of a path or of a hop. Windows are in bit/s: Wc / T.
type hpccWindow struct {
	Wc, U    hpccReal
	incStage uint32
}

func newHPCCOracle(p rateHpccParams, beginBps uint64) *hpccOracle {
	if beginBps == 0 {
		beginBps = p.LineRateBps
	}
	o := &hpccOracle{params: p, eta: q24Float(p.Eta), T: float64(p.RttNs), first: true}
	o.rate.is, o.u.is = float64(beginBps), 1
	for range 5 {
		o.window = append(o.window, hpccWindow{Wc: o.rate, U: o.u})
	}
	return o
}

// seen is what the fields of INT keep of a link.
func (o *hpccOracle) seen(l hpccLink) hpccLink {
	bytes, queue := 128*uint64(o.params.IntMulti), 80*uint64(o.params.IntMulti)
	l.bytes = l.bytes / bytes * bytes
	l.queue = min(l.queue/queue, 1<<17-1) * queue
	l.rateBps = math.Floor(l.rateBps/1e3) * 1e3
	return l
}

// used is lines 4 and 5: u' and tau. Each of the four quotients is rounded down, and the first two
// are multiplied.
func (o *hpccOracle) used(now, before hpccLink) (hpccReal, float64) {
	tau := math.Max(float64(now.nowNs-before.nowNs), 1)
	bytesPerNs := now.rateBps / 8e9
	txRate := float64(now.bytes-before.bytes) / tau
	qlen := float64(min(now.queue, before.queue))
	u := qlen/(bytesPerNs*o.T) + txRate/bytesPerNs
	units := txRate/float64(128*o.params.IntMulti) + qlen/float64(80*o.params.IntMulti)/o.T
	return hpccReal{u, (units + 2) * q24Ulp * (1 + 1e-9)}, tau
}

// average is lines 8 and 9.
func (o *hpccOracle) average(U, u hpccReal, tau float64) hpccReal {
	share := math.Min(tau, o.T) / o.T
	return hpccReal{(1-share)*U.is + share*u.is, (1-share)*U.err + share*u.err + q24Ulp}
}

// bounded keeps a rate between the least and the line rate.
func (o *hpccOracle) bounded(r hpccReal) hpccReal {
	r.is = min(max(r.is, float64(o.params.MinRateBps)), float64(o.params.LineRateBps))
	return r
}

// increase is line 17, cut line 13.
func (o *hpccOracle) increase(w hpccWindow) hpccReal {
	return o.bounded(hpccReal{w.Wc.is + float64(o.params.RateAiBps), w.Wc.err})
}

func (o *hpccOracle) cut(w hpccWindow) hpccReal {
	low := w.U.is - w.U.err
	if low <= 0 {
		return hpccReal{float64(o.params.LineRateBps), math.Inf(1)}
	}
	W := w.Wc.is / (w.U.is / o.eta)
	most := (w.Wc.is + w.Wc.err) / (low / o.eta)
	return o.bounded(hpccReal{W + float64(o.params.RateAiBps), most - W + 1})
}

// compute is lines 11 to 20. Where U is as near to eta as rounding goes, it does as got, the rate
// that is to be checked, says.
func (o *hpccOracle) compute(w *hpccWindow, update bool, got float64) hpccReal {
	follows := w.U.is >= o.eta
	if math.Abs(w.U.is-o.eta) <= w.U.err {
		follows = math.Abs(got-o.cut(*w).is) < math.Abs(got-o.increase(*w).is)
	}
	W, stage := o.increase(*w), w.incStage+1
	if follows || w.incStage >= o.params.MaxStage {
		W, stage = o.cut(*w), 0
	}
	if update {
		w.Wc, w.incStage = W, stage
	}
	return W
}

// ack is lines 21 to 27. got is what the bytecode made of the ACK.
func (o *hpccOracle) ack(a hpccACK, got rateHpccRp) {
	links := make([]hpccLink, len(a.links))
	for i, l := range a.links {
		links[i] = o.seen(l)
	}
	switch {
	case len(links) == 0 || len(links) > 5:
		return
	case o.first || len(links) != len(o.L):
		o.first, o.lastUpdateSeq, o.L = false, a.sent, links
		return
	}
	update := a.acked > o.lastUpdateSeq
	if !update && o.params.FastReact == 0 {
		return
	}
	if o.params.MultiRate != 0 {
		o.eachHop(links, update, got)
	} else {
		o.path(links, update, got)
	}
	o.L = links
	if update {
		o.lastUpdateSeq = max(o.lastUpdateSeq, a.sent)
	}
}

// fullest is what then makes of the link that measures most. Of links that measure the same, as far
// as rounding tells, it takes the one that got says. It also returns the most.
func fullest(
	links, before []hpccLink, measure func(now, before hpccLink) (hpccReal, float64),
	then func(is hpccReal, took float64) hpccReal, got float64,
) (best, most hpccReal) {
	for i, l := range links {
		if is, _ := measure(l, before[i]); is.is > most.is {
			most = is
		}
	}
	best = hpccReal{is: math.Inf(1)}
	for i, l := range links {
		is, took := measure(l, before[i])
		if is.is+is.err < most.is-most.err {
			continue
		}
		if v := then(is, took); math.Abs(v.is-got) < math.Abs(best.is-got) {
			best = v
		}
	}
	return best, most
}

// path is lines 2 to 7.
func (o *hpccOracle) path(links []hpccLink, update bool, got rateHpccRp) {
	average := func(u hpccReal, tau float64) hpccReal { return o.average(o.window[0].U, u, tau) }
	best, most := fullest(links, o.L, o.used, average, u24(got.U))
	if most.is == 0 { // no link sent a unit, and none had a queue: tau stays 0
		best = o.average(o.window[0].U, most, 0)
	}
	o.window[0].U, o.u = best, best
	o.rate = o.compute(&o.window[0], update, float64(got.RateBps))
}

// eachHop is Algorithm 1 for each hop by itself; the least window counts.
func (o *hpccOracle) eachHop(links []hpccLink, update bool, got rateHpccRp) {
	o.u, o.rate = hpccReal{}, hpccReal{is: float64(o.params.LineRateBps)}
	for i, l := range links {
		w := &o.window[i]
		u, tau := o.used(l, o.L[i])
		w.U = o.average(w.U, u, tau)
		seen := float64(got.RateBps)
		if update {
			seen = float64(got.Link[i].RateBps)
		}
		if rate := o.compute(w, update, seen); rate.is < o.rate.is {
			o.rate.is, o.rate.err = rate.is, max(o.rate.err, rate.err)
		} else if rate.is-rate.err < o.rate.is+o.rate.err {
			o.rate.err = max(o.rate.err, rate.err)
		}
		o.u = hpccReal{max(o.u.is, w.U.is), max(o.u.err, w.U.err)}
	}
}

func u24(u uint64) float64 { return float64(u) / q24One }

// step is the ACK as the bytecode gets it.
func (a hpccACK) step(p rateHpccParams) rateHpccStep {
	step := rateHpccStep{Sent: uint32(a.sent), Acked: uint32(a.acked), Event: rateEventACK}
	step.Ack.Hops = uint32(len(a.links))
	for i, l := range a.links {
		if i == len(step.Ack.Hop) {
			break
		}
		bytes := l.bytes / 128 / uint64(p.IntMulti) & (1<<20 - 1)
		queue := min(l.queue/80/uint64(p.IntMulti), 1<<17-1)
		step.Ack.Hop[i] = l.nowNs&(1<<24-1) | bytes<<24 | queue<<44
		step.Ack.RateKbps[i] = uint32(l.rateBps / 1e3)
	}
	return step
}

// checkHPCC runs the ACKs of a flow and compares every rate and U with the oracle.
func checkHPCC(
	t testing.TB, s *senders, p rateHpccParams, beginBps uint64, acks []hpccACK,
) []rateHpccStep {
	t.Helper()
	steps := []rateHpccStep{{Event: rateEventINIT, BeginBps: beginBps}}
	for _, a := range acks {
		steps = append(steps, a.step(p))
	}
	s.hpcc(t, p, steps)
	o := newHPCCOracle(p, beginBps)
	for i, a := range acks {
		got := steps[i+1].Rp
		o.ack(a, got)
		near(t, u24(got.U), o.u.is, o.u.err*(1+1e-9)+1e-12, "U, ACK %d of %+v", i, p)
		near(t, float64(got.RateBps), o.rate.is, o.rate.err*(1+1e-9)+1e-3, "rate, ACK %d of %+v",
			i, p)
	}
	return steps
}

// steady are ACKs of one link whose time passes in steps of tau ns, used by a share, with a queue.
func steady(n int, rateBps, used float64, tau, queue uint64) []hpccACK {
	acks := make([]hpccACK, n)
	bytes := 0.
	for i := range acks {
		acks[i] = hpccACK{
			sent: uint64(10 + i), acked: uint64(1 + i),
			links: []hpccLink{{uint64(i) * tau, uint64(bytes), queue, rateBps}},
		}
		bytes += used * rateBps / 8e9 * float64(tau)
	}
	return acks
}

// A link of 100 Gbit/s carries 162,500 bytes in T, 13 us.
func TestHPCCSteps(t *testing.T) {
	s := loadSenders(t)
	p := hpccRunPy(100e9)
	p.IntMulti = 1
	const ai = 40e6
	for _, test := range []struct {
		name string
		acks []hpccACK
		rate float64
		u    float64
	}{
		{"starts at line rate, and keeps the first ACK", steady(1, 100e9, 1, 13000, 0), 100e9, 1},
		{"a full link and no queue: eta of it", steady(2, 100e9, 1, 13000, 0), 95e9 + ai, 1},
		{"a queue of a round trip: half", steady(2, 100e9, 1, 13000, 162_500), 47.5e9 + ai, 2},
		{"half a round trip counts for half", steady(2, 100e9, 1, 6500, 162_500),
			95e9/1.5 + ai, 1.5},
		{"ACKs of a round trip are one cut", steady(9, 100e9, 1, 13000, 162_500), 47.5e9 + ai, 2},
		{"the next round trip is another", steady(12, 100e9, 1, 13000, 162_500),
			(47.5e9+ai)/2*0.95 + ai, 2},
		{"not below the least", steady(100, 100e9, 1, 13000, 4_000_000), 1e9, 1 + 4e6/162_500.},
		{"a link that is half used: line rate", steady(100, 100e9, 0.5, 13000, 0), 100e9, 0.5},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := checkHPCC(t, s, p, 0, test.acks)
			last := steps[len(steps)-1].Rp
			near(t, u24(last.U), test.u, test.u/200, "U") // the fields of INT round
			near(t, float64(last.RateBps), test.rate, test.rate/200, "rate")
		})
	}
}

// Below eta the rate grows by steps of W_AI, and each sixth time by as much as is free.
func TestHPCCStages(t *testing.T) {
	s := loadSenders(t)
	p := hpccRunPy(100e9)
	p.FastReact = 0
	acks := steady(60, 100e9, 0.5, 13000, 0)
	for i := range acks { // each ACK is a round trip
		acks[i].sent, acks[i].acked = uint64(2*i+1), uint64(2*i+1)
	}
	steps := checkHPCC(t, s, p, 10e9, acks)[2:] // INIT, and the ACK that is only kept
	rate := 10e9
	for i := range 12 {
		if i%6 == 5 {
			rate *= 0.95 / 0.5
		}
		rate += float64(p.RateAiBps)
		near(t, float64(steps[i].Rp.RateBps), rate, rate/200, "rate, ACK %d", i)
		qt.Check(t, qt.Equals(steps[i].Rp.Link[0].Stage, uint32(i+1)%6))
	}
}

// The fullest link counts, wherever it is on the path; and with a rate for each hop the least.
func TestHPCCFullestLink(t *testing.T) {
	s := loadSenders(t)
	for multiRate := range uint32(2) {
		for full := range 5 {
			p := hpccRunPy(100e9)
			p.MultiRate = multiRate
			acks := make([]hpccACK, 2)
			for i := range acks {
				acks[i] = hpccACK{sent: 10, acked: uint64(i + 1)}
				for hop := range 5 {
					l := hpccLink{uint64(i) * 13000, uint64(i) * 40_000, 0, 100e9}
					if hop == full {
						l.bytes, l.queue = uint64(i)*162_500, 162_500
					}
					acks[i].links = append(acks[i].links, l)
				}
			}
			steps := checkHPCC(t, s, p, 0, acks)
			near(t, float64(steps[2].Rp.RateBps), 47.54e9, 0.24e9, "rate, link %d of %+v", full, p)
		}
	}
}

// A packet that crossed more hops than it has room for says nothing, and another path starts anew.
func TestHPCCOtherPaths(t *testing.T) {
	s := loadSenders(t)
	p := hpccRunPy(100e9)
	full := func(at, hops uint64) hpccACK {
		a := hpccACK{sent: 10 + at, acked: 1 + at}
		for range hops {
			a.links = append(a.links, hpccLink{at * 13000, at * 162_500, 162_500, 100e9})
		}
		return a
	}
	for _, test := range []struct {
		name string
		hops []uint64
		rate float64
	}{
		{"room for five", []uint64{5, 5}, 47.54e9},
		{"no room for six", []uint64{6, 6, 6}, 100e9},
		{"another path", []uint64{3, 4}, 100e9},
		{"and it counts", []uint64{3, 4, 4}, 47.54e9},
		{"no switch", []uint64{0, 0, 0}, 100e9},
	} {
		t.Run(test.name, func(t *testing.T) {
			var acks []hpccACK
			for at, hops := range test.hops {
				acks = append(acks, full(uint64(at), hops))
			}
			steps := checkHPCC(t, s, p, 0, acks)
			near(t, float64(steps[len(steps)-1].Rp.RateBps), test.rate, test.rate/200, "rate")
		})
	}
}

// A sender that went back may have sent less than the receiver acknowledges: the round trip does
// not end earlier for that.
func TestHPCCGoesBack(t *testing.T) {
	s := loadSenders(t)
	acks := steady(4, 100e9, 1, 13000, 162_500)
	for i, at := range [][2]uint64{{10, 1}, {5, 11}, {6, 8}, {12, 11}} {
		acks[i].sent, acks[i].acked = at[0], at[1]
	}
	steps := checkHPCC(t, s, hpccRunPy(100e9), 0, acks)[1:]
	for i, want := range []uint32{10, 10, 10, 12} {
		qt.Check(t, qt.Equals(steps[i].Rp.RoundEnd, want), qt.Commentf("ACK %d", i))
	}
}

// Fields of INT wrap after 16.8 ms and 134 MB times int_multi: both hold on the way.
func TestHPCCWraps(t *testing.T) {
	s := loadSenders(t)
	p := hpccRunPy(100e9)
	p.IntMulti = 1
	acks := steady(3000, 100e9, 0.9, 13001, 1000) // 39 ms, 439 MB
	checkHPCC(t, s, p, 0, acks)
}

// mostHPCCBps is the rate of the simulator's fastest links.
const mostHPCCBps = uint64(4e12)

var _ = oracle(TestHPCCRandomACKs, "hpcc")

func TestHPCCRandomACKs(t *testing.T) {
	s := loadSenders(t)
	const sequences, length = 100, 1000
	cuts, updates := 0, 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 73))
		p := hpccRunPy(logUniform(r, 1e9, mostHPCCBps))
		p.RateAiBps = pick(r, p.RateAiBps, logUniform(r, 1, p.LineRateBps))
		p.Eta = pick(r, p.Eta, q24One/100+r.Uint32N(q24One-q24One/100+1))
		p.MaxStage = pick(r, p.MaxStage, 0, r.Uint32N(10))
		p.IntMulti = pick(r, p.IntMulti, 1+r.Uint32N(64))
		p.FastReact, p.MultiRate = r.Uint32N(2), r.Uint32N(2)
		p.RttNs = pick(r, p.RttNs, logUniform(r, 1000, 100_000))
		if p.FastReact != 0 { // else time would wrap twice
			p.RttNs = pick(r, p.RttNs, logUniform(r, 1000, 10_000_000))
		}
		steps := checkHPCC(t, s, p, pick(r, 0, p.MinRateBps), randomHPCC(r, p, length))
		for i := range steps[1:] {
			a, b := steps[i].Rp, steps[i+1].Rp
			qt.Assert(t, qt.IsTrue(b.RateBps <= p.LineRateBps && b.RateBps >= p.MinRateBps))
			if b.RateBps < a.RateBps {
				cuts++
			}
			if b.RoundEnd != a.RoundEnd {
				updates++
			}
		}
	}
	qt.Assert(t, qt.IsTrue(cuts > 20*sequences && updates > 20*sequences),
		qt.Commentf("%d cuts, %d round trips", cuts, updates))
}

// randomHPCC makes a flow on a path that is fuller at times. In every fourth flow the counts of
// packets wrap.
func randomHPCC(r *rand.Rand, p rateHpccParams, n int) []hpccACK {
	links := make([]hpccLink, 1+r.IntN(5))
	for i := range links {
		links[i] = hpccLink{
			nowNs: r.Uint64N(1 << 30), bytes: r.Uint64N(1 << 40),
			rateBps: float64(min(mostHPCCBps,
				pick(r, p.LineRateBps, 4*p.LineRateBps, p.LineRateBps/2))),
		}
	}
	sent := 1 + r.Uint64N(40)
	acked := uint64(0)
	if r.IntN(4) == 0 {
		sent = math.MaxUint32 - r.Uint64N(1000)
		acked = sent - 1 - r.Uint64N(40)
	}
	share := 0.
	var acks []hpccACK
	for len(acks) < n {
		if r.IntN(30) == 0 {
			share = pick(r, 0, 0.3, 0.95, 1)
		}
		acked += min(1+r.Uint64N(3), sent-acked)
		for i := range links {
			l := &links[i]
			tau := min(pick(r, logUniform(r, 1, 2*p.RttNs), p.RttNs/10+1), 1<<24-1)
			l.nowNs += tau
			bytes := uint64(pick(r, share, r.Float64()) * l.rateBps / 8e9 * float64(tau))
			l.bytes += min(bytes, 2<<20*uint64(p.IntMulti)) // likewise
			l.queue = uint64(pick(r, 0, share*r.Float64()*4*l.rateBps/8e9*float64(p.RttNs)))
		}
		acks = append(acks, hpccACK{sent, acked, append([]hpccLink(nil), links...)})
		sent = max(sent, acked+1+logUniform(r, 1, 60))
		if uint32(sent) == 0 {
			sent++ // HPCC's simulator takes that for the first round trip
		}
	}
	return acks
}
