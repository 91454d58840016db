// SPDX-License-Identifier: Apache-2.0

package result

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// handMade returns a run of bins of 100 ns from -100 to 700, with two flows, their
// senders, a port and PAUSE frames, and a burst that ends at 250.
func handMade() *Run {
	r := &Run{Manifest: Manifest{Scheme: "pcn", WarmupNs: 100, DurationNs: 700, SampleNs: 100,
		BaseRTTNs: 200, LatenessP99Ns: 10}}
	for i := range int64(8) {
		at := 100 * (i - 1)
		r.Series = append(r.Series,
			Sample{TimeNs: at, Kind: KindFlow, Name: "F0",
				RateBps: []uint64{20, 20, 4, 8, 22, 18, 21, 19}[i]},
			Sample{TimeNs: at, Kind: KindFlow, Name: "F1",
				RateBps: []uint64{20, 20, 6, 2, 8, 12, 19, 21}[i]},
			Sample{TimeNs: at, Kind: KindSender, Name: "F0",
				RateBps: []uint64{90, 40, 10, 30, 22, 20, 20, 18}[i]},
			Sample{TimeNs: at, Kind: KindSender, Name: "F1",
				RateBps: []uint64{0, 0, 0, 0, 20, 20, 20, 20}[i]},
			Sample{TimeNs: at, Kind: KindPort, Name: "P",
				RateBps:       []uint64{1, 40, 10, 10, 30, 30, 40, 40}[i],
				QueueBytes:    []uint64{900, 0, 100, 300, 200, 40, 0, 0}[i],
				QueueMaxBytes: []uint64{990, 150, 400, 350, 210, 60, 50, 0}[i]},
		)
	}
	frame := func(effectNs int64, kind PFCKind) PFCEvent {
		return PFCEvent{SentNs: effectNs - 10, EffectNs: effectNs, From: "S1", To: "S0", Kind: kind}
	}
	r.PFC = []PFCEvent{frame(-50, Pause), frame(20, Resume), frame(110, Pause), frame(160, Resume),
		frame(310, Pause), frame(330, Resume)}
	r.Flows = []Flow{
		{Name: "F0", Group: "G", Proto: TCP, Retransmissions: 1, Timeouts: 2, CompletionNs: 90},
		{Name: "F1", Group: "G", Proto: TCP, Timeouts: 3, CompletionNs: 80},
		{Name: "F2", Proto: TCP, StartNs: 100},
		{Name: "B", Proto: UDP, EndNs: new(int64(250))},
	}
	r.Ports = []Port{{Name: "P", RateBps: 40, DroppedRingPackets: 2, DroppedBufferPackets: 3,
		DroppedWREDPackets: 7}, {Name: "Q", DroppedTailPackets: 11}}
	r.Manifest.LostPackets = map[string]uint64{"tcp retransmissions": 1}
	return r
}

