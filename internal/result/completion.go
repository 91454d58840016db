// SPDX-License-Identifier: Apache-2.0

package result

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// CompletionStats sums up the completion times of flows in a range of sizes.
type CompletionStats struct {
	Flows, Completed int
	FCT              Distribution // of completed flows, in ns
	Slowdown         Distribution // of completed flows
}

// Distribution has the mean and percentiles (nearest rank) of some values; all are 0 without
// values.
type Distribution struct {
	Mean, P50, P95, P99, P999 float64
}

func distributionOf(values []float64) Distribution {
	if len(values) == 0 {
		return Distribution{}
	}
	inOrder := ascending(values)
	return Distribution{
		Mean: mean(values), P50: nearestRank(inOrder, 0.5), P95: nearestRank(inOrder, 0.95),
		P99: nearestRank(inOrder, 0.99), P999: nearestRank(inOrder, 0.999),
	}
}

// CompletionsOf returns the completion times of all flows in a range of sizes.
func (r *Run) CompletionsOf(sizes experiment.Sizes) CompletionStats {
	all := func(c Completion) bool { return sizes.Has(c.SizeBytes) }
	return r.completionStats(all)
}

func (r *Run) completionStats(wanted func(Completion) bool) CompletionStats {
	var s CompletionStats
	var fcts, slowdowns []float64
	for _, c := range r.Completions {
		if !wanted(c) {
			continue
		}
		s.Flows++
		if c.FCTNs != nil && c.Slowdown != nil {
			fcts, slowdowns = append(fcts, float64(*c.FCTNs)), append(slowdowns, *c.Slowdown)
		}
	}
	s.Completed, s.FCT, s.Slowdown = len(fcts), distributionOf(fcts), distributionOf(slowdowns)
	return s
}

// completionMetric measures the completions of flows that started in the window.
func (r *Run) completionMetric(m experiment.Measure, window Interval) (float64, error) {
	flows := make(map[string]bool)
	for _, name := range m.Flows {
		flows[name] = true
	}
	if m.Metric == experiment.CompletionRate {
		return r.completionRate(m.Sizes, flows, window), nil
	}
	s := r.completionStats(func(c Completion) bool {
		return flows[c.Flow] && m.Sizes.Has(c.SizeBytes) && c.StartNs >= window.FromNs &&
			c.StartNs < window.ToNs
	})
	switch {
	case s.Flows == 0:
		return 0, fmt.Errorf("no such flow started from %s to %s",
			experiment.Duration(window.FromNs), experiment.Duration(window.ToNs))
	case m.Metric == experiment.Completed:
		return float64(s.Completed) / float64(s.Flows), nil
	case s.Completed == 0:
		return 0, fmt.Errorf("none of %d flows completed", s.Flows)
	}
	return map[experiment.Metric]float64{
		experiment.FCTMean: s.FCT.Mean, experiment.FCTP50: s.FCT.P50, experiment.FCTP95: s.FCT.P95,
		experiment.FCTP99: s.FCT.P99, experiment.FCTP999: s.FCT.P999,
		experiment.SlowdownMean: s.Slowdown.Mean, experiment.SlowdownP50: s.Slowdown.P50,
		experiment.SlowdownP95: s.Slowdown.P95,
		experiment.SlowdownP99: s.Slowdown.P99, experiment.SlowdownP999: s.Slowdown.P999,
	}[m.Metric], nil
}

// completionRate returns the number of flows that completed in the window, per second. A window in
// which the last of them completed ends then: an idle rest would hide how long it took.
func (r *Run) completionRate(sizes experiment.Sizes, flows map[string]bool,
	window Interval) float64 {
	count, last, all := 0, window.FromNs, true
	for _, c := range r.Completions {
		if !flows[c.Flow] || !sizes.Has(c.SizeBytes) {
			continue
		}
		if c.FCTNs == nil || c.StartNs+*c.FCTNs >= window.ToNs {
			all = false
			continue
		}
		if end := c.StartNs + *c.FCTNs; end >= window.FromNs {
			count, last = count+1, max(last, end)
		}
	}
	if all && last > window.FromNs {
		window.ToNs = last
	}
	return float64(count) * 1e9 / float64(window.ToNs-window.FromNs)
}
