// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"math"

	"github.com/pcn-linux/pcn/config/scheme"
)

// recovery is how QCN and DCQCN raise a rate after a cut. The models are of Alizadeh et al.,
// "Stability Analysis of QCN: The Averaging Principle", SIGMETRICS 2011, and of Zhu, Ghobadi,
// Misra, Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016:
// cuts come at random, and the cycles that a counter ends between two cuts are replaced by their
// mean.
//
// No cut comes within the dead time tau after a cut, and then each packet brings one with
// probability p. So of a packets a second, no cut comes within t with probability
//
//	S(t) = (1-p)^(a (t - tau))	t >= tau, else 1
//
// there are c = 1 / (tau + 1 / (p a)) cuts a second, and a counter whose cycles end at t_1, t_2,
// ... after a cut raises CR c (S(t_1) + S(t_2) + ...) times a second, TR from t_F+1 on. QCN has no
// dead time: c is p a, the sum is p a / ((1-p)^-B - 1), and that is the published form. Hyper
// increase is not modelled, as in the sources.
type recovery struct {
	line, min   float64 // bytes/s
	ai          float64 // bytes/s
	bytes       float64 // of the byte counter; 0: none
	timer       float64 // s
	cycles      float64 // F
	half        bool    // from active increase on, cycles are half as long
	frame       float64 // bytes
	now, target float64 // CR and TR, bytes/s
}

func newRecovery(s sender) recovery {
	v := s.values
	r := recovery{
		line: s.line, min: get(v, "min_rate"), ai: get(v, "rate_ai"),
		bytes: get(v, "byte_counter"), timer: get(v, "rate_timer", "timer"),
		cycles: get(v, "fast_recovery"), frame: s.frame,
		now: s.initial, target: s.initial,
	}
	if v.Has("half_from") {
		r.half = v.Get("half_from").String() == "ai"
	}
	return r
}

// cuts is the random process of cuts.
type cuts struct {
	rate float64 // p a: of the packets that bring one, if they may
	dead float64 // tau, s
	log  float64 // -a ln(1-p)
}

// newCuts returns the process with a packets a second, each of which brings a cut with probability
// p.
func newCuts(p, a, dead float64) cuts {
	p = min(p, 1-1e-9)
	return cuts{rate: p * a, dead: dead, log: -a * math.Log1p(-p)}
}

// perSecond is c.
func (c cuts) perSecond() float64 { return c.rate / (1 + c.dead*c.rate) }

// spares is S(t).
func (c cuts) spares(t float64) float64 { return math.Exp(-c.log * max(t-c.dead, 0)) }

// rises returns how often a second a counter raises CR, and how often of these TR. Its first F
// cycles last so long, and the others later.
func (c cuts) rises(cycle, later, f float64) (rise, active float64) {
	if c.rate <= 0 {
		return 1 / later, 1 / later
	}
	t := 0.0
	for j := 1.0; j <= f; j++ {
		t += cycle
		rise += c.spares(t)
	}
	for ; t < c.dead; t += later { // cycles of active increase within the dead time
		rise++
		active++
	}
	tail := c.spares(t) / math.Expm1(c.log*later) // a geometric series
	return c.perSecond() * (rise + tail), c.perSecond() * (active + tail)
}

// rises returns how often a second the timer and the byte counter raise CR, and how often of these
// TR, if a packets a second are sent.
func (r *recovery) rises(c cuts, a float64) (rise, active float64) {
	later := func(cycle float64) float64 {
		if r.half {
			return cycle / 2
		}
		return cycle
	}
	rise, active = c.rises(r.timer, later(r.timer), r.cycles)
	if r.bytes > 0 {
		cycle := r.bytes / r.frame / a
		byBytes, activeByBytes := c.rises(cycle, later(cycle), r.cycles)
		rise, active = rise+byBytes, active+activeByBytes
	}
	return rise, active
}

// clamp keeps both rates in their range.
func (r *recovery) clamp() {
	r.target = min(max(r.target, r.min), r.line)
	r.now = min(max(r.now, r.min), r.line)
}

// dcqcn is DCQCN (Zhu et al., SIGCOMM 2015) in the form of Zhu et al., CoNEXT 2016, section 3.1:
//
//	dalpha/dt = g c ((1 - alpha) - alpha E)
//	dTR/dt = -(TR - CR) c + R_AI per active cycle
//	dCR/dt = -CR alpha / 2 c + (TR - CR) / 2 per cycle
//
// E is how often the timer K of alpha ends between two cuts, the sum of S(K), S(2 K), ... One thing
// differs: they take a receiver that looks once in tau whether a packet was marked, which makes c
// (1 - (1-p)^(tau a)) / tau. That of DCQCN's section 3.1, and ours, answers the first marked packet
// that comes tau after the last answer or later.
type dcqcn struct {
	recovery
	gain, alphaTimer, interval float64
	alpha                      float64
	clamped                    bool // every cut sets TR = CR
}

