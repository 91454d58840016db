// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Outcome is the result of checking an expectation.
type Outcome struct {
	Expect experiment.Expect
	Number int // in the experiment's list, from 0 on
	Scheme string
	// Measured has a value for each link, port or flow of the expectation, or one for the run.
	Measured []experiment.Quantity
	// Objects names what each value is of; "" for the whole run.
	Objects []string
	// Err says why the metric could not be measured. The expectation is then not met.
	Err error
	// Pass reports whether all values are within the bounds.
	Pass bool
	// Needs is the duration that the run would need to be judged; 0 if it was long enough.
	Needs experiment.Duration
}

// Evaluate checks the experiment's expectations of the run's scheme and case.
func Evaluate(e *experiment.Experiment, r *Run) []Outcome {
	var outcomes []Outcome
	for i, x := range e.Expect {
		if !x.Of(r.Manifest.Scheme, r.Manifest.Case) {
			continue
		}
		values, err := r.Measure(x.Measure)
		outcomes = append(outcomes, Outcome{
			Expect:   x,
			Number:   i,
			Scheme:   r.Manifest.Scheme,
			Measured: values,
			Objects:  r.objectsOf(x.Measure, len(values)),
			Err:      err,
			Needs:    needed(e, x.Measure, x.Max, err),
		})
		outcomes[len(outcomes)-1].Judge()
	}
	return outcomes
}

// Judge holds the values against the bounds.
func (o *Outcome) Judge() {
	o.Pass = o.Err == nil && within(o.Measured, o.Expect.Min, o.Expect.Max)
}

// fails reports whether it must be met with each seed, and is not.
func (o Outcome) fails() bool { return !o.Pass && o.Expect.Metric.EachSeed() }

func within(values []experiment.Quantity, low, high *experiment.Quantity) bool {
	for _, v := range values {
		if low != nil && v.Value < low.Value || high != nil && v.Value > high.Value {
			return false
		}
	}
	return len(values) > 0
}

// Value returns the measured values as text, or the reason why there are none. Equal values are
// written once.
func (o Outcome) Value() string {
	return formatValues(o.Measured, o.Err)
}

// Bound returns the bounds as text.
func (o Outcome) Bound() string {
	return FormatBound(o.Expect.Min, o.Expect.Max)
}

// maxListed is the largest number of values that are written one by one.
const maxListed = 16

func formatValues(values []experiment.Quantity, err error) string {
	if err != nil {
		return "not measured: " + err.Error()
	}
	var texts []string
	for _, v := range values {
		texts = append(texts, v.String())
	}
	if distinct := slices.Compact(slices.Clone(texts)); len(distinct) == 1 {
		return distinct[0]
	}
	if len(values) > maxListed {
		byValue := func(a, b experiment.Quantity) int { return cmp.Compare(a.Value, b.Value) }
		return fmt.Sprintf("%d values from %s to %s", len(values),
			slices.MinFunc(values, byValue), slices.MaxFunc(values, byValue))
	}
	return strings.Join(texts, ", ")
}

// FormatBound returns bounds as text; nil is for no bound.
func FormatBound(low, high *experiment.Quantity) string {
	switch {
	case low == nil && high == nil:
		return ""
	case low == nil:
		return "at most " + high.String()
	case high == nil:
		return "at least " + low.String()
	default:
		return low.String() + " to " + high.String()
	}
}

// ErrNotReached means that a time, such as a recovery time, is longer than the run.
var ErrNotReached = errors.New("not reached")

// notReachedError is an [ErrNotReached] with the time for which the run was observed.
type notReachedError struct {
	observedNs int64
	untilNs    int64  // the end of that time
	text       string // of the error, if it comes from a file
}

func (e *notReachedError) Error() string {
	if e.text != "" {
		return e.text
	}
	return fmt.Sprintf("%v within the remaining %s of the run",
		ErrNotReached, experiment.Duration(e.observedNs))
}

func (e *notReachedError) Unwrap() error {
	return ErrNotReached
}

