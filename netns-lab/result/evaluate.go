// SPDX-License-Identifier: Apache-2.0

package result

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"pcn/netns-lab/experiment"
)

// Outcome is an expectation held against a run.
type Outcome struct {
	Expect experiment.Expect
	Scheme string
	// Measured has a value for each link or flow of the expectation, or one for the run.
	Measured []experiment.Quantity
	// Err says why something could not be measured; the expectation is then not met.
	Err error
	// Pass is whether every measured value is within the bounds.
	Pass bool
}

// Evaluate holds the run against what the experiment expects of its scheme.
func Evaluate(e *experiment.Experiment, r *Run) []Outcome {
	var outcomes []Outcome
	for _, x := range e.Expect {
		if x.Scheme != "" && x.Scheme != r.Manifest.Scheme {
			continue
		}
		values, err := r.Measure(x)
		outcomes = append(outcomes, Outcome{
			Expect:   x,
			Scheme:   r.Manifest.Scheme,
			Measured: values,
			Err:      err,
			Pass:     err == nil && within(values, x.Min, x.Max),
		})
	}
	return outcomes
}

func within(values []experiment.Quantity, low, high *experiment.Quantity) bool {
	for _, v := range values {
		if low != nil && v.Value < low.Value || high != nil && v.Value > high.Value {
			return false
		}
	}
	return len(values) > 0
}

// Value returns what was measured, in words: one value if all are the same, or why
// there is none.
func (o Outcome) Value() string {
	if o.Err != nil {
		return "not measured: " + o.Err.Error()
	}
	var texts []string
	for _, v := range o.Measured {
		texts = append(texts, v.String())
	}
	if distinct := slices.Compact(slices.Clone(texts)); len(distinct) == 1 {
		return distinct[0]
	}
	return strings.Join(texts, ", ")
}

// Bound returns the bounds in words.
func (o Outcome) Bound() string {
	low, high := o.Expect.Min, o.Expect.Max
	switch {
	case low == nil:
		return "at most " + high.String()
	case high == nil:
		return "at least " + low.String()
	default:
		return low.String() + " to " + high.String()
	}
}

// errNotReached is a recovery that the run does not show.
var errNotReached = errors.New("not reached")

// Measure returns the metric of an expectation, for each of its links or flows. What
// each metric is, is said at [experiment.Metric].
func (r *Run) Measure(x experiment.Expect) ([]experiment.Quantity, error) {
	window := Interval{int64(x.From), int64(x.To)}
	if x.To == 0 {
		window.ToNs = r.Manifest.DurationNs
	}
	if window.ToNs > r.Manifest.DurationNs {
		return nil, fmt.Errorf("the run ends at %s, before the window does", experiment.Duration(r.Manifest.DurationNs))
	}
	unit := x.Metric.Unit()
	switch x.Metric {
	case experiment.PauseCount:
		return each(x.Links, unit, func(link string) (float64, error) { return r.pauseCount(link, window), nil })
	case experiment.PauseSpan:
		return each(x.Links, unit, func(link string) (float64, error) { return r.pauseSpan(link, window), nil })
	case experiment.PauseEnd:
		return each(x.Links, unit, func(link string) (float64, error) { return r.pauseEnd(link, window), nil })
	case experiment.MeanRate:
		return each(x.Flows, unit, func(flow string) (float64, error) { return r.meanRate(flow, window) })
	case experiment.RecoveryTime:
		return each(x.Flows, unit, func(flow string) (float64, error) { return r.recoveryTime(flow, x) })
	case experiment.LostPackets:
		return []experiment.Quantity{{Value: r.lostPackets(), Unit: unit}}, nil
	case experiment.LatenessP99:
		return r.latenessShare(unit)
	default:
		return nil, fmt.Errorf("metric %q is not known", x.Metric)
	}
}

// each measures every one of the names.
func each(names []string, unit experiment.Unit, measure func(string) (float64, error)) ([]experiment.Quantity, error) {
	var values []experiment.Quantity
	for _, name := range names {
		v, err := measure(name)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		values = append(values, experiment.Quantity{Value: v, Unit: unit})
	}
	return values, nil
}

func (r *Run) pauseCount(link string, window Interval) float64 {
	count := 0.0
	for _, e := range r.PFC {
		if e.Kind == Pause && e.link() == link && e.SentNs >= window.FromNs && e.SentNs < window.ToNs {
			count++
		}
	}
	return count
}