func TestMetrics(t *testing.T) {
	link, port, f0, both, each := []string{"S1->S0"}, []string{"P"}, []string{"F0"},
		[]string{"F0+F1"}, []string{"F0", "F1"}
	target := func(value float64) *experiment.Quantity { return &experiment.Quantity{Value: value} }
	for _, tc := range []struct {
		name string
		m    experiment.Measure
		want []float64
	}{
		{"frames after t = 0", experiment.Measure{Metric: experiment.PauseCount, Links: link},
			[]float64{2}},
		{"frames of the warm-up too", experiment.Measure{Metric: experiment.PauseCount, Links: link,
			From: -100}, []float64{3}},
		{"a frame is of when it is sent", experiment.Measure{Metric: experiment.PauseCount,
			Links: link, From: 100, To: 300}, []float64{1}},
		{"a window ends before To", experiment.Measure{Metric: experiment.PauseCount, Links: link,
			From: 0, To: 100}, []float64{0}},
		{"first to last pause", experiment.Measure{Metric: experiment.PauseSpan, Links: link},
			[]float64{330}},
		{"first to last pause, cut off", experiment.Measure{Metric: experiment.PauseSpan,
			Links: link, From: 120, To: 320}, []float64{200}},
		{"end of the last pause", experiment.Measure{Metric: experiment.PauseEnd, Links: link,
			To: 300}, []float64{160}},
		{"never paused", experiment.Measure{Metric: experiment.PauseEnd, Links: link, From: 400},
			[]float64{0}},
		{"time paused", experiment.Measure{Metric: experiment.PauseTotal, Links: link},
			[]float64{20 + 50 + 20}},
		{"time paused, cut off", experiment.Measure{Metric: experiment.PauseTotal, Links: link,
			From: -60, To: 150}, []float64{70 + 40}},
		{"frames of a priority", experiment.Measure{Metric: experiment.PauseCount, Links: link,
			Priority: new(3)}, []float64{2}},
		{"frames of another priority", experiment.Measure{Metric: experiment.PauseCount,
			Links: link, Priority: new(0)}, []float64{0}},
		{"time paused of a priority", experiment.Measure{Metric: experiment.PauseTotal, Links: link,
			Priority: new(3)}, []float64{20 + 50 + 20}},
		{"time paused of another priority", experiment.Measure{Metric: experiment.PauseTotal,
			Links: link, Priority: new(2)}, []float64{0}},
		{"first to last pause of another priority", experiment.Measure{Metric: experiment.PauseSpan,
			Links: link, Priority: new(0)}, []float64{0}},
		{"end of the last pause of a priority", experiment.Measure{Metric: experiment.PauseEnd,
			Links: link, Priority: new(3), To: 300}, []float64{160}},
		{"end of the last pause of another priority",
			experiment.Measure{Metric: experiment.PauseEnd, Links: link, Priority: new(1), To: 300},
			[]float64{0}},
		{"time paused of another link", experiment.Measure{Metric: experiment.PauseTotal,
			Links: []string{"S0->S1"}}, []float64{0}},

		{"mean rates", experiment.Measure{Metric: experiment.MeanRate, Flows: each, From: 200,
			To: 400}, []float64{15, 5}},
		{"mean of a sum", experiment.Measure{Metric: experiment.MeanRate, Flows: both, From: 200,
			To: 400}, []float64{20}},
		{"whole bins only", experiment.Measure{Metric: experiment.MeanRate, Flows: f0, From: 150,
			To: 499}, []float64{15}},
		{"port rate", experiment.Measure{Metric: experiment.PortRate, Ports: port, From: 100,
			To: 400}, []float64{50. / 3}},

		{"utilisation", experiment.Measure{Metric: experiment.Utilisation, Ports: port, From: 100,
			To: 400}, []float64{50. / 3 / 40}},
		{"99th percentile of the queue, at the ends of bins",
			experiment.Measure{Metric: experiment.QueueP99, Ports: port, From: 200},
			[]float64{200}},
		{"longest queue after t = 0", experiment.Measure{Metric: experiment.QueueMax, Ports: port},
			[]float64{400}},
		{"longest queue, whole bins only", experiment.Measure{Metric: experiment.QueueMax,
			Ports: port, From: 101, To: 301}, []float64{350}},
		{"shortest queue, at the ends of bins", experiment.Measure{Metric: experiment.QueueMin,
			Ports: port, From: 0, To: 300}, []float64{100}},
		{"mean queue, at the ends of bins", experiment.Measure{Metric: experiment.QueueMean,
			Ports: port, From: 0, To: 300}, []float64{200}},
		{"mean queue to the end of the run", experiment.Measure{Metric: experiment.QueueMean,
			Ports: port, From: 300}, []float64{40. / 3}},

		{"standard deviation of a constant", experiment.Measure{Metric: experiment.RateStd,
			Flows: []string{"F1"}, From: 300}, []float64{0}},
		{"standard deviation", experiment.Measure{Metric: experiment.RateStd, Flows: f0, From: 100,
			To: 300}, []float64{10}},
		{"standard deviation of a sum", experiment.Measure{Metric: experiment.RateStd, Flows: both,
			From: 200, To: 400}, []float64{6}},
		{"swing", experiment.Measure{Metric: experiment.MaxRateSwing, Flows: f0}, []float64{30}},
		{"swing in a window", experiment.Measure{Metric: experiment.MaxRateSwing, Flows: each,
			From: 400, To: 700}, []float64{2, 0}},

		{"each flow of a group", experiment.Measure{Metric: experiment.MeanRate,
			Flows: []string{"G", "F0"}, From: 200, To: 400}, []float64{15, 5, 15}},
		{"a group within a sum", experiment.Measure{Metric: experiment.MeanRate,
			Flows: []string{"G+F0"}, From: 200, To: 400}, []float64{35}},
		{"fair", experiment.Measure{Metric: experiment.Jain, Flows: each, To: 200},
			[]float64{625. / 626}},
		{"unfair in a group", experiment.Measure{Metric: experiment.Jain, Flows: []string{"G"},
			From: 200, To: 300}, []float64{100. / (2 * 68)}},
		{"unfair", experiment.Measure{Metric: experiment.Jain, Flows: each, From: 200, To: 300},
			[]float64{100. / (2 * 68)}},
		{"two flows as one", experiment.Measure{Metric: experiment.Jain, Flows: both, To: 200},
			[]float64{1}},

		{"recovery", experiment.Measure{Metric: experiment.RecoveryTime, Flows: f0,
			Target: target(18), Hold: 100}, []float64{300}},
		{"recovery from the burst on", experiment.Measure{Metric: experiment.RecoveryTime,
			Flows: both, Target: target(40), Hold: 200, Since: experiment.SinceBurstEnd},
			[]float64{250}},
		{"recovery from the last PAUSE on", experiment.Measure{Metric: experiment.RecoveryTime,
			Flows: both, Target: target(30), Hold: 100, Since: experiment.SincePauseEnd,
			Links: link}, []float64{0}},

		// The sum is 40 10 10 30 30 40 40 from t = 0 on.
		{"settled at the first bin within the band",
			experiment.Measure{Metric: experiment.SettlingTime, Flows: both, Target: target(40),
				Band: 0.1, Hold: 100}, []float64{500}},
		{"settled at the edge of the band", experiment.Measure{Metric: experiment.SettlingTime,
			Flows: both, Target: target(40), Band: 0.25, Hold: 100}, []float64{300}},
		{"a wider window reaches the band earlier",
			experiment.Measure{Metric: experiment.SettlingTime, Flows: both, Target: target(40),
				Band: 0.125, Hold: 200}, []float64{400}},
		{"above the band is out of it", experiment.Measure{Metric: experiment.SettlingTime,
			Flows: f0, Target: target(20), Band: 0.05, Hold: 100}, []float64{500}},
		{"settled from the start", experiment.Measure{Metric: experiment.SettlingTime, Flows: both,
			Target: target(40), Band: 0.8, Hold: 100}, []float64{0}},
		{"settled since a moment within a bin",
			experiment.Measure{Metric: experiment.SettlingTime, Flows: both, Target: target(40),
				Band: 0.1, Hold: 100, Since: experiment.SinceBurstEnd}, []float64{250}},
		{"settled before that", experiment.Measure{Metric: experiment.SettlingTime, Flows: both,
			Target: target(35), Band: 0.15, Hold: 100, Since: experiment.SinceBurstEnd},
			[]float64{0}},
		// The senders' is 40 10 30 22 20 20 18 for F0.
		{"sending rate settled", experiment.Measure{Metric: experiment.SendRateSettling, Flows: f0,
			Target: target(20), Band: 0.1, Hold: 100}, []float64{300}},
		{"sending rate settled on average", experiment.Measure{Metric: experiment.SendRateSettling,
			Flows: f0, Target: target(20), Band: 0.05, Hold: 200}, []float64{300}},
		{"sending rates settled, one by one",
			experiment.Measure{Metric: experiment.SendRateSettling, Flows: each, Target: target(20),
				Band: 0.3, Hold: 100}, []float64{300, 300}},

		// The queue is 100 300 200 40 0 0 at the ends of the bins from t = 0 on.
		{"queue drained", experiment.Measure{Metric: experiment.QueueSettling, Ports: port,
			Target: target(39), Hold: 100}, []float64{400}},
		{"queue at the target", experiment.Measure{Metric: experiment.QueueSettling, Ports: port,
			Target: target(40), Hold: 100}, []float64{300}},
		{"queue drained after the burst", experiment.Measure{Metric: experiment.QueueSettling,
			Ports: port, Target: target(39), Hold: 100, Since: experiment.SinceBurstEnd},
			[]float64{150}},
		{"queue drained before that", experiment.Measure{Metric: experiment.QueueSettling,
			Ports: port, Target: target(40), Hold: 100, Since: experiment.SinceBurstEnd},
			[]float64{0}},
		{"the mean is at the target before the queue is",
			experiment.Measure{Metric: experiment.QueueSettling, Ports: port, Target: target(90),
				Hold: 300}, []float64{300}},
		{"queue that never was", experiment.Measure{Metric: experiment.QueueSettling, Ports: port,
			Target: target(300), Hold: 100}, []float64{0}},

		{"lost", experiment.Measure{Metric: experiment.LostPackets}, []float64{24}},
		{"dropped by full buffers", experiment.Measure{Metric: experiment.BufferDrops},
			[]float64{16}},
		{"dropped by WRED", experiment.Measure{Metric: experiment.WREDDrops}, []float64{7}},
		{"timeouts", experiment.Measure{Metric: experiment.Timeouts}, []float64{5}},
		{"completion of each", experiment.Measure{Metric: experiment.CompletionTime,
			Flows: []string{"G", "F1"}}, []float64{90, 80, 80}},
		{"late", experiment.Measure{Metric: experiment.LatenessP99}, []float64{0.05}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			values, err := handMade().Measure(tc.m)
			qt.Assert(t, qt.IsNil(err))
			var got []float64
			for _, v := range values {
				got = append(got, v.Value)
				qt.Check(t, qt.Equals(v.Unit, tc.m.Metric.Unit()))
			}
			qt.Assert(t, qt.DeepEquals(got, tc.want))
		})
	}
}

