// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/bits"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// rounds divides a port's link between classes with weights: by deficit round robin (Shreedhar and
// Varghese, 1995), or by packets. The classes without a weight go before them.
type rounds struct {
	weighted uint8 // bit for each class with a weight
	packets  bool  // a packet costs 1, not its size
	quantum  [classes]int64
	deficit  [classes]int64
	turn     int // the class that is served
}

// newRounds returns nil if no class has a weight.
func newRounds(e *experiment.Experiment, r ranks) *rounds {
	c := rounds{packets: e.Switch.Schedule == experiment.ScheduleWRR}
	for _, class := range e.Switch.Classes {
		if class.Weight == 0 {
			continue
		}
		i := r.of[experiment.DataClass(class.Priority)]
		c.weighted |= 1 << i
		c.quantum[i] = int64(e.Quantum(experiment.DataClass(class.Priority)))
	}
	if c.weighted == 0 {
		return nil
	}
	return &c
}

// choose returns the class whose turn it is, of those in ready, at least one. cost is the size of
// the first packet of a class.
func (c *rounds) choose(ready uint8, cost func(class int) int64) int {
	for idle := c.weighted &^ ready; idle != 0; idle &= idle - 1 {
		c.deficit[bits.TrailingZeros8(idle)] = 0 // a class that has nothing to send saves nothing
	}
	for {
		if ready>>c.turn&1 != 0 {
			price := int64(1)
			if !c.packets {
				price = cost(c.turn)
			}
			if c.deficit[c.turn] >= price {
				c.deficit[c.turn] -= price
				return c.turn
			}
		}
		c.turn = (c.turn + classes - 1) % classes // the higher class first
		if ready>>c.turn&1 != 0 {
			c.deficit[c.turn] += c.quantum[c.turn]
		}
	}
}

// decideByRounds is decide for ports that have classes with weights.
func (w *world) decideByRounds(p *port) (class int, ok bool) {
	var ready uint8
	for left := p.backlog; left != 0; {
		class := bits.Len8(left) - 1
		left &^= 1 << class
		if p.queues[class].paused {
			continue
		}
		if p.rounds.weighted>>class&1 == 0 {
			return class, true
		}
		ready |= 1 << class
	}
	if ready == 0 {
		return 0, false
	}
	return p.rounds.choose(ready, func(class int) int64 {
		return int64(w.packets.packets[p.queues[class].head].size)
	}), true
}

// setClasses gives a switch port's queues what the file says of their classes.
func (w *world) setClasses(p *port) {
	sw := &w.plan.exp.Switch
	if p.fromHost || len(sw.Classes) == 0 {
		return
	}
	p.rounds = newRounds(w.plan.exp, w.ranks)
	p.weighted = p.rounds != nil
	for i := range p.queues {
		q := &p.queues[i]
		q.alpha = float64(sw.ClassOf(w.ranks.class[i]).Alpha)
		q.bounded = q.alpha != 0
	}
}

// losslessClass reports whether PFC is on for a class.
func (w *world) losslessClass(class uint8) bool {
	return w.lossless && !w.plan.exp.Switch.ClassOf(w.ranks.class[class]).Lossy
}

// fillsItsShare reports whether a queue of a lossy class would be longer than its share of what is
// free of the switch's buffer (Choudhury and Hahne, 1998).
func (w *world) fillsItsShare(q *queue, n *node, size uint64) bool {
	used, buffer := n.used, n.bufferBytes
	if w.mmu {
		used, buffer = n.sharedUsed, n.sharedBytes
	}
	return float64(q.bytes+size) > q.alpha*float64(buffer-min(used, buffer))
}
