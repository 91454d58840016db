// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"cmp"
	"math"
)

// timely is the model of TIMELY of Zhu et al., "ECN or Delay", CoNEXT 2016, section 4.1, with the
// rules of Algorithm 1 (Mittal et al., SIGCOMM 2015) and of the authors' code snippet, as
// bpf/algo/timely.h has them. tau is the time between two completions:
//
//	dg/dt = ewma / tau (-g + tau drtt/dt / minRTT)
//	dR/dt = delta / tau                          rtt < T_low, or g <= 0 (N times after 5 of these)
//	      = -R beta g / tau                      g > 0
//	      = -R beta (1 - T_high / rtt) / tau     rtt > T_high
//
// It has no single fixed point: at g = 0 any queue between T_low and T_high is one, and which one a
// run comes to depends on its start (Zhu et al., section 4.2).
type timely struct {
	line, min, delta          float64
	low, high, minRTT         float64
	segment, ewma, beta, most float64
	hyperAfter, hyper         float64
	scaled                    bool // by the time since the last completion
	now, gradient             float64
	last                      float64 // RTT heard before, s
	falling                   float64 // completions in a row with a falling RTT
}

func newTimely(s sender) law {
	v := s.values
	t := &timely{
		line: s.line, min: get(v, "min_rate"), delta: get(v, "delta"),
		low: get(v, "t_low"), high: get(v, "t_high"), minRTT: get(v, "min_rtt"),
		segment: max(get(v, "segment"), s.frame), ewma: get(v, "ewma"), beta: get(v, "beta"),
		most: get(v, "max_cut"), hyperAfter: get(v, "hai_after"), hyper: get(v, "hai_factor"),
		scaled: get(v, "delta_factor") != 0, now: s.initial,
	}
	t.minRTT = cmp.Or(t.minRTT, s.propagation)
	return t
}

func (t *timely) rate(float64) float64 { return t.now }

func (t *timely) advance(h heard) {
	if h.acked == 0 {
		return
	}
	completions := h.acked / t.segment // in this step
	t.last = cmp.Or(t.last, h.rtt)
	change := h.rtt - t.last
	t.last = h.rtt
	// the mean of RTT differences, which are change / completions each
	keep := math.Pow(1-t.ewma, completions)
	t.gradient = keep*t.gradient + (1-keep)*change/completions/t.minRTT
	if change < 0 {
		t.falling += completions
	} else {
		t.falling = 0
	}
	elapsed := 1.0
	if t.scaled {
		elapsed = min(h.h/completions/t.minRTT, 1)
	}
	switch {
	case h.rtt < t.low:
		t.now += t.delta * elapsed * completions
	case h.rtt > t.high:
		t.cut(t.beta*(1-t.high/h.rtt)*elapsed, completions)
	case t.gradient <= 0:
		step := t.delta * elapsed * completions
		if t.hyperAfter > 0 && t.falling >= t.hyperAfter {
			step *= t.hyper
		}
		t.now += step
	default:
		t.cut(t.beta*t.gradient, completions)
	}
	t.now = min(max(t.now, t.min), t.line)
}

// cut takes away a share of the rate with each completion.
func (t *timely) cut(share, completions float64) {
	t.now *= math.Pow(1-min(share, t.most), completions)
}
