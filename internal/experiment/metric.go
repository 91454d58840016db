// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"math"
	"slices"
	"strings"
)

// Measure is a metric with its arguments.
type Measure struct {
	// Metric names the metric. Required.
	Metric Metric `yaml:"metric"`
	// Links are measured one by one, in the direction of the PAUSE frames.
	Links []string `yaml:"links"`
	// Priority is the priority of data that is measured. Default: PAUSE of any class.
	Priority *int `yaml:"priority"`
	// Ports are egress ports, measured one by one.
	Ports []string `yaml:"ports"`
	// Flows are measured one by one, and so is each flow of a group. F0+F1 is the sum of two flows
	// or groups.
	Flows []string `yaml:"flows"`
	// Sizes limits the measured flows by size. Default: any.
	Sizes Sizes `yaml:"sizes"`
	// Tiers are the senders of the measured PAUSE frames, tier by tier: see [Network.Tiers].
	// Default: all together.
	Tiers []string `yaml:"tiers"`
	// From and To bound the window. Default: from t = 0 to the end of the run, which is To = 0.
	From Duration `yaml:"from"`
	To   Duration `yaml:"to"`
	// Since is the moment from which a settling time counts. Default: start.
	Since Since `yaml:"since"`
	// Target is the rate to settle at or, for a queue, the size.
	Target *Quantity `yaml:"target"`
	// Band is the largest distance of a settled value from the target, as a share of it.
	Band Ratio `yaml:"band"`
	// CNPs is the number of CNPs that a sender has received.
	CNPs uint `yaml:"cnps"`
	// Detector is the detector whose marks count.
	Detector Detector `yaml:"detector"`
	// Hold is the length of the windows whose means a settling time uses. Default 500us.
	Hold Duration `yaml:"hold"`
	// Program is the program that is measured.
	Program string `yaml:"program"`
	// Says is a regular expression, whose matches in the program's output are counted.
	Says string `yaml:"says"`
	// JSON is where a number stands in the JSON of the program's stdout: keys and indices with dots
	// between them, such as end.sum_received.bits_per_second or intervals.0.sum.bytes.
	JSON string `yaml:"json"`
}

// SumOf returns the flows that an entry of [Measure.Flows] sums.
func SumOf(flows string) []string {
	return strings.Split(flows, "+")
}

// Metric names a number that is measured on a run. Times are in the paper's time
// with t = 0 at the start of the bursts; "the window" is [from, to) of the [Measure],
// by default from t = 0 to the end of the run. A link is the direction in which
// PAUSE frames travel, as in PCN, Fig. 2: S1->S0 is S1 telling S0 to stop. A rate is
// what the receiver got, in Ethernet frames without FCS, per bin of the series; a send
// rate is the rate that a flow's sender was at.
type Metric string

