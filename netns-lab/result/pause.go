// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
)

// Tiers returns the tier of each node that has a port.
func (r *Run) Tiers() map[string]string {
	tiers := make(map[string]string)
	for _, p := range r.Ports {
		tiers[p.Node] = p.Tier
	}
	return tiers
}

// eachTier measures the PAUSE frames that each tier of the metric sent, or those of all nodes.
func (r *Run) eachTier(m experiment.Measure, unit experiment.Unit, measure func(from func(node string) bool) float64) ([]experiment.Quantity, error) {
	if len(m.Tiers) == 0 {
		return one(unit)(measure(func(string) bool { return true }), nil)
	}
	tiers := r.Tiers()
	return each(m.Tiers, unit, func(tier string) (float64, error) {
		if !slices.ContainsFunc(r.Ports, func(p Port) bool { return p.Tier == tier }) {
			return 0, fmt.Errorf("ports.csv has no node of this tier (hint: it may be of another version of this program)")
		}
		return measure(func(node string) bool { return tiers[node] == tier }), nil
	})
}

// pausesSent counts the PAUSE frames of some nodes that were sent in the window.
func (r *Run) pausesSent(window Interval, priority *int, from func(node string) bool) float64 {
	count := 0.0
	for _, e := range r.PFC {
		if e.Kind == Pause && isOf(e.Class, priority) && from(e.From) && e.SentNs >= window.FromNs && e.SentNs < window.ToNs {
			count++
		}
	}
	return count
}

// framesSent counts the PAUSE frames of some nodes in the bins that start in the window, if switches repeat them.
func (r *Run) framesSent(window Interval, priority *int, from func(node string) bool) float64 {
	return r.repeats(window, priority, func(p PauseRepeats) bool { return from(p.From) })
}

func (r *Run) repeats(window Interval, priority *int, counts func(PauseRepeats) bool) float64 {
	frames := 0.0
	for _, p := range r.PauseRepeats {
		if isOf(p.Class, priority) && counts(p) && p.TimeNs >= window.FromNs && p.TimeNs < window.ToNs {
			frames += float64(p.Frames)
		}
	}
	return frames
}

// pausedTotal adds up how much of the window PAUSE frames of some nodes stopped each port.
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

// pauseMoment is when a frame is sent, or takes effect.
type pauseMoment struct {
	atNs  int64
	takes bool // effect
	frame int
}

// pauseDepth returns how many links in a row PAUSE went at most: see [experiment.PauseDepth].
func (r *Run) pauseDepth(window Interval, priority *int) float64 {
	var moments []pauseMoment
	for i, e := range r.PFC {
		moments = append(moments, pauseMoment{e.SentNs, false, i}, pauseMoment{e.EffectNs, true, i})
	}
	slices.SortStableFunc(moments, func(a, b pauseMoment) int {
		return cmp.Or(cmp.Compare(a.atNs, b.atNs), cmp.Compare(b2i(b.takes), b2i(a.takes)))
	})
	type stop struct {
		from, to string
		class    uint8
	}
	stopped := make(map[string]map[stop]int) // by node: how deep each of the frames is that stop its ports
	depth := make([]int, len(r.PFC))
	deepest := 0
	for _, m := range moments {
		e := r.PFC[m.frame]
		node, _, _ := strings.Cut(e.To, ".") // of several links, the suffix
		key := stop{e.From, e.To, e.Class}
		switch {
		case !m.takes && e.Kind == Pause:
			for by, d := range stopped[e.From] {
				if by.class == e.Class && by.from != node { // what comes from there does not go back
					depth[m.frame] = max(depth[m.frame], d)
				}
			}
			depth[m.frame]++
			if isOf(e.Class, priority) && e.SentNs >= window.FromNs && e.SentNs < window.ToNs {
				deepest = max(deepest, depth[m.frame])
			}
		case m.takes && e.Kind == Pause:
			if stopped[node] == nil {
				stopped[node] = make(map[stop]int)
			}
			stopped[node][key] = depth[m.frame]
		case m.takes:
			delete(stopped[node], key)
		}
	}
	return float64(deepest)
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}
