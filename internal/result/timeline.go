// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// Timeline has a value for each bin of a run, without gaps.
type Timeline struct {
	StartNs int64 // of the first bin
	StepNs  int64 // length of a bin
	Values  []float64
}

// TimeNs returns the start of bin i.
func (t Timeline) TimeNs(i int) int64 {
	return t.StartNs + int64(i)*t.StepNs
}

// Max returns the largest value, or 0 if none is positive.
func (t Timeline) Max() float64 {
	top := 0.0
	for _, v := range t.Values {
		top = max(top, v)
	}
	return top
}

// Interval is a period of time from FromNs until before ToNs.
type Interval struct {
	FromNs, ToNs int64
}

func (i Interval) contains(atNs int64) bool { return atNs >= i.FromNs && atNs < i.ToNs }

// overlap returns the length of the part that both intervals have in common, in ns.
func (i Interval) overlap(o Interval) int64 {
	return max(0, min(i.ToNs, o.ToNs)-max(i.FromNs, o.FromNs))
}

// whole returns the time that the run covers.
func (r *Run) whole() Interval {
	return Interval{-r.Manifest.WarmupNs, r.Manifest.DurationNs}
}

// timeline returns a timeline of zeros.
func (r *Run) timeline() Timeline {
	m := r.Manifest
	return Timeline{
		StartNs: -m.WarmupNs, StepNs: m.SampleNs,
		Values: make([]float64, (m.WarmupNs+m.DurationNs)/m.SampleNs),
	}
}

// seriesIndex says where in a series the samples of each object are, by kind and name.
type seriesIndex struct {
	of      []Sample
	samples map[Kind]map[string][]int32
}

func newSeriesIndex(series []Sample) *seriesIndex {
	samples := map[Kind]map[string][]int32{}
	for i := range series {
		s := &series[i]
		named := samples[s.Kind]
		if named == nil {
			named = map[string][]int32{}
			samples[s.Kind] = named
		}
		named[s.Name] = append(named[s.Name], int32(i))
	}
	return &seriesIndex{series, samples}
}

// samplesOf returns where in the series the samples of all objects of a kind are, by the object's
// name.
func (r *Run) samplesOf(kind Kind) map[string][]int32 {
	return r.indexed().samples[kind]
}

// Index makes measuring of the run as it is now quick, where much is measured.
func (r *Run) Index() { r.index = r.indexed() }

// indexed returns the index of the series: the one that is there, unless the series is another now.
func (r *Run) indexed() *seriesIndex {
	i := r.index
	if i == nil || len(i.of) != len(r.Series) || len(i.of) > 0 && &i.of[0] != &r.Series[0] {
		return newSeriesIndex(r.Series)
	}
	return i
}

// addTo adds a value for each of these samples of an object to the timeline.
func (r *Run) addTo(
	t Timeline, kind Kind, name string, samples []int32, value func(*Sample) uint64,
) error {
	if len(samples) == 0 {
		return fmt.Errorf("series has no %s %s", kind, name)
	}
	for _, i := range samples {
		s := &r.Series[i]
		offset := s.TimeNs - t.StartNs
		if offset < 0 || offset%t.StepNs != 0 || offset/t.StepNs >= int64(len(t.Values)) {
			return fmt.Errorf("series has %s %s at %d ns, which is not the start of a bin",
				kind, name, s.TimeNs)
		}
		t.Values[offset/t.StepNs] += float64(value(s))
	}
	return nil
}

// membersOf returns a function from a name to flows: the members of a group, or the flow itself.
func (r *Run) membersOf() func(name string) []string {
	groups := make(map[string][]string)
	for _, f := range r.Flows {
		groups[f.Group] = append(groups[f.Group], f.Name)
	}
	return func(name string) []string {
		if flows, ok := groups[name]; ok {
			return flows
		}
		return []string{name}
	}
}

// FlowRate returns the rate in bit/s at which a flow was received, in Ethernet frames without FCS.
// A name such as F0+F1 means the sum of both flows, and the name of a group the sum of its flows.
func (r *Run) FlowRate(name string) (Timeline, error) {
	return r.ratesOf(KindFlow)(name)
}

// SendRate returns the pacing rate of a flow's sender in bit/s, at the end of each bin. It takes
// the same names as [Run.FlowRate].
func (r *Run) SendRate(name string) (Timeline, error) {
	return r.ratesOf(KindSender)(name)
}

// ratesOf returns [Run.FlowRate] or, for senders, [Run.SendRate]. It reads the series once, so that
// the function is cheap to call for many flows.
func (r *Run) ratesOf(kind Kind) timelineOf {
	samples, members := r.samplesOf(kind), r.membersOf()
	return func(name string) (Timeline, error) {
		t := r.timeline()
		for _, group := range experiment.SumOf(name) {
			flows := members(group)
			if len(samples[group]) > 0 { // for a large group the series has only the sum
				flows = []string{group}
			}
			for _, flow := range flows {
				if err := r.addTo(t, kind, flow, samples[flow], rateBps); err != nil {
					return Timeline{}, err
				}
			}
		}
		return t, nil
	}
}

func rateBps(s *Sample) uint64 {
	return s.RateBps
}

// PortRate returns the rate in bit/s at which a port sent, in Ethernet frames without FCS.
func (r *Run) PortRate(port string) (Timeline, error) {
	return r.ofPort(port, rateBps)
}

// QueueMax returns the longest queue of a port in each bin, in bytes.
func (r *Run) QueueMax(port string) (Timeline, error) {
	return r.ofPort(port, func(s *Sample) uint64 { return s.QueueMaxBytes })
}