const (
	// ProgramExit is the exit code of a program: 128 plus the signal that ended it, as in a shell.
	ProgramExit Metric = "program_exit"

	// ProgramSays is how often the program's output matches a regular expression.
	ProgramSays Metric = "program_says"

	// ProgramJSON is a number in the JSON that a program writes.
	ProgramJSON Metric = "program_json"

	// PauseCount is how often PAUSE began on each link in the window: a PAUSE holds until the
	// RESUME.
	PauseCount Metric = "pause_count"

	// PauseFrames is the number of PAUSE frames sent on each link, in the bins that start in the
	// window, by switches that repeat them: see [result.PauseRepeats]. It is what simulators built
	// on ns3-rdma count.
	PauseFrames Metric = "pause_frames"

	// PauseSpan is, for each link, the time from the start of the first to the end
	// of the last period in the window in which the far end was stopped; 0 if
	// it never was. This is the length of the arrows in PCN, Fig. 2(a).
	PauseSpan Metric = "pause_span"

	// PauseEnd is, for each link, the time t at which the last period in the window
	// ended in which the far end was stopped; 0 if it never was.
	PauseEnd Metric = "pause_end"

	// MeanRate is, for each flow, the mean rate over the bins that lie wholly
	// within the window.
	MeanRate Metric = "mean_rate"

	// PauseTotal is, for each link, how much of the window the far end was stopped.
	PauseTotal Metric = "pause_total"

	// PortRate is, for each port, the mean rate at which it sent over the bins that
	// lie wholly within the window.
	PortRate Metric = "port_rate"

	// QueueMax is, for each port, its longest queue in the bins that lie wholly within the window.
	QueueMax Metric = "queue_max"

	// QueueMin is, for each port, its shortest queue at the end of each bin that lies wholly within
	// the window: what a window that was cut leaves in a buffer.
	QueueMin Metric = "queue_min"

	// QueueMean is, for each port, the mean of its queue at the end of each bin that
	// lies wholly within the window.
	QueueMean Metric = "queue_mean"

	// QueueP99 is, for each port, the 99th percentile of its queue at the end of each bin that lies
	// wholly within the window: the queue at a random time is longer once in a hundred.
	QueueP99 Metric = "queue_p99"

	// Utilisation is, for each port, [PortRate] as a share of the rate of its link at the start of
	// the run.
	Utilisation Metric = "utilisation"

	// QueueSettling is, for each port, how long after [Measure.Since] its queue comes
	// down to the target for good: the settling time of [RecoveryTime], with "above"
	// for "below".
	QueueSettling Metric = "queue_settling"

	// RateStd is, for each flow, the standard deviation over time of its send rate in the window.
	RateStd Metric = "rate_std"

	// MaxRateSwing is, for each flow, the largest less the smallest send rate in the window.
	MaxRateSwing Metric = "max_rate_swing"

	// RateAfterCNPs is, for each flow, its send rate when its sender had heard so many
	// CNPs or CNMs, as the series has it: the first value if several bins had as many.
	RateAfterCNPs Metric = "rate_after_cnps"

	// Jain is Jain's index of the mean rates of all flows in the window: (sum x)^2 / (n * sum x^2).
	// It is 1 if all are the same, and 1/n if one has all.
	Jain Metric = "jain"

	// SettlingTime is, for each flow, the time after [Measure.Since] from which its rate stays at
	// the target: the mean over every window of length hold from there to the end of the run is
	// within target * (1 +- band). It is not reached if the last window of the run is not.
	SettlingTime Metric = "settling_time"

	// SendRateSettling is [SettlingTime] of send rates.
	SendRateSettling Metric = "send_rate_settling"

	// StalledFlows is how many of the flows received nothing in the bins that lie wholly within the
	// window.
	StalledFlows Metric = "stalled_flows"

	// RecoveryTime is, for each flow, how long after [Measure.Since] its rate comes back to
	// the target for good. It is a settling time: with the mean rate taken over
	// every full window of length hold from there to the end of the run, it is the
	// start of the first bin that is at the target or above and comes after the
	// start of the last window below the target; 0 if no window is below. A
	// noisy bin does not count, an outage that moves the mean of a window does. It
	// is not reached if the last window of the run is below the target.
	RecoveryTime Metric = "recovery_time"

	// CompletionTime is, for each flow with a size, the time from its start until its sender knows
	// that all of it has arrived. It is not reached if that is after the end of the run.
	CompletionTime Metric = "completion_time"

	// FCTMean is the mean [CompletionTime] of all flows together that started in the window and
	// completed before the end of the run; FCTP50 to FCTP999 are percentiles of it.
	FCTMean Metric = "fct_mean"
	FCTP50  Metric = "fct_p50"
	FCTP95  Metric = "fct_p95"
	FCTP99  Metric = "fct_p99"
	FCTP999 Metric = "fct_p999" // the 99.9th

	// SlowdownMean is the mean slowdown of the same flows, a flow's completion time over the one it
	// would have had alone; SlowdownP50 to SlowdownP999 are percentiles of it.
	SlowdownMean Metric = "slowdown_mean"
	SlowdownP50  Metric = "slowdown_p50"
	SlowdownP95  Metric = "slowdown_p95"
	SlowdownP99  Metric = "slowdown_p99"
	SlowdownP999 Metric = "slowdown_p999"

	// JobTime is the time from the first start of the flows until all data of all of them has
	// arrived: of a collective, or of several groups that are a job. It is not reached if some is
	// missing at the end of the run.
	JobTime Metric = "job_time"

	// Completed is the share of all flows that started in the window that completed before the end
	// of the run.
	Completed Metric = "completed"

	// CompletionRate is how many of all flows completed in the window, per second; if all have,
	// until the last of them did.
	CompletionRate Metric = "completion_rate"

	// TierPauseCount is [PauseCount] of all links from the nodes of each tier.
	TierPauseCount Metric = "tier_pause_count"

	// TierPauseFrames is [PauseFrames] of all links from the nodes of each tier.
	TierPauseFrames Metric = "tier_pause_frames"

	// TierPauseTotal is how much of the window PAUSE frames of each tier stopped a port, added up
	// over the ports.
	TierPauseTotal Metric = "tier_pause_total"

	// PauseDepth is how far PAUSE propagated at most: 1 if no node that was stopped in turn stopped
	// another, 2 if one did, and so on; 0 without any PAUSE in the window. A node is taken to pass
	// on what stops any of its other ports in the same class.
	PauseDepth Metric = "pause_depth"

	// LostPackets is the number of packets lost in the whole run: dropped by ports and
	// switches, lost in the kernel between them, or sent again by TCP.
	LostPackets Metric = "lost_packets"

	// BufferDrops is how many packets ports dropped in the whole run because of full buffers: for
	// any reason but WRED.
	BufferDrops Metric = "buffer_drops"

	// WREDDrops is how many packets ports dropped in the whole run because they were not
	// ECN-capable.
	WREDDrops Metric = "wred_drops"

	// Deadlock is 1 if ports came to wait for each other for good, else 0.
	Deadlock Metric = "deadlock"

	// Storms is how many storms PFC's watchdog found in the whole run.
	Storms Metric = "storms"

	// Timeouts is how often TCP's retransmission timer expired in the whole run, of all flows.
	Timeouts Metric = "timeouts"

	// MarkedPackets is, for each flow or burst, how many of its packets had a CE mark when they
	// arrived, in the whole run.
	MarkedPackets Metric = "marked_packets"

	// DetectorMarks is, for each port, how many packets the detector marks, or would, in the bins
	// that lie wholly within the window.
	DetectorMarks Metric = "detector_marks"

	// WrongMarks is the share of all packets that the detector marks, or would, in the whole run
	// and at all switch ports, that it marks where no port is congested, as the rates of all flows
	// say: see [result.State]. 0 if it marks none.
	WrongMarks Metric = "wrong_marks"

	// OffEnd is, for each port, when the last time in the window ends that it is OFF: paused, or
	// with packets and no credits for them; 0 if it never is.
	OffEnd Metric = "off_end"

	// DetectionTime is, for each port, how long after [OffEnd] the first bin ends in which TCD
	// takes it for congested.
	DetectionTime Metric = "detection_time"

	// LatenessP99 is the 99th percentile of how late a port did its work, as a
	// share of the base round trip, in the whole run.
	LatenessP99 Metric = "lateness_p99"
)