// Measure returns the values of a metric: one for each of its links, ports or flows, or one for the
// run. [experiment.Metric] describes each metric.
func (r *Run) Measure(m experiment.Measure) ([]experiment.Quantity, error) {
	window := Interval{int64(m.From), int64(m.To)}
	if m.To == 0 {
		window.ToNs = r.Manifest.DurationNs
	}
	if window.ToNs > r.Manifest.DurationNs {
		return nil, shortError{fmt.Errorf("the run ends at %s, before the metric's window does",
			experiment.Duration(r.Manifest.DurationNs)), window.ToNs}
	}
	if window.FromNs >= r.Manifest.DurationNs {
		return nil, shortError{fmt.Errorf("the run ends at %s, before the metric's window begins",
			experiment.Duration(r.Manifest.DurationNs)), 0}
	}
	measure := measures[m.Metric]
	if measure == nil {
		return nil, fmt.Errorf("unknown metric %q", m.Metric)
	}
	m.Flows = r.flowsOf(m)
	return measure(r, m, window)
}

// flowsOf returns the flows of the metric. It replaces groups by their flows.
func (r *Run) flowsOf(m experiment.Measure) []string {
	members := r.membersOf()
	var flows []string
	for _, name := range m.Flows {
		flows = append(flows, members(name)...)
	}
	return flows
}

