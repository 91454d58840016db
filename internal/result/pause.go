// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Tiers returns the tier of each node that has a port.
func (r *Run) Tiers() map[string]string {
	tiers := make(map[string]string)
	for _, p := range r.Ports {
		tiers[p.Node] = p.Tier
	}
	return tiers
}

// eachTier measures the PAUSE frames that each tier of the metric sent. Without tiers, it measures
// those of all nodes.
func eachTier(
	value func(r *Run, window Interval, priority *int, from func(node string) bool) float64,
) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		unit := m.Metric.Unit()
		if len(m.Tiers) == 0 {
			all := func(string) bool { return true }
			return []experiment.Quantity{{Value: value(r, window, m.Priority, all), Unit: unit}},
				nil
		}
		tiers := r.Tiers()
		return each(m.Tiers, unit, func(tier string) (float64, error) {
			if !slices.ContainsFunc(r.Ports, func(p Port) bool { return p.Tier == tier }) {
				return 0, fmt.Errorf("ports.csv has no node of this tier " +
					"(hint: another version of pcn may have written it)")
			}
			from := func(node string) bool { return tiers[node] == tier }
			return value(r, window, m.Priority, from), nil
		})
	}
}

// pausesSent counts the PAUSE frames that the nodes sent in the window.
func (r *Run) pausesSent(window Interval, priority *int, from func(node string) bool) float64 {
	count := 0.0
	for _, e := range r.PFC {
		if e.Kind == Pause && isOf(e.Class, priority) && from(e.From) && window.contains(e.SentNs) {
			count++
		}
	}
	return count
}

// framesSent counts the PAUSE frames of the nodes, with repetitions, in bins that start in the
// window.
func (r *Run) framesSent(window Interval, priority *int, from func(node string) bool) float64 {
	return r.repeats(window, priority, func(p PauseRepeats) bool { return from(p.From) })
}

func (r *Run) repeats(window Interval, priority *int, counts func(PauseRepeats) bool) float64 {
	frames := 0.0
	for _, p := range r.PauseRepeats {
		if isOf(p.Class, priority) && counts(p) && window.contains(p.TimeNs) {
			frames += float64(p.Frames)
		}
	}
	return frames
}

// pausedTotal adds up, over all ports, the time in the window that PAUSE frames of the nodes
// stopped the port.
func (r *Run) pausedTotal(window Interval, priority *int, from func(node string) bool) float64 {
	total := int64(0)
	for link, intervals := range r.allPausedIntervals(priority) {
		node, _, _ := network.SplitPort(link)
		if !from(node) {
			continue
		}
		for _, paused := range intervals {
			total += paused.overlap(window)
		}
	}
	return float64(total)
}

// pauseStep is the sending of a PFC frame or, later, its effect.
type pauseStep struct {
	atNs   int64
	effect bool
	frame  int // index into Run.PFC
}

// pauseDepth returns the largest number of links in a row that PAUSE spread over: see
// [experiment.PauseDepth].
func (r *Run) pauseDepth(m experiment.Measure, window Interval) (float64, error) {
	var steps []pauseStep
	for i, e := range r.PFC {
		steps = append(steps, pauseStep{e.SentNs, false, i}, pauseStep{e.EffectNs, true, i})
	}
	slices.SortStableFunc(steps, func(a, b pauseStep) int {
		byTime := cmp.Compare(a.atNs, b.atNs)
		switch {
		case byTime != 0 || a.effect == b.effect:
			return byTime
		case a.effect: // at the same time, effects come first
			return -1
		default:
			return 1
		}
	})
	type stop struct {
		from, to string
		class    uint8
	}
	stopped := make(map[string]map[stop]int) // by node: the depth of each PAUSE that stops it
	depth := make([]int, len(r.PFC))
	deepest := 0
	for _, step := range steps {
		e := r.PFC[step.frame]
		node, _, _ := strings.Cut(e.To, ".") // without the suffix of parallel links
		key := stop{e.From, e.To, e.Class}
		switch {
		case !step.effect && e.Kind == Pause:
			for other, d := range stopped[e.From] {
				// A stop by the same neighbour is not the cause: packets do not return there.
				if other.class == e.Class && other.from != node {
					depth[step.frame] = max(depth[step.frame], d)
				}
			}
			depth[step.frame]++
			if isOf(e.Class, m.Priority) && window.contains(e.SentNs) {
				deepest = max(deepest, depth[step.frame])
			}
		case step.effect && e.Kind == Pause:
			if stopped[node] == nil {
				stopped[node] = make(map[stop]int)
			}
			stopped[node][key] = depth[step.frame]
		case step.effect:
			delete(stopped[node], key)
		}
	}
	return float64(deepest), nil
}