// series is the source of a flow's rate in a result.
type series int

const (
	noSeries series = iota
	received        // rates at the receiver
	sent            // send rates at the sender
)

// metricSpec describes a metric: its unit and its arguments.
type metricSpec struct {
	unit                Unit
	links, ports, flows bool   // needs a list of these
	series              series // for flows: where it is measured
	// unit of the target that it needs, with since and hold; empty if it takes none
	target   Unit
	band     bool // needs band
	cnps     bool // needs cnps
	window   bool // takes from and to
	detector bool // needs detector
	priority bool // takes priority
	together bool // has one value for all flows
	sizes    bool // takes sizes
	tiers    bool // takes tiers
	program  bool // needs program
	says     bool // needs says
	json     bool // needs json
}

// EachSeed reports whether each seed must be within the bounds, and not the median: a program that
// fails once in a hundred times is what one looks for.
func (m Metric) EachSeed() bool { return m == ProgramExit || m == ProgramSays }

// ofCompletions describes a metric of completed flows.
func ofCompletions(unit Unit) metricSpec {
	return metricSpec{unit: unit, flows: true, window: true, together: true, sizes: true}
}

var metrics = map[Metric]metricSpec{
	ProgramExit:   {unit: UnitCount, program: true},
	ProgramSays:   {unit: UnitCount, program: true, says: true},
	ProgramJSON:   {unit: UnitCount, program: true, json: true},
	PauseCount:    {unit: UnitCount, links: true, window: true, priority: true},
	PauseFrames:   {unit: UnitCount, links: true, window: true, priority: true},
	PauseSpan:     {unit: UnitTime, links: true, window: true, priority: true},
	PauseEnd:      {unit: UnitTime, links: true, window: true, priority: true},
	PauseTotal:    {unit: UnitTime, links: true, window: true, priority: true},
	PortRate:      {unit: UnitRate, ports: true, window: true},
	QueueMax:      {unit: UnitBytes, ports: true, window: true},
	QueueMean:     {unit: UnitBytes, ports: true, window: true},
	QueueP99:      {unit: UnitBytes, ports: true, window: true},
	QueueMin:      {unit: UnitBytes, ports: true, window: true},
	Utilisation:   {unit: UnitShare, ports: true, window: true},
	QueueSettling: {unit: UnitTime, ports: true, target: UnitBytes},
	MeanRate:      {unit: UnitRate, flows: true, series: received, window: true},
	RateStd:       {unit: UnitRate, flows: true, series: sent, window: true},
	MaxRateSwing:  {unit: UnitRate, flows: true, series: sent, window: true},
	RateAfterCNPs: {unit: UnitRate, flows: true, series: sent, cnps: true},
	Jain: {unit: UnitCount, flows: true, series: received, window: true,
		together: true},
	StalledFlows: {unit: UnitCount, flows: true, series: received, window: true,
		together: true},
	RecoveryTime:     {unit: UnitTime, flows: true, series: received, target: UnitRate},
	SettlingTime:     {unit: UnitTime, flows: true, series: received, target: UnitRate, band: true},
	SendRateSettling: {unit: UnitTime, flows: true, series: sent, target: UnitRate, band: true},
	CompletionTime:   {unit: UnitTime, flows: true},
	FCTMean:          ofCompletions(UnitTime),
	FCTP50:           ofCompletions(UnitTime),
	FCTP95:           ofCompletions(UnitTime),
	FCTP99:           ofCompletions(UnitTime),
	FCTP999:          ofCompletions(UnitTime),
	SlowdownMean:     ofCompletions(UnitCount),
	SlowdownP50:      ofCompletions(UnitCount),
	SlowdownP95:      ofCompletions(UnitCount),
	SlowdownP99:      ofCompletions(UnitCount),
	SlowdownP999:     ofCompletions(UnitCount),
	JobTime:          {unit: UnitTime, flows: true, together: true},
	Completed:        ofCompletions(UnitShare),
	CompletionRate:   ofCompletions(UnitCount),
	TierPauseCount:   {unit: UnitCount, window: true, tiers: true, priority: true},
	TierPauseFrames:  {unit: UnitCount, window: true, tiers: true, priority: true},
	TierPauseTotal:   {unit: UnitTime, window: true, tiers: true, priority: true},
	PauseDepth:       {unit: UnitCount, window: true, priority: true},
	MarkedPackets:    {unit: UnitCount, flows: true},
	DetectorMarks:    {unit: UnitCount, ports: true, window: true, detector: true},
	WrongMarks:       {unit: UnitShare, detector: true},
	OffEnd:           {unit: UnitTime, ports: true, window: true},
	DetectionTime:    {unit: UnitTime, ports: true, window: true},
	LostPackets:      {unit: UnitCount},
	BufferDrops:      {unit: UnitCount},
	WREDDrops:        {unit: UnitCount},
	Deadlock:         {unit: UnitCount},
	Storms:           {unit: UnitCount},
	Timeouts:         {unit: UnitCount},
	LatenessP99:      {unit: UnitShare},
}

