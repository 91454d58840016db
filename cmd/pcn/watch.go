// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

const watchHelp = "show queues, PAUSE and rates as they come, and the time left; " +
	"runs on Linux show their values only in the end"

// How often a watched run is shown, and how much of it.
const (
	watchOnTerminal = 200 * time.Millisecond
	watchElsewhere  = 2 * time.Second
	maxWatchedRuns  = 4
	maxWatched      = 4 // queues, and flows
)

// watcher shows runs while they run: on a terminal in place, elsewhere as lines now and then. It is
// the progress bar of `--watch`.
type watcher struct {
	mu       sync.Mutex
	w        io.Writer
	terminal bool
	what     string
	runs     int
	now      func() time.Time
	began    time.Time
	shown    time.Time // last time
	lines    int       // on the terminal, to be overwritten
	done     map[string]float64
	watched  map[uint64]*watchedRun
}

// watchedRun is what is known of a run of the simulator.
type watchedRun struct {
	label  string
	timeNs int64
	queues []result.Sample // longest first
	rates  []result.Sample // highest first
	pauses int             // PAUSE frames until now
	paused map[string]bool // ports that are stopped, by class
}

func newWatcher(w io.Writer, what string, runs int) *watcher {
	return &watcher{w: w, terminal: isTerminal(w), what: what, runs: runs, now: time.Now,
		began: time.Now(), done: map[string]float64{}, watched: map[uint64]*watchedRun{}}
}

// follow watches the engines that can be watched.
func (v *watcher) follow(engines ...launch.Engine) {
	for _, e := range engines {
		if s, ok := e.(*launch.Simulator); ok {
			s.Watch(v.see)
		}
	}
}

// set takes how far a run is, 0 to 1.
func (v *watcher) set(run string, done float64) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.done[run] = done
	v.show()
}

// see takes a moment of a run; nil when it has ended.
func (v *watcher) see(run uint64, label string, m *result.Moment) {
	v.mu.Lock()
	defer v.mu.Unlock()
	if m == nil {
		delete(v.watched, run)
		return
	}
	r := v.watched[run]
	if r == nil {
		r = &watchedRun{label: label, paused: map[string]bool{}}
		v.watched[run] = r
	}
	r.take(m)
	v.show()
}

// take notes a moment.
func (r *watchedRun) take(m *result.Moment) {
	r.timeNs = m.TimeNs
	for _, e := range m.PFC {
		queue := fmt.Sprint(network.PortName(e.From, e.To), " ", e.Class)
		if e.Kind == result.Pause {
			r.pauses++
			r.paused[queue] = true
		} else {
			delete(r.paused, queue)
		}
	}
	largest := func(kind result.Kind, value func(result.Sample) uint64) []result.Sample {
		var all []result.Sample
		for _, s := range m.Samples {
			if s.Kind == kind && value(s) > 0 {
				all = append(all, s)
			}
		}
		slices.SortStableFunc(all, func(a, b result.Sample) int {
			return cmp.Or(-cmp.Compare(value(a), value(b)), cmp.Compare(a.Name, b.Name))
		})
		return slices.Clone(all[:min(len(all), maxWatched)])
	}
	r.queues = largest(result.KindPort, func(s result.Sample) uint64 { return s.QueueMaxBytes })
	r.rates = largest(result.KindFlow, func(s result.Sample) uint64 { return s.RateBps })
}

// show draws what is known, unless it did a moment ago. It ignores errors of drawing.
func (v *watcher) show() {
	every := watchElsewhere
	if v.terminal {
		every = watchOnTerminal
	}
	now := v.now()
	if now.Sub(v.shown) < every {
		return
	}
	v.shown = now
	v.clear()
	text := v.text(now)
	v.lines = strings.Count(text, "\n")
	_, _ = io.WriteString(v.w, text)
}

// clear removes what is on the terminal.
func (v *watcher) clear() {
	if v.terminal && v.lines > 0 {
		_, _ = fmt.Fprintf(v.w, "\x1b[%dA\x1b[J", v.lines) // up, and erase to the end
	}
	v.lines = 0
}

// text returns the progress with the time left, and a paragraph for each run.
func (v *watcher) text(now time.Time) string {
	var b strings.Builder
	sum := 0.0
	for _, d := range v.done {
		sum += d
	}
	done := min(sum/float64(max(v.runs, 1)), 1)
	fmt.Fprintf(&b, "%s: %.0f%% of %d runs", v.what, 100*done, v.runs)
	if spent := now.Sub(v.began); done > 0 {
		left := time.Duration(float64(spent) * (1 - done) / done)
		fmt.Fprintf(&b, ", %s left", left.Round(time.Second))
	}
	b.WriteByte('\n')
	runs := slices.Sorted(maps.Keys(v.watched))
	for _, id := range runs[:min(len(runs), maxWatchedRuns)] {
		v.watched[id].write(&b)
	}
	if more := len(runs) - maxWatchedRuns; more > 0 {
		fmt.Fprintf(&b, "and %d more runs\n", more)
	}
	return b.String()
}

func (r *watchedRun) write(b *strings.Builder) {
	fmt.Fprintf(b, "%s at %s\n", r.label, experiment.Duration(r.timeNs))
	list := func(what string, samples []result.Sample, value func(result.Sample) string) {
		var parts []string
		for _, s := range samples {
			parts = append(parts, s.Name+" "+value(s))
		}
		if parts == nil {
			parts = []string{"none"}
		}
		fmt.Fprintf(b, "  %-7s %s\n", what, strings.Join(parts, "  "))
	}
	list("queues", r.queues, func(s result.Sample) string {
		return experiment.Bytes(s.QueueMaxBytes).String()
	})
	list("rates", r.rates, func(s result.Sample) string {
		return fmt.Sprintf("%.3gGbps", float64(s.RateBps)/1e9)
	})
	fmt.Fprintf(b, "  %-7s %d frames until now, %d ports are stopped\n", "PAUSE", r.pauses,
		len(r.paused))
}

func (v *watcher) finish() {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.clear()
}
