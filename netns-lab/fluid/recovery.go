// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"math"

	"github.com/pcn-linux/pcn/config/scheme"
)

// recovery is how QCN and DCQCN raise a rate after a cut. Both models are from Zhu, Ghobadi, Misra,
// Padhye, "ECN or Delay: Lessons Learnt from Analysis of DCQCN and TIMELY", CoNEXT 2016, and have
// their form from Alizadeh et al., "Data Center Transport Mechanisms: Congestion Control Theory and
// IEEE Standardization", Allerton 2008.
//
// If cuts come at random, p a packet, then in a flow of a packets a second a counter of B packets
// ends its cycle a p / ((1-p)^-B - 1) times a second, and (1-p)^(FB) of the time it has done so F
// times since the last cut. The timer is a counter of T a packets. Hyper increase is not modelled,
// as in the sources.
type recovery struct {
	line, min   float64 // bytes/s
	ai          float64 // bytes/s
	bytes       float64 // of the byte counter; 0: none
	timer       float64 // s
	cycles      float64 // F
	half        bool    // from active increase on, cycles are half as long
	frame       float64 // bytes
	now, target float64 // CR and TR, bytes/s
	limited     bool    // there was a cut
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

// spared is the probability of no cut in n packets.
func spared(p, n float64) float64 { return math.Exp(n * math.Log1p(-p)) }

// ends is how often a second a counter of n packets ends a cycle.
func ends(a, p, n float64) float64 {
	if p <= 0 {
		return a / n
	}
	return a * p / math.Expm1(-n*math.Log1p(-p))
}

// rises returns how often a second a counter of n packets raises CR, and how often of these TR.
func (r *recovery) rises(a, p, n float64) (rise, active float64) {
	later := n
	if r.half {
		later /= 2
	}
	grown := spared(p, r.cycles*n)
	active = grown * ends(a, p, later)
	return (1-grown)*ends(a, p, n) + active, active
}

// slopes returns what the increase adds to CR and TR in a second. a is in packets a second, p is the
// probability of a cut of each.
func (r *recovery) slopes(a, p float64) (now, target float64) {
	if a == 0 || !r.limited {
		return 0, 0
	}
	p = min(p, 1-1e-9)
	rise, active := r.rises(a, p, a*r.timer)
	if r.bytes > 0 {
		byBytes, activeByBytes := r.rises(a, p, r.bytes/r.frame)
		rise, active = rise+byBytes, active+activeByBytes
	}
	return (r.target - r.now) / 2 * rise, r.ai * active
}

// clamp keeps both rates in their range.
func (r *recovery) clamp() {
	r.target = min(max(r.target, r.min), r.line)
	r.now = min(max(r.now, r.min), r.line)
}

// dcqcn is the model of Zhu et al., 2016, section 3.1:
//
//	dalpha/dt = g / K ((1 - (1-p)^(K a)) - alpha)
//	dTR/dt = -(TR - CR) / tau (1 - (1-p)^(tau a)) + R_AI per active cycle
//	dCR/dt = -CR alpha / (2 tau) (1 - (1-p)^(tau a)) + (TR - CR) / 2 per cycle
//
// p is the share of marked packets of one round trip ago, a the packets a second of that time, tau
// the least time between two CNPs, and K the timer of alpha.
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
	d.limited = d.limited || p > 0
	if !d.limited {
		return
	}
	tau := max(d.interval, 1/a) // at most every packet brings a CNP
	heun(h.h, []*float64{&d.alpha, &d.now, &d.target}, func(slope []float64) {
		cuts := (1 - spared(min(p, 1-1e-9), tau*a)) / tau
		slope[0] = d.gain / d.alphaTimer * (1 - spared(min(p, 1-1e-9), d.alphaTimer*a) - d.alpha)
		up, upTarget := d.slopes(a, p)
		lower := (d.target - d.now) * cuts
		if !d.clamped { // only a cut after a cycle of recovery sets TR
			lower *= spared(min(p, 1-1e-9), a*d.timer)
		}
		slope[1] = up - d.now*d.alpha/2*cuts
		slope[2] = upTarget - lower
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
	p := min(lambda/a, 1-1e-9)
	cut := 0.0
	if h.samples > 0 {
		cut = min(q.gd*h.feedback/h.samples, q.most)
	}
	heun(h.h, []*float64{&q.now, &q.target}, func(slope []float64) {
		up, upTarget := q.slopes(a, p)
		// 802.1Qau: the first cycle after a cut must end before another cut lowers TR.
		n := q.bytes / q.frame
		slope[0] = up - cut*q.now*lambda
		slope[1] = upTarget - (q.target-q.now)*lambda*spared(p, n)
	})
	q.clamp()
}

// qcnPoint is QCN's congestion point: see bpf/algo/qcn.h.
type qcnPoint struct{ eq, base, weight float64 }

func newQCNPoint(v *scheme.Values) qcnPoint {
	return qcnPoint{eq: get(v, "qeq"), base: get(v, "sample_base"), weight: get(v, "w")}
}

// notify tells the senders of what leaves. Between two samples base / (1 to 8) bytes leave, and the
// queue's growth counts over these.
func (c qcnPoint) notify(m *model, p *port, out []amount, left float64) {
	fb := c.feedback(p.length, p.fill, c.base/left*m.h)
	if fb <= 0 {
		return
	}
	samples := left / (c.base / (1 + math.Floor(fb/8)))
	// the growth counts over the shorter distance
	fb = c.feedback(p.length, p.fill, c.base/(1+math.Floor(fb/8))/left*m.h)
	if fb <= 0 {
		return
	}
	for i := range out {
		if out[i].bytes == 0 || p.inputs[i].source.unresponsive() {
			continue
		}
		s := p.inputs[i].source
		r := &s.reports[(m.step+s.toSender[p])%len(s.reports)]
		n := samples * out[i].bytes / left
		r.samples += n
		r.feedback += n * fb
	}
}

// feedback returns the quantised feedback, -F_b in steps of 1/63 of its range, not rounded; distance
// is the time between two samples.
func (c qcnPoint) feedback(queue, fill, distance float64) float64 {
	fb := queue - c.eq + c.weight*fill*distance
	return min(fb*63/(c.eq*(2*c.weight+1)), 63)
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