// pausedWithin returns the part of the window from the first to the last time the
// link is paused.
func (r *Run) pausedWithin(link string, window Interval) (Interval, bool) {
	var span Interval
	found := false
	for _, paused := range r.PausedIntervals(link) {
		if paused.overlap(window) == 0 {
			continue
		}
		if !found {
			span.FromNs, found = max(paused.FromNs, window.FromNs), true
		}
		span.ToNs = min(paused.ToNs, window.ToNs)
	}
	return span, found
}

func (r *Run) pauseSpan(link string, window Interval) float64 {
	span, _ := r.pausedWithin(link, window)
	return float64(span.ToNs - span.FromNs)
}

func (r *Run) pauseEnd(link string, window Interval) float64 {
	span, _ := r.pausedWithin(link, window)
	return float64(span.ToNs)
}

func (r *Run) meanRate(flow string, window Interval) (float64, error) {
	t, err := r.FlowRate(flow)
	if err != nil {
		return 0, err
	}
	sum, bins := 0.0, 0
	for i, v := range t.Values {
		if t.TimeNs(i) >= window.FromNs && t.TimeNs(i+1) <= window.ToNs {
			sum += v
			bins++
		}
	}
	if bins == 0 {
		return 0, errors.New("no bin of the series is in the window")
	}
	return sum / float64(bins), nil
}

func (r *Run) recoveryTime(flow string, x experiment.Expect) (float64, error) {
	since, err := r.sinceNs(x)
	if err != nil {
		return 0, err
	}
	t, err := r.FlowRate(flow)
	if err != nil {
		return 0, err
	}
	ns, err := t.RecoveryNs(float64(x.Target), since, int64(x.Hold))
	if errors.Is(err, errNotReached) {
		return 0, fmt.Errorf("%w in the %s that the run goes on", err, experiment.Duration(r.Manifest.DurationNs-since))
	}
	return float64(ns), err
}

// sinceNs returns where a recovery is counted from.
func (r *Run) sinceNs(x experiment.Expect) (int64, error) {
	switch x.Since {
	case experiment.SinceBurstEnd:
		return r.BurstEndNs()
	case experiment.SincePauseEnd:
		end, found := int64(0), false
		for _, link := range x.Links {
			if span, ok := r.pausedWithin(link, Interval{0, r.Manifest.DurationNs}); ok {
				end, found = max(end, span.ToNs), true
			}
		}
		if !found {
			return 0, fmt.Errorf("no PAUSE was on %v", x.Links)
		}
		return end, nil
	default:
		return 0, nil
	}
}

// RecoveryNs returns how long after a time the values are back at the target for
// good, as [experiment.RecoveryTime] says: the settling time of the mean over a
// window of length holdNs.
func (t Timeline) RecoveryNs(target float64, sinceNs, holdNs int64) (int64, error) {
	hold := int(max(1, (holdNs+t.StepNs-1)/t.StepNs))
	first := 0
	for first < len(t.Values) && t.TimeNs(first) < sinceNs {
		first++
	}
	lastWindow := len(t.Values) - hold
	if first > lastWindow {
		return 0, errNotReached
	}
	lastBelow := -1
	for i := first; i <= lastWindow; i++ {
		if mean(t.Values[i:i+hold]) < target {
			lastBelow = i
		}
	}
	if lastBelow < 0 {
		return 0, nil
	}
	for i := lastBelow + 1; i <= lastWindow; i++ {
		if t.Values[i] >= target {
			return t.TimeNs(i) - sinceNs, nil
		}
	}
	return 0, errNotReached
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

func (r *Run) lostPackets() float64 {
	var n uint64
	for _, p := range r.Ports {
		n += p.DroppedPackets()
	}
	for _, elsewhere := range r.Manifest.LostPackets {
		n += elsewhere
	}
	return float64(n)
}

func (r *Run) latenessShare(unit experiment.Unit) ([]experiment.Quantity, error) {
	m := r.Manifest
	if m.BaseRTTNs <= 0 {
		return nil, errors.New("the manifest has no base_rtt_ns")
	}
	return []experiment.Quantity{{Value: float64(m.LatenessP99Ns) / float64(m.BaseRTTNs), Unit: unit}}, nil
}
