// SPDX-License-Identifier: Apache-2.0

package fluid

import "math"

// pcn is PCN (Cheng et al., NSDI 2020): the equations of Appendix A with a real loop delay. The
// receiver's window ends every T, counted from the flow's first byte; its report is one reverse
// path old when the sender hears it. So the notification point is computed here, on what the sender
// hears: the order of both delays changes nothing.
type pcn struct {
	wMin, wMax, period  float64
	share               float64 // above it, a window is congested
	line, min           float64 // bytes/s
	sending, w          float64
	elapsed             float64 // s of the window
	running             bool    // the first byte has arrived
	received, congested float64 // bytes of the window
}

func newPCN(s sender) law {
	v := s.values
	return &pcn{
		wMin: get(v, "w_min"), wMax: get(v, "w_max"), period: get(v, "T"),
		share: get(v, "congested_share"), line: s.line, min: get(v, "min_rate"),
		sending: s.initial, w: get(v, "w_min"),
	}
}

func (p *pcn) rate(float64) float64 { return p.sending }

func (p *pcn) advance(h heard) {
	if !p.running && h.acked == 0 {
		return
	}
	p.running = true
	p.received += h.acked
	p.congested += h.marked
	p.elapsed += h.h
	if p.elapsed < p.period-h.h/2 {
		return
	}
	if p.received > 0 {
		p.adjust(p.received/p.elapsed, p.congested > p.share*p.received)
	}
	p.received, p.congested, p.elapsed = 0, 0, 0
}

// adjust is eqs. (6) and (7), with Algorithm 1's minimum: a congested flow never gains.
func (p *pcn) adjust(received float64, congested bool) {
	if congested {
		p.sending = min(p.sending, received*(1-p.wMin)) // eq. (6), p(k) = 1
		p.w = p.wMin                                    // eq. (7), p(k) = 1
	} else {
		p.sending = p.sending*(1-p.w) + p.line*p.w // eq. (6), p(k) = 0
		p.w = p.w*(1-p.w) + p.wMax*p.w             // eq. (7), p(k) = 0
	}
	p.sending = min(max(p.sending, p.min), p.line)
}

// Steady is the steady state of N flows of PCN, Fig. 16.
type Steady struct {
	// QueueMax and QueueMean are of the queue at the ends of periods, in bytes: eq. (15).
	QueueMax, QueueMean float64
	// RateSwing is how much the rate of a flow varies, in bytes/s. Eq. (16) has w_min C; from eqs.
	// (11) and (12) follows w_min C (1 - (1 - w_min) / N), which is it for many flows.
	RateSwing float64
	// Contraction is a of eq. (14): what is left of an unfair share after N periods.
	Contraction float64
	// Utilisation is the share of the link that is used.
	Utilisation float64
}

// SteadyPCN returns the steady state of Fig. 16: one period of increase and n - 1 of decrease. c is
// the link's rate in bytes/s, period is T in s.
func SteadyPCN(n int, c, period, wMin float64) Steady {
	N := float64(n)
	keep := (1 - wMin) * (1 - wMin)
	s := Steady{
		QueueMax:    (N - 2 + wMin) * wMin * c * period,
		RateSwing:   wMin * c * (1 - (1-wMin)/N),
		Contraction: keep / (keep + N*wMin),
	}
	for k := 1; k <= n; k++ { // Q(k1 + k), as the equation behind (11)
		s.QueueMean += max(N-float64(k)-1+wMin, 0) * wMin * c * period / N
	}
	// Sent in N periods: what arrives, as the queue is empty again at the end.
	s.Utilisation = min(1, (1+(N-2+wMin)*wMin+(N-1)*(1-wMin))/N)
	return s
}

// DrainLoops returns how many control loops PCN takes to empty the queue of flows that send at
// total in bytes/s over a link of rate c: Appendix A, behind eq. (8).
func DrainLoops(total, c, wMin float64) int {
	return int(math.Ceil(1 + (total-c)/(wMin*c) - 1e-9))
}
