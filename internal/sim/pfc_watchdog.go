// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// pfcWatchdog is PFC's watchdog of all switches, as SONiC's (sonic-swss, orchagent/pfcwdorch.cpp
// and the scripts pfc_detect_broadcom.lua and pfc_restore.lua). Each switch polls its queues by a
// clock of its own. A PAUSE of unlimited time stands for frames that are repeated in time.
type pfcWatchdog struct {
	action  experiment.WatchdogAction
	pollNs  int64
	first   map[string]experiment.Duration // polls, by switch
	refused uint64
	ports   [][]int32 // of each node that polls
	events  []result.WatchdogEvent
}

// newPFCWatchdog returns nil if the experiment has none, or the scheme no PFC.
func newPFCWatchdog(w *world) *pfcWatchdog {
	e := w.plan.exp
	c := e.Switch.PFC.Watchdog
	if c == nil || !w.lossless {
		return nil
	}
	d := &pfcWatchdog{
		action: c.Action, pollNs: int64(c.Poll),
		ports: make([][]int32, len(w.nodes)),
	}
	var switches []string
	for n := range w.nodes {
		if !w.nodes[n].isHost {
			switches = append(switches, w.plan.nodeNames[n])
		}
	}
	d.first = c.FirstPolls(e.Seed, switches)
	for id := range w.ports {
		n := w.ports[id].node
		if _, has := d.first[w.plan.nodeNames[n]]; has {
			d.ports[n] = append(d.ports[n], int32(id))
		}
	}
	return d
}

// schedule has each switch poll for the first time, at a time of its own.
func (d *pfcWatchdog) schedule(w *world) {
	if d == nil {
		return
	}
	for n := range d.ports {
		if first, has := d.first[w.plan.nodeNames[n]]; has {
			w.events.push(w.now+int64(first), evPoll, uint32(n))
		}
	}
}

// poll looks at all queues of a switch.
func (w *world) poll(node uint32) {
	if w.draining {
		return
	}
	for _, id := range w.pfcDog.ports[node] {
		p := &w.ports[id]
		for c := range p.queues {
			if q := &p.queues[c]; q.lossless {
				w.pollQueue(id, p, q, uint8(c))
			}
		}
	}
	w.events.push(w.now+w.pfcDog.pollNs, evPoll, node)
}

// pollQueue has the core look at a queue, and does what it says.
func (w *world) pollQueue(id int32, p *port, q *queue, class uint8) {
	switch w.core.lookAt(w.now, q) {
	case w.core.stormed:
		w.mitigate(id, p, q, class)
	case w.core.over:
		w.pfcDog.events[q.storm].RestoredNs = w.sinceStart(w.now)
		q.deaf, q.dropping = false, false // the queue obeys PFC again
	}
}

// mitigate acts on a storm. The queue neither obeys PFC nor sends it from now on.
func (w *world) mitigate(id int32, p *port, q *queue, class uint8) {
	d := w.pfcDog
	q.storm = len(d.events)
	d.events = append(d.events, result.WatchdogEvent{
		DetectedNs: w.sinceStart(w.now), Port: w.plan.portNames[id], Class: w.ranks.class[class],
		Action: string(d.action),
	})
	if d.action == experiment.WatchdogAlert {
		return
	}
	if q.pausing {
		w.act(id, p, q, class, w.core.resume)
		if !w.mmu {
			q.frames += w.core.endRepeats(w.now, q)
		}
	}
	q.deaf = true
	if d.action == experiment.WatchdogDrop {
		q.dropping = true
		for q.packets > 0 {
			w.loseQueued(id, p, q, class)
			d.events[q.storm].DroppedPackets++
		}
	}
	q.paused = false
	w.goOn(id, p, q)
}

// watchdogDrops reports whether the watchdog drops a packet that came in by a port to leave by
// another, and counts it.
func (w *world) watchdogDrops(p *port, q *queue, ingress int32, k *packet) bool {
	if q.dropping {
		// as a packet that a queue's limit drops, it was taken in
		p.counters.enqueuedPackets++
		p.counters.enqueuedBytes += uint64(k.size)
		p.droppedReset++
		w.pfcDog.events[q.storm].DroppedPackets++
		return true
	}
	if ingress == none {
		return false
	}
	if in := &w.ports[ingress].queues[k.class]; in.dropping {
		w.pfcDog.refused++
		w.pfcDog.events[in.storm].RefusedPackets++
		return true
	}
	return false
}

// stormChange is NICs that begin or cease to send PAUSE frames without an end.
type stormChange struct {
	ports   []int32 // of hosts
	classes []uint8 // by rank
	begins  bool
}

// stormChanges returns the beginnings and ends of the experiment's storms.
func (p *plan) stormChanges(r ranks) []linkChange {
	var changes []linkChange
	for _, s := range p.exp.Storms {
		c := stormChange{begins: true}
		for _, class := range s.Classes(p.exp) {
			c.classes = append(c.classes, r.of[class])
		}
		for id := range p.ends {
			if slices.Contains(s.Hosts, p.nodeNames[p.ends[id][0]]) {
				c.ports = append(c.ports, int32(id))
			}
		}
		end := c
		end.begins = false
		changes = append(changes, linkChange{at: int64(s.At), port: none, storm: &c})
		if s.Until != 0 {
			changes = append(changes, linkChange{at: int64(s.Until), port: none, storm: &end})
		}
	}
	return changes
}

// changeStorm begins or ends a storm; only classes with PFC hear it.
func (w *world) changeStorm(s *stormChange) {
	for _, id := range s.ports {
		p := &w.ports[id]
		for _, class := range s.classes {
			q := &p.queues[class]
			if !q.lossless || q.storming == s.begins {
				continue
			}
			q.storming = s.begins
			switch {
			case p.down:
			case s.begins:
				w.act(id, p, q, class, w.core.pause)
			case q.pausing:
				w.act(id, p, q, class, w.core.resume)
			}
		}
	}
}

// endStorms ends all storms, at the end of the measured time.
func (w *world) endStorms() {
	for _, c := range w.changes {
		if c.storm != nil {
			end := *c.storm
			end.begins = false
			w.changeStorm(&end)
		}
	}
}