// QueueEnd returns the queue of a port at the end of each bin, in bytes. Samples have the queue at
// the start of a bin, so the last bin is left out.
func (r *Run) QueueEnd(port string) (Timeline, error) {
	t, err := r.ofPort(port, func(s *Sample) uint64 { return s.QueueBytes })
	if len(t.Values) > 0 {
		t.Values = t.Values[1:]
	}
	return t, err
}

func (r *Run) ofPort(port string, value func(*Sample) uint64) (Timeline, error) {
	t := r.timeline()
	return t, r.addTo(t, KindPort, port, r.samplesOf(KindPort)[port], value)
}

// QdiscBacklog returns what waits at the end of each bin in a port's qdisc of Linux, in bytes.
func (r *Run) QdiscBacklog(port string) (Timeline, error) {
	t := r.timeline()
	for _, q := range r.Qdiscs {
		bin := (q.TimeNs-t.StartNs)/t.StepNs - 1
		if q.Port == port && bin >= 0 && bin < int64(len(t.Values)) {
			t.Values[bin] = float64(q.BacklogBytes)
		}
	}
	return t, nil
}

// PauseRate returns the number of PAUSE frames per second on a link, with repetitions: see
// [PauseRepeats]. The link has the direction of the frames: those on S1->S0 stop the port S0->S1.
func (r *Run) PauseRate(link string) Timeline {
	t := r.timeline()
	for _, p := range r.PauseRepeats {
		bin := (p.TimeNs - t.StartNs) / t.StepNs
		if p.link() == link && p.TimeNs >= t.StartNs && bin < int64(len(t.Values)) {
			t.Values[bin] += float64(p.Frames) * 1e9 / float64(t.StepNs)
		}
	}
	return t
}

// PausedShare returns the share of each bin, 0 to 1, in which PAUSE frames on a link stop the port
// at its far end.
func (r *Run) PausedShare(link string) Timeline {
	t := r.timeline()
	for _, paused := range r.PausedIntervals(link) {
		for bin := int((paused.FromNs - t.StartNs) / t.StepNs); bin < len(t.Values) &&
			t.TimeNs(bin) < paused.ToNs; bin++ {
			part := paused.overlap(Interval{t.TimeNs(bin), t.TimeNs(bin + 1)})
			t.Values[bin] += float64(part) / float64(t.StepNs)
		}
	}
	return t
}

func (e PFCEvent) link() string {
	return network.PortName(e.From, e.To)
}

func (p PauseRepeats) link() string {
	return network.PortName(p.From, p.To)
}

// PausedIntervals returns the times in which PAUSE frames on a link stop the port at its far end,
// in any class: from the effect of a PAUSE until the effect of the RESUME, or until the end of the
// run. The link has the direction of the frames: those on S1->S0 stop the port S0->S1.
func (r *Run) PausedIntervals(link string) []Interval {
	return r.pausedIntervals(link, nil)
}

// isOf reports whether a PFC class carries data of the priority. A nil priority means any.
func isOf(class uint8, priority *int) bool {
	return priority == nil || class == experiment.DataClass(*priority)
}

// pausedIntervals is [Run.PausedIntervals] for one priority; nil means all.
func (r *Run) pausedIntervals(link string, priority *int) []Interval {
	var events []PFCEvent
	for _, e := range r.PFC {
		if e.link() == link && isOf(e.Class, priority) {
			events = append(events, e)
		}
	}
	return r.intervalsOf(events)
}

// allPausedIntervals returns the paused intervals of every link that has any.
func (r *Run) allPausedIntervals(priority *int) map[string][]Interval {
	events := make(map[string][]PFCEvent)
	for _, e := range r.PFC {
		if isOf(e.Class, priority) {
			events[e.link()] = append(events[e.link()], e)
		}
	}
	intervals := make(map[string][]Interval)
	for link, list := range events {
		intervals[link] = r.intervalsOf(list)
	}
	return intervals
}

// intervalsOf returns the paused intervals from the PFC frames of one link.
func (r *Run) intervalsOf(events []PFCEvent) []Interval {
	slices.SortStableFunc(events, func(a, b PFCEvent) int {
		return cmp.Compare(a.EffectNs,
			b.EffectNs)
	})

	var intervals []Interval
	whole := r.whole()
	add := func(from, to int64) {
		clipped := Interval{max(from, whole.FromNs), min(to, whole.ToNs)}
		if clipped.FromNs < clipped.ToNs {
			intervals = append(intervals, clipped)
		}
	}
	paused := make(map[uint8]bool)
	from := int64(0)
	for _, e := range events {
		before := len(paused)
		if e.Kind == Pause {
			paused[e.Class] = true
		} else {
			delete(paused, e.Class)
		}
		switch {
		case before == 0 && len(paused) > 0:
			from = e.EffectNs
		case before > 0 && len(paused) == 0:
			add(from, e.EffectNs)
		}
	}
	if len(paused) > 0 {
		add(from, whole.ToNs)
	}
	return intervals
}

// BurstEndNs returns the time at which the last packet of the last burst was received. It fails if
// there is no burst, or if one did not end.
func (r *Run) BurstEndNs() (int64, error) {
	end, found := int64(0), false
	for _, f := range r.Flows {
		if f.Proto != UDP {
			continue
		}
		if f.EndNs == nil {
			return 0, shortError{
				fmt.Errorf("burst flow %s did not end during the run", f.Name), 0}
		}
		if !found || *f.EndNs > end {
			end, found = *f.EndNs, true
		}
	}
	if !found {
		return 0, errors.New("the run has no burst")
	}
	return end, nil
}