// Metrics returns every metric, in alphabetical order.
func Metrics() []Metric {
	return slices.Sorted(maps.Keys(metrics))
}

// Unit returns the unit of the metric.
func (m Metric) Unit() Unit {
	return metrics[m].unit
}

// Takes returns the keys of a [Measure] that the metric takes, in the order of its fields.
func (m Metric) Takes() []string {
	spec := metrics[m]
	var keys []string
	for _, k := range []struct {
		takes bool
		keys  []string
	}{
		{spec.links, []string{"links"}},
		{spec.priority, []string{"priority"}},
		{spec.ports, []string{"ports"}},
		{spec.flows, []string{"flows"}},
		{spec.sizes, []string{"sizes"}},
		{spec.tiers, []string{"tiers"}},
		{spec.window, []string{"from", "to"}},
		{spec.target != "", []string{"since", "target", "hold"}},
		{spec.band, []string{"band"}},
		{spec.cnps, []string{"cnps"}},
		{spec.detector, []string{"detector"}},
	} {
		if k.takes {
			keys = append(keys, k.keys...)
		}
	}
	return keys
}

// Objects returns the flows, ports, tiers or links that are measured. A metric of flows or ports
// may have links too, but only for its "since".
func (m Measure) Objects() []string {
	for _, objects := range [][]string{m.Flows, m.Ports, m.Tiers} {
		if len(objects) > 0 {
			return objects
		}
	}
	return m.Links
}

