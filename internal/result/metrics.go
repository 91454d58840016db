// SPDX-License-Identifier: Apache-2.0

package result

import (
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// measureFunc returns the values of a metric in a window. In m, groups of flows are replaced by
// their members.
type measureFunc func(
	r *Run, m experiment.Measure, window Interval,
) ([]experiment.Quantity, error)

// measures has the function of every metric.
var measures = map[experiment.Metric]measureFunc{
	experiment.ProgramExit: programExit,
	experiment.ProgramSays: programSays,
	experiment.ProgramJSON: programJSON,

	experiment.PauseCount:  eachLink((*Run).pauseCount),
	experiment.PauseFrames: eachLink((*Run).pauseFrames),
	experiment.PauseSpan:   eachLink((*Run).pauseSpan),
	experiment.PauseEnd:    eachLink((*Run).pauseEnd),
	experiment.PauseTotal:  eachLink((*Run).pauseTotal),

	experiment.TierPauseCount:  eachTier((*Run).pausesSent),
	experiment.TierPauseFrames: eachTier((*Run).framesSent),
	experiment.TierPauseTotal:  eachTier((*Run).pausedTotal),
	experiment.PauseDepth:      single((*Run).pauseDepth),

	experiment.MeanRate:      eachFlowSeries(KindFlow, mean),
	experiment.RateStd:       eachFlowSeries(KindSender, standardDeviation),
	experiment.MaxRateSwing:  eachFlowSeries(KindSender, swing),
	experiment.RateAfterCNPs: eachFlow((*Run).rateAfterCNPs),
	experiment.Jain:          single((*Run).jain),
	experiment.StalledFlows:  single((*Run).stalledFlows),

	experiment.PortRate:    eachPortSeries((*Run).PortRate, mean),
	experiment.QueueMax:    eachPortSeries((*Run).QueueMax, slices.Max[[]float64]),
	experiment.QueueMin:    eachPortSeries((*Run).QueueEnd, slices.Min[[]float64]),
	experiment.QueueMean:   eachPortSeries((*Run).QueueEnd, mean),
	experiment.QueueP99:    eachPortSeries((*Run).QueueEnd, p99),
	experiment.Utilisation: eachPort((*Run).utilisation),

	experiment.RecoveryTime:     eachFlowTime(KindFlow, recoverRate),
	experiment.SettlingTime:     eachFlowTime(KindFlow, settleRate),
	experiment.SendRateSettling: eachFlowTime(KindSender, settleRate),
	experiment.QueueSettling:    eachQueueTime(drainQueue),

	experiment.CompletionTime: eachFlow((*Run).completion),
	experiment.JobTime:        single((*Run).jobTime),
	experiment.FCTMean:        single((*Run).completionMetric),
	experiment.FCTP50:         single((*Run).completionMetric),
	experiment.FCTP95:         single((*Run).completionMetric),
	experiment.FCTP99:         single((*Run).completionMetric),
	experiment.FCTP999:        single((*Run).completionMetric),
	experiment.SlowdownMean:   single((*Run).completionMetric),
	experiment.SlowdownP50:    single((*Run).completionMetric),
	experiment.SlowdownP95:    single((*Run).completionMetric),
	experiment.SlowdownP99:    single((*Run).completionMetric),
	experiment.SlowdownP999:   single((*Run).completionMetric),
	experiment.Completed:      single((*Run).completionMetric),
	experiment.CompletionRate: single((*Run).completionMetric),

	experiment.MarkedPackets: eachFlow((*Run).markedPackets),
	experiment.DetectorMarks: eachPort((*Run).detectorMarks),
	experiment.WrongMarks:    single((*Run).wrongMarks),
	experiment.OffEnd:        eachPort((*Run).offEndMetric),
	experiment.DetectionTime: eachPort((*Run).detectionTime),

	experiment.LostPackets: single((*Run).lostPackets),
	experiment.BufferDrops: sumOfPorts(bufferDrops),
	experiment.WREDDrops:   sumOfPorts(func(p Port) uint64 { return p.DroppedWREDPackets }),
	experiment.Deadlock:    single((*Run).deadlocks),
	experiment.Storms:      single((*Run).storms),
	experiment.Timeouts:    single((*Run).timeouts),
	experiment.LatenessP99: single((*Run).latenessShare),
}

// single is a metric with one value for the run.
func single(value func(r *Run, m experiment.Measure, window Interval) (float64,
	error)) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		v, err := value(r, m, window)
		if err != nil {
			return nil, err
		}
		return []experiment.Quantity{{Value: v, Unit: m.Metric.Unit()}}, nil
	}
}

// eachLink is a metric of the PAUSE frames on each link; a nil priority means all priorities.
func eachLink(
	value func(r *Run, link string, priority *int, window Interval) float64,
) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		return each(m.Links, m.Metric.Unit(), func(link string) (float64, error) {
			return value(r, link, m.Priority, window), nil
		})
	}
}

func eachFlow(value func(r *Run, m experiment.Measure, flow string) (float64, error)) measureFunc {
	return func(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
		return each(m.Flows, m.Metric.Unit(), func(flow string) (float64, error) {
			return value(r, m, flow)
		})
	}
}

func eachPort(
	value func(r *Run, m experiment.Measure, port string, window Interval) (float64, error),
) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		return each(m.Ports, m.Metric.Unit(), func(port string) (float64, error) {
			return value(r, m, port, window)
		})
	}
}

// eachFlowSeries reduces the rate of each flow in the window to one value.
func eachFlowSeries(kind Kind, reduce func([]float64) float64) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		return each(m.Flows, m.Metric.Unit(), over(window, r.ratesOf(kind), reduce))
	}
}

// eachPortSeries reduces a timeline of each port in the window to one value.
func eachPortSeries(
	timeline func(r *Run, port string) (Timeline, error), reduce func([]float64) float64,
) measureFunc {
	return func(r *Run, m experiment.Measure, window Interval) ([]experiment.Quantity, error) {
		of := func(port string) (Timeline, error) { return timeline(r, port) }
		return each(m.Ports, m.Metric.Unit(), over(window, of, reduce))
	}
}

// reachFunc returns the time in ns from sinceNs until the timeline reaches the metric's target.
type reachFunc func(m experiment.Measure, t Timeline, sinceNs int64) (int64, error)

func eachFlowTime(kind Kind, reach reachFunc) measureFunc {
	return func(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
		return each(m.Flows, m.Metric.Unit(), r.since(m, r.ratesOf(kind), reach))
	}
}

func eachQueueTime(reach reachFunc) measureFunc {
	return func(r *Run, m experiment.Measure, _ Interval) ([]experiment.Quantity, error) {
		return each(m.Ports, m.Metric.Unit(), r.since(m, r.QueueEnd, reach))
	}
}

func sumOfPorts(count func(Port) uint64) measureFunc {
	return single(func(r *Run, _ experiment.Measure, _ Interval) (float64, error) {
		var n uint64
		for _, p := range r.Ports {
			n += count(p)
		}
		return float64(n), nil
	})
}