func newDCQCN(s sender) law {
	v := s.values
	return &dcqcn{
		recovery: newRecovery(s), gain: get(v, "g"), alphaTimer: get(v, "alpha_timer"),
		interval: max(get(v, "cnp_interval"), get(v, "decrease_interval")),
		alpha:    get(v, "initial_alpha"), clamped: get(v, "clamp_target") != 0,
	}
}

func (d *dcqcn) rate(float64) float64 { return d.now }

func (d *dcqcn) advance(h heard) {
	p, a := h.share(), h.acked/h.h/d.frame
	if a == 0 {
		return
	}
	c := newCuts(p, a, d.interval)
	decays, _ := c.rises(d.alphaTimer, d.alphaTimer, 0)
	rise, active := d.rises(c, a)
	n := c.perSecond()
	lower := n
	if !d.clamped { // only a cut after a cycle of recovery sets TR
		lower *= c.spares(d.timer)
	}
	heun(h.h, []*float64{&d.alpha, &d.now, &d.target}, func(slope []float64) {
		slope[0] = d.gain * ((1-d.alpha)*n - d.alpha*decays)
		slope[1] = (d.target-d.now)/2*rise - d.now*d.alpha/2*n
		slope[2] = d.ai*active - (d.target-d.now)*lower
	})
	d.clamp()
}

// qcn is QCN's reaction point: Alizadeh et al., "Stability Analysis of QCN: The Averaging
// Principle", SIGMETRICS 2011, whose equations the slides of B. Prabhakar (30) are about:
//
//	dTR/dt = -(TR - CR) lambda + R_AI per active cycle
//	dCR/dt = -G_d F_b CR lambda + (TR - CR) / 2 per cycle
//
// lambda is how many messages a second come from congestion points, and F_b their quantised
// feedback. The timer, which the model leaves out, is treated as the byte counter is.
type qcn struct {
	recovery
	gd, most float64
	limited  bool // a CNM has come; before, there is no rate limiter and nothing to recover
}

func newQCN(s sender) law {
	q := &qcn{recovery: newRecovery(s), gd: get(s.values, "gd")}
	q.most = 1 - get(s.values, "min_decrease_factor")
	return q
}

func (q *qcn) rate(float64) float64 { return q.now }

func (q *qcn) advance(h heard) {
	lambda, a := h.samples/h.h, h.acked/h.h/q.frame
	q.limited = q.limited || h.samples > 0
	if !q.limited || a == 0 {
		return
	}
	c := newCuts(lambda/a, a, 0)
	share := 0.0
	if h.samples > 0 {
		share = min(q.gd*h.feedback/h.samples, q.most)
	}
	rise, active := q.rises(c, a)
	// 802.1Qau: the first cycle after a cut must end before another cut lowers TR.
	lower := lambda * c.spares(q.bytes/q.frame/a)
	heun(h.h, []*float64{&q.now, &q.target}, func(slope []float64) {
		slope[0] = (q.target-q.now)/2*rise - share*q.now*lambda
		slope[1] = q.ai*active - (q.target-q.now)*lower
	})
	q.clamp()
}

// qcnPoint is QCN's congestion point: see bpf/algo/qcn.h.
type qcnPoint struct{ eq, base, weight float64 }

func newQCNPoint(v *scheme.Values) qcnPoint {
	return qcnPoint{eq: get(v, "qeq"), base: get(v, "sample_base"), weight: get(v, "w")}
}

// notify tells the senders of what leaves. Between two samples base / (1 to 8) bytes leave, and the
// queue's growth counts over these. A feedback below one step is not sent.
func (c qcnPoint) notify(m *model, p *port, out []amount, left float64) {
	distance := c.base * p.copies / left * m.h // s between two samples without congestion
	sooner := 1 + math.Floor(c.feedback(p, distance)/8)
	fb := c.feedback(p, distance/sooner)
	if fb < 1 {
		return
	}
	samples := left / c.base * sooner
	for i := range out {
		s := p.inputs[i].source
		if out[i].bytes == 0 || s.unresponsive() {
			continue
		}
		r := &s.reports[(m.step+s.toSender[p])%len(s.reports)]
		n := samples * out[i].bytes / left
		r.samples += n
		r.feedback += n * fb
	}
}

// feedback returns the quantised feedback, -F_b in steps of 1/63 of its range; distance is the time
// between two samples.
func (c qcnPoint) feedback(p *port, distance float64) float64 {
	fb := (p.length+c.weight*p.fill*distance)/p.copies - c.eq
	return math.Floor(min(max(fb, 0)*63/(c.eq*(2*c.weight+1)), 63))
}

// heun makes a step of Heun's method with variables in place.
func heun(h float64, y []*float64, derive func(slope []float64)) {
	var first, second, old [4]float64
	n := len(y)
	derive(first[:n])
	for i := range y {
		old[i] = *y[i]
		*y[i] += h * first[i]
	}
	derive(second[:n])
	for i := range y {
		*y[i] = old[i] + h/2*(first[i]+second[i])
	}
}