func TestNotReached(t *testing.T) {
	target := &experiment.Quantity{Value: 20}
	for _, tc := range []struct {
		name string
		m    experiment.Measure
		want string
	}{
		{"rate", experiment.Measure{Metric: experiment.RecoveryTime, Flows: []string{"F0"},
			Target: target, Hold: 100}, "F0: not reached within the remaining 700ns of the run"},
		{"band", experiment.Measure{Metric: experiment.SettlingTime, Flows: []string{"F0"},
			Target: target, Band: 0.01, Hold: 100, Since: experiment.SinceBurstEnd},
			"F0: not reached within the remaining 450ns of the run"},
		{"run shorter than hold", experiment.Measure{Metric: experiment.SettlingTime,
			Flows: []string{"F0"}, Target: target, Band: 1, Hold: 800},
			"F0: not reached within the remaining 700ns of the run"},
		{"completion", experiment.Measure{Metric: experiment.CompletionTime,
			Flows: []string{"F0", "F2"}}, "F2: not reached within the remaining 600ns of the run"},
		{"sending rate", experiment.Measure{Metric: experiment.SendRateSettling,
			Flows: []string{"F0"}, Target: target, Band: 0.01, Hold: 100},
			"F0: not reached within the remaining 700ns of the run"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := handMade().Measure(tc.m)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
			qt.Assert(t, qt.ErrorIs(err, ErrNotReached))
		})
	}
	r := handMade()
	r.Series[len(r.Series)-1].QueueBytes = 70 // the last that is known
	_, err := r.Measure(experiment.Measure{Metric: experiment.QueueSettling, Ports: []string{"P"},
		Target: &experiment.Quantity{Value: 60}, Hold: 100})
	qt.Assert(t, qt.ErrorMatches(err, "P: not reached within the remaining 700ns of the run"))
}