// Range returns the least and the largest value that the metric can have.
func (m Metric) Range() (least, most float64) {
	switch {
	case strings.HasPrefix(string(m), "slowdown"):
		return 1, math.Inf(1)
	case m == Jain, m == Completed:
		return 0, 1
	}
	return 0, math.Inf(1)
}

// Together reports whether the metric has one value for all its flows, not one for each.
func (m Metric) Together() bool {
	return metrics[m].together
}

// MaxInSeries is the largest number of TCP flows that are all in the series. Of more flows, the
// series has those that [Experiment.ReceivedSeries] and [Experiment.SentSeries] name, and sums.
const MaxInSeries = 64

// ReceivedSeries returns the flows whose individual received rates metrics and figures need. For a
// group that is only drawn or part of a sum, its sum is enough.
func (e *Experiment) ReceivedSeries() map[string]bool {
	needed := e.measured(received)
	for _, name := range slices.Concat(e.Figures.Throughput, e.Figures.SendRate) {
		if len(e.membersOf(name)) == 1 {
			needed[name] = true
		}
	}
	return needed
}

// SentSeries returns the flows whose send rates metrics and figures need.
func (e *Experiment) SentSeries() map[string]bool {
	needed := e.measured(sent)
	for _, name := range e.Figures.SendRate {
		for _, flow := range e.membersOf(name) {
			needed[flow] = true
		}
	}
	return needed
}

// measured returns the flows of the metrics that use a series.
func (e *Experiment) measured(on series) map[string]bool {
	needed := make(map[string]bool)
	add := func(m Measure) {
		if metrics[m.Metric].series != on {
			return
		}
		for _, sum := range m.Flows {
			for _, name := range SumOf(sum) {
				flows := e.membersOf(name)
				if name != sum && on == received && len(flows) > 1 {
					continue
				}
				for _, flow := range flows {
					needed[flow] = true
				}
			}
		}
	}
	for _, x := range e.Expect {
		add(x.Measure)
	}
	for _, c := range e.Compare {
		add(c.Measure)
	}
	for _, m := range e.Metrics {
		add(m.Measure)
	}
	return needed
}

// membersOf returns the flows of a group, or the one flow with this name.
func (e *Experiment) membersOf(name string) []string {
	var flows []string
	for _, f := range e.Flows {
		if f.Group == name || f.Name == name {
			flows = append(flows, f.Name)
		}
	}
	return flows
}

// Since is the moment from which a settling time counts.
type Since string

const (
	// SinceStart is t = 0, the start of the bursts.
	SinceStart Since = "start"
	// SinceBurstEnd is when the receivers got the last packet of the last burst.
	SinceBurstEnd Since = "burst_end"
	// SincePauseEnd is the end of the last PAUSE on any of the links of the [Measure].
	SincePauseEnd Since = "pause_end"
)

func sinces() []Since {
	return []Since{SinceStart, SinceBurstEnd, SincePauseEnd}
}
