// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"

	"github.com/pcn-linux/pcn/internal/socket"
	"github.com/pcn-linux/pcn/loader"
)

// unpacedPackets is how many packets of a new connection Linux does not pace: see
// tcp_update_skb_after_send.
const unpacedPackets = 10

// pacing sets the initial rates of flows and enforces their limits.
type pacing struct {
	algorithm   algorithm
	control     *loader.Control
	clock       clock
	frame       uint64 // bytes
	lineRateBps uint64
}

func newPacing(f *fabric) pacing {
	return pacing{
		algorithm: f.algorithm, control: f.control, clock: f.clock,
		frame: uint64(f.plan.exp.Frame), lineRateBps: uint64(f.plan.exp.Topology.Rate),
	}
}

// hasRate reports whether a flow sends at a rate that the scheme's control keeps.
func (p *pacing) hasRate(s *stream) bool { return s.Control == "" && p.control.HasRate() }

// isLine reports whether a flow has no control.
func (p *pacing) isLine(s *stream) bool { return s.Control == "" && p.algorithm.isLine() }

// prime sends the packets of each flow that TCP does not pace, if the flow is to start below the
// rate of its link.
func (p *pacing) prime(ctx context.Context, streams []*stream) error {
	var slow []*stream
	for _, s := range streams {
		if (p.isLine(s) || p.hasRate(s)) && uint64(s.InitialRate) < p.lineRateBps {
			slow = append(slow, s)
		}
	}
	for range unpacedPackets { // one by one: TCP puts bytes together that it can't send at once
		for _, s := range slow {
			if err := s.prime(); err != nil {
				return fmt.Errorf("flow %s: send a packet before it starts: %w", s.Name, err)
			}
		}
		for _, s := range slow {
			if err := s.waitAcked(ctx); err != nil {
				return fmt.Errorf("flow %s: wait for what it sent before it starts: %w",
					s.Name, err)
			}
		}
	}
	return nil
}

// begin sets a flow's initial state. A rate-based flow starts at its initial rate, or at its control's
// floor if that is higher, and keeps it if it has no control. A window-based flow starts as its
// control does. A flow that was primed gets its control now, when it starts: a control's timers run
// from its first moment, and it makes up at the first ACK for all that have ended.
func (p *pacing) begin(s *stream) error {
	if s.primed > 0 {
		if err := socket.SetControl(s.raw, p.control.Name()); err != nil {
			return err
		}
	}
	switch {
	case p.isLine(s):
		return p.limit(s, uint64(s.InitialRate))
	case !p.hasRate(s):
		return p.limitWindow(s)
	}
	rateBps := max(uint64(s.InitialRate), p.control.MinRateBps())
	if err := p.control.SetSendRate(s.key, rateBps); err != nil {
		return err
	}
	return p.limit(s, uint64(s.InitialRate))
}

// started leaves a flow that has packets under way at its initial rate to its control.
func (p *pacing) started(s *stream) error {
	if !p.hasRate(s) {
		return nil
	}
	return p.limit(s, uint64(s.LimitRate))
}

// limitWindow limits a flow with a window only if it must: a limit makes TCP pace it.
func (p *pacing) limitWindow(s *stream) error {
	if uint64(s.LimitRate) >= p.lineRateBps {
		return nil
	}
	return p.limit(s, uint64(s.LimitRate))
}

// limit sets the rate that the flow's frames do not exceed; 0: there is none.
func (p *pacing) limit(s *stream, rateBps uint64) error {
	payload := p.frame - ethHeader - tcpIPHeader
	bytesPerS := ^uint64(0)
	if rateBps != 0 {
		bytesPerS = p.clock.toKernelBytesPerS(rateBps) * payload / p.frame
	}
	return setMaxPacing(s.raw, bytesPerS)
}