// each returns the value of each name. Errors get the name as prefix.
func each(
	names []string, unit experiment.Unit, measure func(name string) (float64, error),
) ([]experiment.Quantity, error) {
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

func (r *Run) pauseCount(link string, priority *int, window Interval) float64 {
	count := 0.0
	for _, e := range r.PFC {
		if e.Kind == Pause && e.link() == link && isOf(e.Class, priority) &&
			window.contains(e.SentNs) {
			count++
		}
	}
	return count
}

func (r *Run) pauseFrames(link string, priority *int, window Interval) float64 {
	return r.repeats(window, priority, func(p PauseRepeats) bool { return p.link() == link })
}

// pausedSpan returns the part of the window from the first to the last time that the link is
// paused. It is false if the link is never paused.
func (r *Run) pausedSpan(link string, priority *int, window Interval) (Interval, bool) {
	var span Interval
	found := false
	for _, paused := range r.pausedIntervals(link, priority) {
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

func (r *Run) pauseSpan(link string, priority *int, window Interval) float64 {
	span, _ := r.pausedSpan(link, priority, window)
	return float64(span.ToNs - span.FromNs)
}

func (r *Run) pauseEnd(link string, priority *int, window Interval) float64 {
	span, _ := r.pausedSpan(link, priority, window)
	return float64(span.ToNs)
}

func (r *Run) pauseTotal(link string, priority *int, window Interval) float64 {
	total := int64(0)
	for _, paused := range r.pausedIntervals(link, priority) {
		total += paused.overlap(window)
	}
	return float64(total)
}

// timelineOf returns the timeline of a flow or a port.
type timelineOf func(name string) (Timeline, error)

// over reduces the bins of a timeline in the window to one value.
func over(
	window Interval, timeline timelineOf, reduce func([]float64) float64,
) func(name string) (float64, error) {
	return func(name string) (float64, error) {
		t, err := timeline(name)
		if err != nil {
			return 0, err
		}
		values := t.within(window)
		if len(values) == 0 {
			return 0, errors.New("the window has no whole bin of the series")
		}
		return reduce(values), nil
	}
}

// within returns the values of the bins that lie wholly within the window.
func (t Timeline) within(window Interval) []float64 {
	var values []float64
	for i, v := range t.Values {
		if t.TimeNs(i) >= window.FromNs && t.TimeNs(i+1) <= window.ToNs {
			values = append(values, v)
		}
	}
	return values
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// percentile returns the smallest value that this share of all values do not exceed (nearest rank).
func percentile(values []float64, share float64) float64 {
	return nearestRank(ascending(values), share)
}

func ascending(values []float64) []float64 {
	values = slices.Clone(values)
	slices.Sort(values)
	return values
}

func nearestRank(inOrder []float64, share float64) float64 {
	return inOrder[max(int(math.Ceil(share*float64(len(inOrder))))-1, 0)]
}

func p99(values []float64) float64 {
	return percentile(values, 0.99)
}

func standardDeviation(values []float64) float64 {
	center, sum := mean(values), 0.0
	for _, v := range values {
		sum += (v - center) * (v - center)
	}
	return math.Sqrt(sum / float64(len(values)))
}

func swing(values []float64) float64 {
	return slices.Max(values) - slices.Min(values)
}

// jain returns Jain's fairness index of the flows' mean rates: 1 if all are equal, 1/n if one of n
// flows has the whole rate.
func (r *Run) jain(m experiment.Measure, window Interval) (float64, error) {
	rates, err := each(m.Flows, experiment.UnitRate, over(window, r.ratesOf(KindFlow), mean))
	if err != nil {
		return 0, err
	}
	sum, squares := 0.0, 0.0
	for _, rate := range rates {
		sum += rate.Value
		squares += rate.Value * rate.Value
	}
	if squares == 0 {
		return 0, errors.New("no flow received anything in the window")
	}
	return sum * sum / (float64(len(rates)) * squares), nil
}

// stalledFlows counts the flows that received nothing in the window.
func (r *Run) stalledFlows(m experiment.Measure, window Interval) (float64, error) {
	rates, err := each(m.Flows, experiment.UnitRate, over(window, r.ratesOf(KindFlow), mean))
	if err != nil {
		return 0, err
	}
	stalled := 0.0
	for _, rate := range rates {
		if rate.Value == 0 {
			stalled++
		}
	}
	return stalled, nil
}

// since measures the time from the metric's "since" until a timeline reaches the target.
func (r *Run) since(
	m experiment.Measure, timeline timelineOf, reach reachFunc,
) func(name string) (float64, error) {
	return func(name string) (float64, error) {
		sinceNs, err := r.sinceNs(m)
		if err != nil {
			return 0, err
		}
		t, err := timeline(name)
		if err != nil {
			return 0, err
		}
		ns, err := reach(m, t, sinceNs)
		if errors.Is(err, ErrNotReached) {
			end := r.Manifest.DurationNs
			return 0, &notReachedError{observedNs: end - sinceNs, untilNs: end}
		}
		return float64(ns), err
	}
}

// sinceNs returns the time of the metric's "since".
func (r *Run) sinceNs(m experiment.Measure) (int64, error) {
	switch m.Since {
	case experiment.SinceBurstEnd:
		return r.BurstEndNs()
	case experiment.SincePauseEnd:
		end, found := int64(0), false
		for _, link := range m.Links {
			if span, ok := r.pausedSpan(link, nil, Interval{0, r.Manifest.DurationNs}); ok {
				end, found = max(end, span.ToNs), true
			}
		}
		if !found {
			return 0, fmt.Errorf("no PAUSE was sent on %v", m.Links)
		}
		return end, nil
	default:
		return 0, nil
	}
}

func recoverRate(m experiment.Measure, t Timeline, sinceNs int64) (int64, error) {
	return t.RecoveryNs(m.Target.Value, sinceNs, int64(m.Hold))
}

// settleRate returns the time until the rate stays within the band around the target.
func settleRate(m experiment.Measure, t Timeline, sinceNs int64) (int64, error) {
	return t.settlingNs(sinceNs, int64(m.Hold), func(rate float64) bool {
		return math.Abs(rate-m.Target.Value) > float64(m.Band)*m.Target.Value
	})
}

// drainQueue returns the time until the queue stays at or below the target.
func drainQueue(m experiment.Measure, t Timeline, sinceNs int64) (int64, error) {
	return t.recoveryNs(sinceNs, int64(m.Hold), func(queueBytes float64) bool {
		return queueBytes > m.Target.Value
	})
}

// RecoveryNs returns the time from sinceNs until the mean over windows of length holdNs stays at or
// above the target: see [experiment.RecoveryTime].
func (t Timeline) RecoveryNs(target float64, sinceNs, holdNs int64) (int64, error) {
	return t.recoveryNs(sinceNs, holdNs, func(v float64) bool { return v < target })
}

// recoveryNs finds the last window whose mean is out, and the first bin after that window's start
// that is not out. It returns the time from sinceNs to this bin, or 0 if no window is out.
func (t Timeline) recoveryNs(sinceNs, holdNs int64, out func(float64) bool) (int64, error) {
	settled, end, err := t.settled(sinceNs, holdNs, out)
	if err != nil || settled < 0 {
		return 0, err
	}
	for i := settled; i < end; i++ {
		if !out(t.Values[i]) {
			return t.TimeNs(i) - sinceNs, nil
		}
	}
	return 0, ErrNotReached
}

// settlingNs returns the time from sinceNs to the first window after the last one whose mean is
// out. It is 0 if no window is out.
func (t Timeline) settlingNs(sinceNs, holdNs int64, out func(float64) bool) (int64, error) {
	settled, _, err := t.settled(sinceNs, holdNs, out)
	if err != nil || settled < 0 {
		return 0, err
	}
	return t.TimeNs(settled) - sinceNs, nil
}

// settled returns the bin in which the first window starts after the last window whose mean is out;
// -1 if none is out. No window starts in bin end or later. Windows have length holdNs and start at
// sinceNs or later. It fails if the last window is out, or if the run is too short for any.
func (t Timeline) settled(
	sinceNs, holdNs int64, out func(float64) bool,
) (settled, end int, err error) {
	hold := int(max(1, (holdNs+t.StepNs-1)/t.StepNs)) // in bins
	first, settled := 0, -1
	for first < len(t.Values) && t.TimeNs(first) < sinceNs {
		first++
	}
	end = len(t.Values) - hold + 1
	for i := first; i < end; i++ {
		if out(mean(t.Values[i : i+hold])) {
			settled = i + 1
		}
	}
	if first >= end || settled == end {
		return 0, 0, ErrNotReached
	}
	return settled, end, nil
}

func (r *Run) lostPackets(experiment.Measure, Interval) (float64, error) {
	var n uint64
	for _, p := range r.Ports {
		n += p.DroppedPackets()
	}
	for _, outsidePorts := range r.Manifest.LostPackets {
		n += outsidePorts
	}
	return float64(n), nil
}

func bufferDrops(p Port) uint64 { return p.DroppedPackets() - p.DroppedWREDPackets }

func (r *Run) timeouts(experiment.Measure, Interval) (float64, error) {
	var n uint64
	for _, f := range r.Flows {
		n += f.Timeouts
	}
	return float64(n), nil
}

func (r *Run) storms(experiment.Measure, Interval) (float64, error) {
	return float64(len(r.Watchdog)), nil
}

// deadlocks returns 1 if the run ended in a deadlock, else 0.
func (r *Run) deadlocks(experiment.Measure, Interval) (float64, error) {
	if r.Manifest.Deadlock != nil {
		return 1, nil
	}
	return 0, nil
}

// utilisation returns the mean rate of a port as a share of its link's rate.
func (r *Run) utilisation(_ experiment.Measure, port string, window Interval) (float64, error) {
	p, err := r.portNamed(port)
	if err != nil || p.RateBps == 0 {
		return 0, fmt.Errorf("ports.csv has no link rate of port %s", port)
	}
	rate, err := over(window, r.PortRate, mean)(port)
	return rate / float64(p.RateBps), err
}

func (r *Run) portNamed(name string) (Port, error) {
	i := slices.IndexFunc(r.Ports, func(p Port) bool { return p.Name == name })
	if i < 0 {
		return Port{}, fmt.Errorf("the run has no port %s", name)
	}
	return r.Ports[i], nil
}

func (r *Run) flowNamed(name string) (Flow, error) {
	i := slices.IndexFunc(r.Flows, func(f Flow) bool { return f.Name == name })
	if i < 0 {
		return Flow{}, fmt.Errorf("the run has no flow %s", name)
	}
	return r.Flows[i], nil
}

// completion returns the completion time of a flow.
func (r *Run) completion(_ experiment.Measure, flow string) (float64, error) {
	f, err := r.flowNamed(flow)
	if err != nil {
		return 0, err
	}
	if f.CompletionNs == 0 {
		end := r.Manifest.DurationNs
		return 0, &notReachedError{observedNs: end - f.StartNs, untilNs: end}
	}
	return float64(f.CompletionNs), nil
}

// latenessShare returns the 99th percentile of lateness as a share of the base round trip.
func (r *Run) latenessShare(experiment.Measure, Interval) (float64, error) {
	m := r.Manifest
	if m.BaseRTTNs <= 0 {
		return 0, errors.New("the manifest has no base_rtt_ns")
	}
	return float64(m.LatenessP99Ns) / float64(m.BaseRTTNs), nil
}

// rateAfterCNPs returns the send rate of a flow in the first bin at whose end the sender has
// received exactly the metric's number of CNPs.
func (r *Run) rateAfterCNPs(m experiment.Measure, flow string) (float64, error) {
	for _, s := range r.Series {
		if s.Kind == KindSender && s.Name == flow && s.CNPs == uint64(m.CNPs) {
			return float64(s.RateBps), nil
		}
	}
	return 0, fmt.Errorf("no bin of the series ends with exactly %d CNPs received", m.CNPs)
}
