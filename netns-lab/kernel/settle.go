// SPDX-License-Identifier: Apache-2.0

package kernel

import "context"

const (
	// decidedNs is how long after the end ports have decided all that ideally happened before it.
	decidedNs = 8 * mostQuantumNs
	// quiesceNs is how long the packets under way may take to arrive when the senders have stopped.
	quiesceNs = 50_000_000
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
	const stillNs = 500_000
	c := m.fabric.clock
	var last, lastNs uint64
	for end := c.nowNs() + quiesceNs; ; {
		held, err := m.fabric.heldPackets(len(m.fabric.plan.ports))
		if err != nil || held == 0 {
			return err
		}
		now := c.nowNs()
		if held != last {
			last, lastNs = held, now
		}
		if now > end || deadlock && now > lastNs+stillNs {
			return nil // the conservation check tells which port holds what
		}
		if err := c.sleepUntil(ctx, c.nowNs()+100_000); err != nil {
			return err
		}
	}
}
