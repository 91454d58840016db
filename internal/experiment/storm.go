// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// Storm is hosts whose network adapters send PAUSE without an end, as if they were out of order:
// what switches send them stops, and in time what stands behind it.
type Storm struct {
	// Hosts are those hosts, such as H3 or H0..H3. Required.
	Hosts NodeList `yaml:"hosts"`
	// At is when it begins. From -warmup to the end of the run, default 0.
	At Duration `yaml:"at"`
	// Until is when it ends. After At; default 0: the end of the run.
	Until Duration `yaml:"until"`
	// Priority is which data it pauses, a priority of the flows. Default: all.
	Priority *int `yaml:"priority"`
}

// Classes returns the classes that the storm pauses.
func (s Storm) Classes(e *Experiment) []uint8 {
	if s.Priority != nil {
		return []uint8{DataClass(*s.Priority)}
	}
	return e.DataClasses()
}

// StormChange is when a host's storm begins or ends.
type StormChange struct {
	At     Duration
	Begins bool
}

// StormChanges returns when storms of a host begin and end that pause a class, in order of time.
// Each change is one: a storm within another begins nothing, and its end ends both.
func (e *Experiment) StormChanges(host string, class uint8) []StormChange {
	var all []StormChange
	for _, s := range e.Storms {
		if slices.Contains(s.Hosts, host) && slices.Contains(s.Classes(e), class) {
			all = append(all, StormChange{s.At, true},
				StormChange{cmp.Or(s.Until, e.Duration), false})
		}
	}
	slices.SortStableFunc(all, func(a, b StormChange) int { return cmp.Compare(a.At, b.At) })
	storming := false
	return slices.DeleteFunc(all, func(c StormChange) bool {
		same := c.Begins == storming
		storming = c.Begins
		return same
	})
}

// WatchdogAction is what a watchdog does about a queue in a storm.
type WatchdogAction string

// The actions.
const (
	WatchdogDrop    WatchdogAction = "drop"    // empty it, and drop what comes for it or by it
	WatchdogForward WatchdogAction = "forward" // send in spite of PAUSE
	WatchdogAlert   WatchdogAction = "alert"   // only note it
)

func watchdogActions() []WatchdogAction {
	return []WatchdogAction{WatchdogDrop, WatchdogForward, WatchdogAlert}
}

// Watchdog is PFC's watchdog of switches. Its defaults are SONiC's.
type Watchdog struct {
	// Detection is how long a queue must be paused without a break before the watchdog acts. It is
	// counted in polls, of which two at least must agree. 10us to 5s, default 200ms.
	Detection Duration `yaml:"detection"`
	// Restoration is how long no PAUSE may arrive before the queue obeys PFC again, in polls. 10us
	// to 60s, default twice Detection.
	Restoration Duration `yaml:"restoration"`
	// Poll is the time between two looks at a queue; each switch has a clock of its own. 1us to
	// Detection, default 200ms, and no more than Detection.
	Poll Duration `yaml:"poll"`
	// Action is drop (default), forward or alert.
	Action WatchdogAction `yaml:"action"`
	// At are the switches that have it. Default: all.
	At NodeList `yaml:"at"`
}

// sonicTime is SONiC's default of the watchdog's times.
const sonicTime = 200 * Millisecond

// DetectPolls is how many looks in a row see a storm before the watchdog acts. What one sees may
// have begun a moment ago, so a storm needs two.
func (w *Watchdog) DetectPolls() int { return max(2, polls(w.Detection, w.Poll)) }

// RestorePolls is how many looks in a row see no PAUSE before the action ends.
func (w *Watchdog) RestorePolls() int { return polls(w.Restoration, w.Poll) }

func polls(d, poll Duration) int { return int((d + poll - 1) / poll) }

// FirstPolls returns when each switch that has the watchdog polls first, from the beginning of the
// warm-up on: each at a time of its own, drawn in the order of the network's nodes.
func (w *Watchdog) FirstPolls(seed uint64, switches []string) map[string]Duration {
	clocks := rand.New(rand.NewPCG(seed, 5))
	first := map[string]Duration{}
	for _, name := range switches {
		if len(w.At) == 0 || slices.Contains(w.At, name) {
			first[name] = Duration(1 + clocks.Int64N(int64(w.Poll)))
		}
	}
	return first
}

func (w *Watchdog) fill() {
	if w == nil {
		return
	}
	w.Detection = cmp.Or(w.Detection, sonicTime)
	w.Restoration = cmp.Or(w.Restoration, 2*w.Detection)
	w.Poll = cmp.Or(w.Poll, min(sonicTime, w.Detection))
	w.Action = cmp.Or(w.Action, WatchdogDrop)
}

// maxStorms is how many storms a port on Linux can be told of: its ring has 64 events.
const maxStorms = 32

// validateStorms checks storms and PFC's watchdog.
func (d *decoder) validateStorms(e *Experiment) {
	if len(e.Storms) > maxStorms {
		d.onlySim(e, "storms", fmt.Sprintf("ports on Linux can be told of %d storms, not of %d",
			maxStorms, len(e.Storms)))
	}
	without := func(path string) {
		if !slices.ContainsFunc(e.Schemes, e.PFCOn) || e.Switch.FlowControl == FlowCBFC {
			d.fail(path, "PAUSE is of PFC, and no scheme has it",
				"remove it, or write pfc: {off: false}")
		}
	}
	if w := e.Switch.PFC.Watchdog; w != nil {
		without("switch.pfc.watchdog")
		d.validateWatchdog(w)
	}
	for i, s := range e.Storms {
		path := fmt.Sprintf("storms[%d].", i)
		without(path)
		if d.hasRequired(path, "hosts") {
			d.checkAllKnown(path+"hosts", "host", s.Hosts, d.hosts)
			d.checkUnique(path+"hosts", "host", s.Hosts)
		}
		config.InRange(d.Decoder, path+"at", s.At, -e.Warmup, e.Duration-1)
		if d.has(path + "until") {
			config.InRange(d.Decoder, path+"until", s.Until, s.At+1, e.Duration)
		}
		if s.Priority != nil && !slices.Contains(e.DataClasses(), d.classOf(*s.Priority)) {
			d.fail(path+"priority", fmt.Sprintf("no flow has priority %d", *s.Priority),
				"write that of a flow, or remove it")
		}
	}
}

// classOf is [DataClass] of what may be no priority; such has a class that no data has.
func (d *decoder) classOf(priority int) uint8 {
	if priority < 0 || priority >= SimPriorities {
		return 0xff
	}
	return DataClass(priority)
}

func (d *decoder) validateWatchdog(w *Watchdog) {
	const path = "switch.pfc.watchdog."
	const least = 10 * Microsecond
	config.InRange(d.Decoder, path+"detection", w.Detection, least, 5*Second)
	config.InRange(d.Decoder, path+"restoration", w.Restoration, least, 60*Second)
	config.InRange(d.Decoder, path+"poll", w.Poll, Microsecond, w.Detection)
	d.checkKnown(path+"action", "action", string(w.Action), toStrings(watchdogActions()))
	if d.has(path + "at") {
		d.checkAllKnown(path+"at", "switch", w.At, d.switches())
		d.checkUnique(path+"at", "switch", w.At)
	}
}
