// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import "fmt"

// WatchdogAction is what PFC's watchdog does to a queue in a storm.
type WatchdogAction uint32

// The actions (bpf/algo/pfc_watchdog.h).
const (
	WatchdogAlert   = WatchdogAction(npecnPfcWatchdogActionPFC_WATCHDOG_ALERT)
	WatchdogForward = WatchdogAction(npecnPfcWatchdogActionPFC_WATCHDOG_FORWARD)
	WatchdogDrop    = WatchdogAction(npecnPfcWatchdogActionPFC_WATCHDOG_DROP)
)

// Watchdog looks at a port's lossless queues every PollNs, the first time FirstNs after
// [Qdisc.BeginWatchdogs].
type Watchdog struct {
	PollNs, FirstNs           uint64 // PollNs 0: there is none
	DetectPolls, RestorePolls uint32 // looks in a row, until it acts, and until it ends that
	Action                    WatchdogAction
}

func (w *Watchdog) check() error {
	if w.PollNs == 0 {
		return nil
	}
	if w.DetectPolls == 0 || w.RestorePolls == 0 || w.Action > WatchdogDrop {
		return fmt.Errorf("watchdog: %d looks until action %d, %d until its end: want 1 or more, "+
			"and action 0 to %d", w.DetectPolls, w.Action, w.RestorePolls, WatchdogDrop)
	}
	return nil
}

// BeginWatchdogs has the watchdogs' looks begin at a time above 0.
func (q *Qdisc) BeginWatchdogs(fromNs uint64) error {
	if err := q.objs.WatchdogFromNs.Set(fromNs); err != nil {
		return fmt.Errorf("begin the watchdogs' looks: %w", err)
	}
	return nil
}

// Storm is what a watchdog found at a queue: a storm of PAUSE, or its end.
type Storm struct {
	Port  uint32
	Class uint8
	Over  bool
	AtNs  uint64
	StormDrops
}

// StormDrops are the packets that a watchdog dropped in a storm.
type StormDrops struct {
	Dropped uint64 // of the queue, and of those that came for it
	Refused uint64 // of those that came in by its port
}

// StormDrops returns those of the latest storm at a queue.
func (q *Qdisc) StormDrops(port uint32, class uint8) (StormDrops, error) {
	var g npecnGuard
	if err := q.objs.Guards.Lookup(port*uint32(Classes)+uint32(class), &g); err != nil {
		return StormDrops{}, fmt.Errorf("read the watchdog of port %d: %w", port, err)
	}
	return StormDrops{g.DroppedPackets, g.RefusedPackets}, nil
}

// PauseChange is a PAUSE or a RESUME of an adapter out of order: when it takes effect at the port.
type PauseChange struct {
	AtNs  uint64
	Pause bool
}

// TellPauses tells a port the PAUSE and RESUME of a class to come, in order of time, as many as its
// Class.Pauses said. Its peer sends no others. Until then none takes effect.
func (q *Qdisc) TellPauses(port uint32, class uint8, changes []PauseChange) error {
	if err := q.putPauses(port, int(class), changes); err != nil {
		return fmt.Errorf("tell port %d its PAUSE: %w", port, err)
	}
	return nil
}

func (q *Qdisc) putPauses(port uint32, class int, changes []PauseChange) error {
	var ring npecnLinkRing
	for i, c := range changes {
		ring.Events[i].AtNs, ring.Events[i].Value = c.AtNs, uint64(flag(c.Pause))
	}
	return q.objs.LinkRings.Put(port*uint32(Classes)+uint32(class), &ring)
}

// unknownPauses are PAUSE and RESUME at a time that never comes.
func unknownPauses(n int) []PauseChange {
	changes := make([]PauseChange, n)
	for i := range changes {
		changes[i] = PauseChange{AtNs: ^uint64(0), Pause: i%2 == 0}
	}
	return changes
}
