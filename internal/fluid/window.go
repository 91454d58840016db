// SPDX-License-Identifier: Apache-2.0

package fluid

// dctcp is the model of Alizadeh, Javanmard, Prabhakar, "Analysis of DCTCP: Stability, Convergence,
// and Fairness", SIGMETRICS 2011, eqs. (1) to (3). p is of one round trip ago, R the round trip:
//
//	dW/dt = 1/R - W alpha p / (2 R)
//	dalpha/dt = g / R (p - alpha)
//
// Before the first mark, the window doubles every round trip: slow start, which the model leaves
// out.
type dctcp struct {
	gain, frame   float64
	window, alpha float64 // packets
	started       bool    // slow start is over
}

// dctcpStart is TCP's first window, in packets (RFC 6928).
const dctcpStart = 10

func newDCTCP(s sender) law {
	return &dctcp{
		gain: get(s.values, "g"), frame: s.frame, window: dctcpStart,
		alpha: get(s.values, "initial_alpha"),
	}
}

func (d *dctcp) rate(rtt float64) float64 { return d.window * d.frame / rtt }

func (d *dctcp) advance(h heard) {
	if h.acked == 0 {
		return
	}
	p := h.share()
	d.started = d.started || p > 0
	if !d.started {
		d.window += h.acked / d.frame
		return
	}
	heun(h.h, []*float64{&d.window, &d.alpha}, func(slope []float64) {
		slope[0] = (1 - d.window*d.alpha/2*p) / h.rtt
		slope[1] = d.gain / h.rtt * (p - d.alpha)
	})
	d.window = max(d.window, 2) // as tcp_dctcp.c
}

// ldcp is LDCP (draft-dai-tsvwg-pfc-free-congestion-control-00, sections 2.2 and 2.3), per
// acknowledged packet of which a share p is marked:
//
//	cw >= 1   + alpha (1 - p) / cw - beta p
//	cw < 1    + gamma (1 - p) - (1 - eta) cw p
//
// So it rests where cw = alpha (1 - p) / (beta p), which is 2 (1 - p) / p with the draft's values.
type ldcp struct {
	alpha, beta, gamma, eta, frame float64
	window                         float64 // packets
}

func newLDCP(s sender) law {
	v := s.values
	first := get(v, "initial_window")
	if first == 0 { // what fills the path: section 2.4
		first = s.line * s.propagation
	}
	return &ldcp{
		alpha: get(v, "alpha"), beta: get(v, "beta"), gamma: get(v, "gamma"), eta: get(v, "eta"),
		frame: s.frame, window: max(first/s.frame, 1),
	}
}

func (l *ldcp) rate(rtt float64) float64 { return l.window * l.frame / rtt }

func (l *ldcp) advance(h heard) {
	if h.acked == 0 {
		return
	}
	p, packets := h.share(), h.acked/h.h/l.frame
	heun(h.h, []*float64{&l.window}, func(slope []float64) {
		if l.window >= 1 {
			slope[0] = packets * (l.alpha*(1-p)/l.window - l.beta*p)
			return
		}
		slope[0] = packets * (l.gamma*(1-p) - (1-l.eta)*l.window*p)
	})
	l.window = max(l.window, l.gamma)
}
