// SPDX-License-Identifier: Apache-2.0

package fluid

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
