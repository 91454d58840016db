// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
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

// Evaluate holds the run against what the experiment expects of its scheme and case.
func Evaluate(e *experiment.Experiment, r *Run) []Outcome {
	var outcomes []Outcome
	for _, x := range e.Expect {
		if x.Scheme != "" && x.Scheme != r.Manifest.Scheme || x.Case != "" && x.Case != r.Manifest.Case {
			continue
		}
		values, err := r.Measure(x.Measure)
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
	return valueInWords(o.Measured, o.Err)
}

// Bound returns the bounds in words.
func (o Outcome) Bound() string {
	return boundInWords(o.Expect.Min, o.Expect.Max)
}

// maxListed is how many values are written one by one.
const maxListed = 16

func valueInWords(values []experiment.Quantity, err error) string {
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
		return fmt.Sprintf("%d values from %s to %s", len(values), slices.MinFunc(values, byValue), slices.MaxFunc(values, byValue))
	}
	return strings.Join(texts, ", ")
}

func boundInWords(low, high *experiment.Quantity) string {
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

// errNotReached is a recovery, or a settling, that the run does not show.
var errNotReached = errors.New("not reached")

// notReachedError is an [errNotReached] that says how long the run went on.
type notReachedError struct {
	inNs int64
}

func (e *notReachedError) Error() string {
	return fmt.Sprintf("%v in the %s that the run goes on", errNotReached, experiment.Duration(e.inNs))
}

func (e *notReachedError) Unwrap() error {
	return errNotReached
}

// Measure returns a metric for each of its links, ports or flows. What each metric
// is, is said at [experiment.Metric].
func (r *Run) Measure(m experiment.Measure) ([]experiment.Quantity, error) {
	window := Interval{int64(m.From), int64(m.To)}
	if m.To == 0 {
		window.ToNs = r.Manifest.DurationNs
	}
	if window.ToNs > r.Manifest.DurationNs {
		return nil, fmt.Errorf("the run ends at %s, before the window does", experiment.Duration(r.Manifest.DurationNs))
	}
	m.Flows = r.flowsOf(m)
	unit := m.Metric.Unit()
	switch m.Metric {
	case experiment.PauseCount:
		return each(m.Links, unit, func(link string) (float64, error) { return r.pauseCount(link, m.Priority, window), nil })
	case experiment.PauseFrames:
		return each(m.Links, unit, func(link string) (float64, error) { return r.pauseFrames(link, m.Priority, window), nil })
	case experiment.PauseSpan:
		return each(m.Links, unit, func(link string) (float64, error) { return r.pauseSpan(link, m.Priority, window), nil })
	case experiment.PauseEnd:
		return each(m.Links, unit, func(link string) (float64, error) { return r.pauseEnd(link, m.Priority, window), nil })
	case experiment.PauseTotal:
		return each(m.Links, unit, func(link string) (float64, error) { return r.pauseTotal(link, m.Priority, window), nil })
	case experiment.MeanRate:
		return each(m.Flows, unit, over(window, r.ratesOf(KindFlow), mean))
	case experiment.PortRate:
		return each(m.Ports, unit, over(window, r.PortRate, mean))
	case experiment.QueueMax:
		return each(m.Ports, unit, over(window, r.QueueMax, slices.Max))
	case experiment.QueueMean:
		return each(m.Ports, unit, over(window, r.QueueEnd, mean))
	case experiment.QueueP99:
		return each(m.Ports, unit, over(window, r.QueueEnd, p99))
	case experiment.Utilisation:
		return each(m.Ports, unit, func(port string) (float64, error) { return r.utilisation(port, window) })
	case experiment.FCTMean, experiment.FCTP50, experiment.FCTP95, experiment.FCTP99, experiment.FCTP999,
		experiment.SlowdownMean, experiment.SlowdownP50, experiment.SlowdownP95, experiment.SlowdownP99, experiment.SlowdownP999,
		experiment.Completed, experiment.CompletionRate:
		return one(unit)(r.ofCompletions(m, window))
	case experiment.TierPauseCount:
		return r.eachTier(m, unit, func(from func(string) bool) float64 { return r.pausesSent(window, m.Priority, from) })
	case experiment.TierPauseFrames:
		return r.eachTier(m, unit, func(from func(string) bool) float64 { return r.framesSent(window, m.Priority, from) })
	case experiment.TierPauseTotal:
		return r.eachTier(m, unit, func(from func(string) bool) float64 { return r.pausedTotal(window, m.Priority, from) })
	case experiment.PauseDepth:
		return one(unit)(r.pauseDepth(window, m.Priority), nil)
	case experiment.CompletionTime:
		return each(m.Flows, unit, r.completion)
	case experiment.RateStd:
		return each(m.Flows, unit, over(window, r.ratesOf(KindSender), standardDeviation))
	case experiment.MaxRateSwing:
		return each(m.Flows, unit, over(window, r.ratesOf(KindSender), swing))
	case experiment.RateAfterCNPs:
		return each(m.Flows, unit, func(flow string) (float64, error) { return r.rateAfterCNPs(flow, uint64(m.CNPs)) })
	case experiment.Jain:
		return r.jain(m.Flows, window)
	case experiment.RecoveryTime:
		return each(m.Flows, unit, r.since(m, r.ratesOf(KindFlow), func(t Timeline, sinceNs int64) (int64, error) {
			return t.RecoveryNs(m.Target.Value, sinceNs, int64(m.Hold))
		}))
	case experiment.QueueSettling:
		return each(m.Ports, unit, r.since(m, r.QueueEnd, func(t Timeline, sinceNs int64) (int64, error) {
			return t.recoveryNs(sinceNs, int64(m.Hold), func(queue float64) bool { return queue > m.Target.Value })
		}))
	case experiment.SettlingTime:
		return each(m.Flows, unit, r.since(m, r.ratesOf(KindFlow), func(t Timeline, sinceNs int64) (int64, error) {
			return t.settlingNs(sinceNs, int64(m.Hold), outOfBand(m))
		}))
	case experiment.SendRateSettling:
		return each(m.Flows, unit, r.since(m, r.ratesOf(KindSender), func(t Timeline, sinceNs int64) (int64, error) {
			return t.settlingNs(sinceNs, int64(m.Hold), outOfBand(m))
		}))
	case experiment.MarkedPackets:
		return each(m.Flows, unit, r.markedPackets)
	case experiment.DetectorMarks:
		return each(m.Ports, unit, func(port string) (float64, error) { return r.detectorMarks(port, m.Detector, window) })
	case experiment.WrongMarks:
		return r.wrongMarks(m)
	case experiment.OffEnd:
		return each(m.Ports, unit, func(port string) (float64, error) {
			end, err := r.offEnd(port, window)
			return float64(end), err
		})
	case experiment.DetectionTime:
		return each(m.Ports, unit, func(port string) (float64, error) { return r.detectionTime(port, window) })
	case experiment.LostPackets:
		return []experiment.Quantity{{Value: r.lostPackets(), Unit: unit}}, nil
	case experiment.BufferDrops:
		return r.sumOfPorts(unit, func(p Port) uint64 { return p.DroppedPackets() - p.DroppedWREDPackets })
	case experiment.WREDDrops:
		return r.sumOfPorts(unit, func(p Port) uint64 { return p.DroppedWREDPackets })
	case experiment.Deadlock:
		n := 0.0
		if r.Manifest.Deadlock != nil {
			n = 1
		}
		return []experiment.Quantity{{Value: n, Unit: unit}}, nil
	case experiment.Timeouts:
		return r.timeouts(unit)
	case experiment.LatenessP99:
		return r.latenessShare(unit)
	default:
		return nil, fmt.Errorf("metric %q is not known", m.Metric)
	}
}

// flowsOf returns the flows of the metric, with those of a group in its place.
func (r *Run) flowsOf(m experiment.Measure) []string {
	members := r.membersOf()
	var flows []string
	for _, name := range m.Flows {
		flows = append(flows, members(name)...)
	}
	return flows
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

// one is the value of a metric that has one.
func one(unit experiment.Unit) func(value float64, err error) ([]experiment.Quantity, error) {
	return func(value float64, err error) ([]experiment.Quantity, error) {
		if err != nil {
			return nil, err
		}
		return []experiment.Quantity{{Value: value, Unit: unit}}, nil
	}
}

func (r *Run) pauseCount(link string, priority *int, window Interval) float64 {
	count := 0.0
	for _, e := range r.PFC {
		if e.Kind == Pause && e.link() == link && isOf(e.Class, priority) && e.SentNs >= window.FromNs && e.SentNs < window.ToNs {
			count++
		}
	}
	return count
}

func (r *Run) pauseFrames(link string, priority *int, window Interval) float64 {
	return r.repeats(window, priority, func(p PauseRepeats) bool { return p.link() == link })
}

// pausedWithin returns the part of the window from the first to the last time the
// link is paused, for data of the priority if one is given.
func (r *Run) pausedWithin(link string, priority *int, window Interval) (Interval, bool) {
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
	span, _ := r.pausedWithin(link, priority, window)
	return float64(span.ToNs - span.FromNs)
}

func (r *Run) pauseEnd(link string, priority *int, window Interval) float64 {
	span, _ := r.pausedWithin(link, priority, window)
	return float64(span.ToNs)
}

func (r *Run) pauseTotal(link string, priority *int, window Interval) float64 {
	total := int64(0)
	for _, paused := range r.pausedIntervals(link, priority) {
		total += paused.overlap(window)
	}
	return float64(total)
}

// timelineOf returns the timeline of a named object.
type timelineOf func(name string) (Timeline, error)

// over measures the bins of a timeline that lie wholly within the window.
func over(window Interval, timeline timelineOf, measure func([]float64) float64) func(string) (float64, error) {
	return func(name string) (float64, error) {
		t, err := timeline(name)
		if err != nil {
			return 0, err
		}
		values := t.within(window)
		if len(values) == 0 {
			return 0, errors.New("no bin of the series is in the window")
		}
		return measure(values), nil
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

// percentile returns the least value that a share of all do not exceed (nearest rank).
func percentile(values []float64, share float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return sorted[max(int(math.Ceil(share*float64(len(sorted))))-1, 0)]
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

// jain returns Jain's index of fairness of the mean rates: 1 if all are the same,
// 1/n if one of n has all.
func (r *Run) jain(flows []string, window Interval) ([]experiment.Quantity, error) {
	rates, err := each(flows, experiment.UnitRate, over(window, r.ratesOf(KindFlow), mean))
	if err != nil {
		return nil, err
	}
	sum, squares := 0.0, 0.0
	for _, rate := range rates {
		sum += rate.Value
		squares += rate.Value * rate.Value
	}
	if squares == 0 {
		return nil, errors.New("no flow received anything in the window")
	}
	return []experiment.Quantity{{Value: sum * sum / (float64(len(rates)) * squares), Unit: experiment.Jain.Unit()}}, nil
}

// since measures how long after the moment of the metric a timeline gets somewhere.
func (r *Run) since(m experiment.Measure, timeline timelineOf, measure func(t Timeline, sinceNs int64) (int64, error)) func(string) (float64, error) {
	return func(name string) (float64, error) {
		sinceNs, err := r.sinceNs(m)
		if err != nil {
			return 0, err
		}
		t, err := timeline(name)
		if err != nil {
			return 0, err
		}
		ns, err := measure(t, sinceNs)
		if errors.Is(err, errNotReached) {
			return 0, &notReachedError{inNs: r.Manifest.DurationNs - sinceNs}
		}
		return float64(ns), err
	}
}

// sinceNs returns where a recovery is counted from.
func (r *Run) sinceNs(m experiment.Measure) (int64, error) {
	switch m.Since {
	case experiment.SinceBurstEnd:
		return r.BurstEndNs()
	case experiment.SincePauseEnd:
		end, found := int64(0), false
		for _, link := range m.Links {
			if span, ok := r.pausedWithin(link, nil, Interval{0, r.Manifest.DurationNs}); ok {
				end, found = max(end, span.ToNs), true
			}
		}
		if !found {
			return 0, fmt.Errorf("no PAUSE was on %v", m.Links)
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
	return t.recoveryNs(sinceNs, holdNs, func(v float64) bool { return v < target })
}

// recoveryNs returns how long after a time the first bin starts that is not out and
// comes after the start of the last window whose mean is. It is 0 if none is.
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
	return 0, errNotReached
}

// settlingNs returns how long after a time the first window starts from which on no
// mean over a window is out. It is 0 if none is.
func (t Timeline) settlingNs(sinceNs, holdNs int64, out func(float64) bool) (int64, error) {
	settled, _, err := t.settled(sinceNs, holdNs, out)
	if err != nil || settled < 0 {
		return 0, err
	}
	return t.TimeNs(settled) - sinceNs, nil
}

// settled returns where the first window starts after the last that is out, and where
// windows end to start. Windows are full, of length holdNs, and start with a bin at sinceNs
// or later. It returns -1 if none is out, and an error if the last is, or if there is none.
func (t Timeline) settled(sinceNs, holdNs int64, out func(float64) bool) (settled, end int, err error) {
	hold := int(max(1, (holdNs+t.StepNs-1)/t.StepNs))
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
		return 0, 0, errNotReached
	}
	return settled, end, nil
}

// outOfBand returns whether a rate is further from the target than the band.
func outOfBand(m experiment.Measure) func(float64) bool {
	return func(rate float64) bool { return math.Abs(rate-m.Target.Value) > float64(m.Band)*m.Target.Value }
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

func (r *Run) sumOfPorts(unit experiment.Unit, count func(Port) uint64) ([]experiment.Quantity, error) {
	var n uint64
	for _, p := range r.Ports {
		n += count(p)
	}
	return []experiment.Quantity{{Value: float64(n), Unit: unit}}, nil
}

func (r *Run) timeouts(unit experiment.Unit) ([]experiment.Quantity, error) {
	var n uint64
	for _, f := range r.Flows {
		n += f.Timeouts
	}
	return []experiment.Quantity{{Value: float64(n), Unit: unit}}, nil
}

// utilisation returns the mean rate of a port as a share of its link's.
func (r *Run) utilisation(port string, window Interval) (float64, error) {
	i := slices.IndexFunc(r.Ports, func(p Port) bool { return p.Name == port })
	if i < 0 || r.Ports[i].RateBps == 0 {
		return 0, fmt.Errorf("the run has no rate of link %s", port)
	}
	rate, err := over(window, r.PortRate, mean)(port)
	return rate / float64(r.Ports[i].RateBps), err
}

// completion returns how long a flow took to complete.
func (r *Run) completion(flow string) (float64, error) {
	i := slices.IndexFunc(r.Flows, func(f Flow) bool { return f.Name == flow })
	if i < 0 {
		return 0, fmt.Errorf("the run has no flow %s", flow)
	}
	f := r.Flows[i]
	if f.CompletionNs == 0 {
		return 0, &notReachedError{inNs: r.Manifest.DurationNs - f.StartNs}
	}
	return float64(f.CompletionNs), nil
}

func (r *Run) latenessShare(unit experiment.Unit) ([]experiment.Quantity, error) {
	m := r.Manifest
	if m.BaseRTTNs <= 0 {
		return nil, errors.New("the manifest has no base_rtt_ns")
	}
	return []experiment.Quantity{{Value: float64(m.LatenessP99Ns) / float64(m.BaseRTTNs), Unit: unit}}, nil
}

// rateAfterCNPs returns the send rate of a flow in the first bin at whose end its sender had heard so many CNPs.
func (r *Run) rateAfterCNPs(flow string, cnps uint64) (float64, error) {
	for _, s := range r.Series {
		if s.Kind == KindSender && s.Name == flow && s.CNPs == cnps {
			return float64(s.RateBps), nil
		}
	}
	return 0, fmt.Errorf("no bin of the series ends after %d CNPs", cnps)
}
