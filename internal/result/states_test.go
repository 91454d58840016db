// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// detected is a run with bins of 100 us: P is congested in the third and fourth, and Q never.
func detected(t *testing.T) *result.Run {
	t.Helper()
	r := resulttest.Fig2(load(t), "pfc")
	const bin = 100_000
	r.States = []result.State{
		{TimeNs: 0, Port: "P", TCD: result.NonCongestion, SentPackets: 10, ECNPackets: 1},
		{TimeNs: bin, Port: "P", TCD: result.Undetermined, OffNs: 40, SentPackets: 10,
			ECNPackets: 2, NPECNPackets: 9, TCDUEPackets: 10},
		{TimeNs: 2 * bin, Port: "P", TCD: result.Undetermined, OffNs: 1, SentPackets: 10,
			ECNPackets: 4, NPECNPackets: 10, TCDUEPackets: 10, Congested: true},
		{TimeNs: 3 * bin, Port: "P", TCD: result.Undetermined, SentPackets: 10, ECNPackets: 8,
			NPECNPackets: 10, Congested: true},
		{TimeNs: 4 * bin, Port: "P", TCD: result.Congestion, SentPackets: 10, ECNPackets: 16,
			TCDCEPackets: 5},
		{TimeNs: 5 * bin, Port: "P", TCD: result.Congestion, SentPackets: 10, ECNPackets: 32,
			TCDCEPackets: 6},
		{TimeNs: 5 * bin, Port: "Q", TCD: result.NonCongestion, SentPackets: 10, NPECNPackets: 10,
			FECNPackets: 3},
	}
	return r
}

func TestWrongMarks(t *testing.T) {
	for _, test := range []struct {
		detector   experiment.Detector
		wrong, all uint64
	}{
		{experiment.DetectECN, 1 + 2 + 32, 63}, // a bin after congestion is right still
		{experiment.DetectTCD, 6, 11},
		{experiment.DetectNPECN, 9 + 10, 39},
		{experiment.DetectPCN, 10, 30}, // 9 of 10 are not over 95%
		{experiment.DetectFECN, 3, 3},
		{experiment.DetectUE, 0, 20},
	} {
		t.Run(string(test.detector), func(t *testing.T) {
			r := detected(t)
			wrong, all, err := r.WrongMarks(test.detector)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(wrong, test.wrong))
			qt.Check(t, qt.Equals(all, test.all))
		})
	}
	_, _, err := resulttest.Fig2(load(t), "pfc").WrongMarks(experiment.DetectTCD)
	qt.Check(t, qt.ErrorMatches(err, "the run's switches had no detectors"))
}

func TestMetricsOfStates(t *testing.T) {
	r := detected(t)
	for _, test := range []struct {
		m    experiment.Measure
		want float64
	}{
		{experiment.Measure{Metric: experiment.OffEnd}, 300_000},
		{experiment.Measure{Metric: experiment.OffEnd, To: 200_000}, 200_000},
		{experiment.Measure{Metric: experiment.DetectionTime}, 200_000}, // of the fifth bin's end
		{experiment.Measure{Metric: experiment.DetectorMarks, Detector: experiment.DetectECN,
			From: 100_000, To: 350_000}, 2 + 4},
		{experiment.Measure{Metric: experiment.DetectorMarks, Detector: experiment.DetectUE}, 20},
	} {
		test.m.Ports = []string{"P"}
		values, err := r.Measure(test.m)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(values[0].Value, test.want), qt.Commentf("%s", test.m.Metric))
	}
	_, err := r.Measure(experiment.Measure{Metric: experiment.DetectionTime, Ports: []string{"Q"}})
	qt.Check(t, qt.ErrorMatches(err, "Q: port Q was never OFF"))
	_, err = r.Measure(experiment.Measure{Metric: experiment.MarkedPackets, Flows: []string{"F9"}})
	qt.Check(t, qt.ErrorMatches(err, "F9: the run has no flow F9"))
}

// States are written and read; a folder of a run without detectors has none, also if an earlier run
// left some.
func TestStatesAreKept(t *testing.T) {
	dir := t.TempDir()
	r := detected(t)
	qt.Assert(t, qt.IsNil(r.Write(dir)))
	back, err := result.Read(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(back.States, r.States))
	qt.Assert(t, qt.IsNil(resulttest.Fig2(load(t), "pfc").Write(dir)))
	back, err = result.Read(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(back.States, 0))
}
