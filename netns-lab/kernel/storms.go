// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// watchdogs returns PFC's watchdog of each switch that has it, by name.
func (p *plan) watchdogs(scheme string) map[string]npecn.Watchdog {
	w := p.exp.Switch.PFC.Watchdog
	if w == nil || !p.exp.PFCOn(scheme) {
		return nil
	}
	var switches []string
	for _, n := range p.nodes[p.hosts:] {
		switches = append(switches, n.name)
	}
	dogs := map[string]npecn.Watchdog{}
	for name, first := range w.FirstPolls(p.exp.Seed, switches) {
		dogs[name] = npecn.Watchdog{
			PollNs: uint64(w.Poll), FirstNs: uint64(first),
			DetectPolls: uint32(w.DetectPolls()), RestorePolls: uint32(w.RestorePolls()),
			Action: watchdogActions[w.Action],
		}
	}
	return dogs
}

var watchdogActions = map[experiment.WatchdogAction]npecn.WatchdogAction{
	experiment.WatchdogAlert:   npecn.WatchdogAlert,
	experiment.WatchdogForward: npecn.WatchdogForward,
	experiment.WatchdogDrop:    npecn.WatchdogDrop,
}

// stormAt returns when the adapter at the other end of a port begins and ends its storms of a
// class.
func (p *plan) stormAt(id uint32, class uint8) []experiment.StormChange {
	peer := p.nodes[p.ports[id].peer]
	if !peer.isHost {
		return nil
	}
	return p.exp.StormChanges(peer.name, class)
}

// storms are the PAUSE and RESUME frames of adapters out of order.
func (p *plan) storms(t0Ns uint64, each func(npecn.PFCEvent)) {
	for id := uint32(1); id < uint32(len(p.ports)); id++ {
		for _, class := range p.exp.DataClasses() {
			if p.exp.Switch.ClassOf(class).Lossy {
				continue
			}
			for _, c := range p.stormAt(id, class) {
				sentNs := uint64(int64(t0Ns) + int64(c.At))
				each(npecn.PFCEvent{
					Port: id, Class: class, Pause: c.Begins, SentNs: sentNs,
					EffectNs: sentNs + p.ports[id].delayNs,
				})
			}
		}
	}
}

// beginStorms tells the ports of the storms to come, and has the watchdogs look from the beginning
// of the warm-up on.
func (f *fabric) beginStorms(t0Ns uint64) error {
	if err := f.qdisc.BeginWatchdogs(t0Ns - uint64(f.plan.exp.Warmup)); err != nil {
		return err
	}
	if !f.plan.exp.PFCOn(f.algorithm.Name) {
		return nil
	}
	changes := map[[2]uint32][]npecn.PauseChange{}
	f.plan.storms(t0Ns, func(e npecn.PFCEvent) {
		at := [2]uint32{e.Port, uint32(e.Class)}
		changes[at] = append(changes[at], npecn.PauseChange{AtNs: e.EffectNs, Pause: e.Pause})
	})
	for at, c := range changes {
		if err := f.qdisc.TellPauses(at[0], uint8(at[1]), c); err != nil {
			return err
		}
	}
	return nil
}

// addStorms adds the storms of adapters to what was logged and counted of PAUSE and RESUME.
func (c *collector) addStorms(r *result.Run) {
	if !c.fabric.plan.exp.PFCOn(c.fabric.algorithm.Name) {
		return
	}
	c.fabric.plan.storms(c.window.t0Ns, func(e npecn.PFCEvent) {
		r.PFC = append(r.PFC, c.events.pfcRow(e))
		sender := &r.Ports[c.fabric.plan.ports[e.Port].back-1]
		if e.Pause {
			sender.PauseSent++
		} else {
			sender.ResumeSent++
		}
	})
}

// sawStorm notes what a watchdog found until the end of the measured time.
func (l *eventLog) sawStorm(s npecn.Storm) {
	if s.AtNs > l.window.endNs {
		return
	}
	if !s.Over {
		l.storms = append(l.storms, watchedStorm{Storm: s})
		return
	}
	for i := range slices.Backward(l.storms) {
		if open := &l.storms[i]; open.Port == s.Port && open.Class == s.Class {
			open.overNs, open.StormDrops = s.AtNs, s.StormDrops
			return
		}
	}
}

// watchedStorm is a storm that a watchdog found.
type watchedStorm struct {
	npecn.Storm
	overNs uint64 // 0: not in the run
}

// watchdogRows returns the storms that watchdogs found.
func (c *collector) watchdogRows() ([]result.WatchdogEvent, error) {
	var rows []result.WatchdogEvent
	for _, s := range c.events.storms {
		row := result.WatchdogEvent{
			DetectedNs: c.window.since(s.AtNs), Port: c.fabric.plan.ports[s.Port].name,
			Class: s.Class, Action: string(c.fabric.plan.exp.Switch.PFC.Watchdog.Action),
		}
		drops := s.StormDrops
		if s.overNs != 0 {
			row.RestoredNs = c.window.since(s.overNs)
		} else {
			var err error
			if drops, err = c.fabric.qdisc.StormDrops(s.Port, s.Class); err != nil {
				return nil, err
			}
		}
		row.DroppedPackets, row.RefusedPackets = drops.Dropped, drops.Refused
		rows = append(rows, row)
	}
	return rows, nil
}
