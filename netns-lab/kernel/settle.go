// SPDX-License-Identifier: Apache-2.0

package kernel

import "context"

const (
	// decidedNs is how long after the end ports have decided all that ideally happened before it.
	decidedNs = 8 * mostQuantumNs
	// quiesceNs is how long after another a packet may arrive when the senders have stopped, beside
	// what one takes over the slowest link: a link may have a lower rate for a while.
	quiesceNs = 130_000_000
)

// settle waits until no packet is left in any port, and takes the events up to then. In a deadlock
// some packets are left for good: it waits until no other is.
func (m *measurement) settle(ctx context.Context) error {
	if err := m.quiesce(ctx, m.collector.deadlock.found != nil); err != nil {
		return err
	}
	return m.collector.events.drain()
}

func (m *measurement) quiesce(ctx context.Context, deadlock bool) error {
	stillNs := quiesceNs + m.fabric.plan.slowestNs()
	if deadlock {
		stillNs = 500_000
	}
	c := m.fabric.clock
	var last uint64
	for lastNs := c.nowNs(); ; {
		held, err := m.fabric.qdisc.HeldPackets()
		if err != nil || held == 0 {
			return err
		}
		now := c.nowNs()
		if held != last {
			last, lastNs = held, now
		}
		if now > lastNs+stillNs {
			return nil // the conservation check tells which port holds what
		}
		if err := c.sleepUntil(ctx, c.nowNs()+100_000); err != nil {
			return err
		}
	}
}

// slowestNs is the longest that a packet takes over one link, sent and under way.
func (p *plan) slowestNs() uint64 {
	frameBits := 8 * uint64(p.exp.Frame)
	var longest uint64
	for _, port := range p.ports[1:] {
		longest = max(longest, port.link.MostDelayNs()+frameBits*1_000_000_000/port.rateBps)
	}
	return longest
}
