// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"maps"
	"slices"
)

// Metric names a number that is measured on a run. Times are in the paper's time
// with t = 0 at the start of the bursts; "the window" is [from, to) of the [Expect],
// by default from t = 0 to the end of the run. A link is the direction in which
// PAUSE frames travel, as in PCN, Fig. 2: S1->S0 is S1 telling S0 to stop. A rate is
// what the receiver got, in Ethernet frames without FCS, per bin of the series.
type Metric string

const (
	// PauseCount is the number of PAUSE frames sent on each link in the window.
	PauseCount Metric = "pause_count"

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

	// RecoveryTime is, for each flow, how long after [Expect.Since] its rate comes back to
	// the target for good. It is a settling time: with the mean rate taken over
	// every full window of length hold from there to the end of the run, it is the
	// start of the first bin that is at the target or above and comes after the
	// start of the last window below the target; 0 if no window is below. A
	// noisy bin does not count, an outage that moves the mean of a window does. It
	// is not reached if the last window of the run is below the target.
	RecoveryTime Metric = "recovery_time"

	// LostPackets is the number of packets lost in the whole run: dropped by ports and
	// switches, lost in the kernel between them, or sent again by TCP.
	LostPackets Metric = "lost_packets"

	// LatenessP99 is the 99th percentile of how late a port did its work, as a
	// share of the base round trip, in the whole run.
	LatenessP99 Metric = "lateness_p99"
)

// metricSpec is what a metric measures and needs to know.
type metricSpec struct {
	unit         Unit
	links, flows bool // needs a list of them
	target       bool // needs target, takes since and hold
	window       bool // takes from and to
}

var metrics = map[Metric]metricSpec{
	PauseCount:   {unit: UnitCount, links: true, window: true},
	PauseSpan:    {unit: UnitTime, links: true, window: true},
	PauseEnd:     {unit: UnitTime, links: true, window: true},
	MeanRate:     {unit: UnitRate, flows: true, window: true},
	RecoveryTime: {unit: UnitTime, flows: true, target: true},
	LostPackets:  {unit: UnitCount},
	LatenessP99:  {unit: UnitShare},
}

// Metrics returns every metric, in alphabetical order.
func Metrics() []Metric {
	return slices.Sorted(maps.Keys(metrics))
}

// Unit returns what the metric is measured in.
func (m Metric) Unit() Unit {
	return metrics[m].unit
}

// Since is the moment from which a [RecoveryTime] is counted.
type Since string

const (
	// SinceStart is t = 0, the start of the bursts.
	SinceStart Since = "start"
	// SinceBurstEnd is when the receivers got the last packet of the last burst.
	SinceBurstEnd Since = "burst_end"
	// SincePauseEnd is the end of the last PAUSE on any of the links of the [Expect].
	SincePauseEnd Since = "pause_end"
)

func sinces() []Since {
	return []Since{SinceStart, SinceBurstEnd, SincePauseEnd}
}