func TestPercentile(t *testing.T) {
	var values []float64
	for i := range 100 {
		values = append(values, float64((i*37+10)%100+1)) // 1 to 100, mixed
	}
	for _, tc := range []struct {
		share  float64
		values []float64
		want   float64
	}{
		{0.5, values, 50},
		{0.99, values, 99},
		{0.99, append(values, 101), 100},
		{0.99, values[:1], values[0]},
		{0.5, []float64{3, 1}, 1},
		{0.99, []float64{3, 1}, 3},
	} {
		qt.Check(t, qt.Equals(percentile(tc.values, tc.share), tc.want),
			qt.Commentf("%g of %d", tc.share, len(tc.values)))
	}
	qt.Check(t, qt.Equals(values[0], 11)) // the order is left alone
}

func TestFairnessOfNothing(t *testing.T) {
	r := handMade()
	r.Series = []Sample{{Kind: KindFlow, Name: "F0"}}
	_, err := r.Measure(experiment.Measure{Metric: experiment.Jain, Flows: []string{"F0"}})
	qt.Assert(t, qt.ErrorMatches(err, "no flow received anything in the window"))
}

func TestRateAfterCNPs(t *testing.T) {
	r := small()
	r.Series = []Sample{
		{TimeNs: 0, Kind: KindFlow, Name: "F0", RateBps: 1, CNPs: 2},
		{TimeNs: 0, Kind: KindSender, Name: "F1", RateBps: 2, CNPs: 2},
		{TimeNs: 0, Kind: KindSender, Name: "F0", RateBps: 3, CNPs: 1},
		{TimeNs: 100, Kind: KindSender, Name: "F0", RateBps: 4, CNPs: 2},
		{TimeNs: 200, Kind: KindSender, Name: "F0", RateBps: 5, CNPs: 2},
	}
	rate := func(cnps uint) (float64, error) {
		q, err := r.Measure(experiment.Measure{Metric: experiment.RateAfterCNPs,
			Flows: []string{"F0"}, CNPs: cnps})
		if err != nil {
			return 0, err
		}
		return q[0].Value, nil
	}
	got, err := rate(2)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(got, 4))
	_, err = rate(3)
	qt.Check(t, qt.ErrorMatches(err, "F0: no bin of the series ends with exactly 3 CNPs received"))
}

func TestNewLateness(t *testing.T) {
	qt.Check(t, qt.Equals(NewLateness(nil), Lateness{}))
	qt.Check(t, qt.Equals(NewLateness([]int64{7}), Lateness{1, 7, 7, 7}))
	var ns []int64
	for i := range int64(200) {
		ns = append(ns, 200-i)
	}
	qt.Check(t, qt.Equals(NewLateness(ns), Lateness{200, 100, 198, 200}))
}
