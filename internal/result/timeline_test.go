// SPDX-License-Identifier: Apache-2.0

package result

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func pfc(effectNs int64, kind PFCKind, class uint8) PFCEvent {
	return PFCEvent{SentNs: effectNs - 5, EffectNs: effectNs, From: "S1", To: "S0", Class: class,
		Kind: kind}
}

func TestPausedIntervals(t *testing.T) {
	for _, tc := range []struct {
		name   string
		events []PFCEvent
		want   []Interval
	}{
		{"none", nil, nil},
		{"one", []PFCEvent{pfc(10, Pause, 3), pfc(30, Resume, 3)}, []Interval{{10, 30}}},
		{"two", []PFCEvent{pfc(10, Pause, 3), pfc(30, Resume, 3), pfc(40, Pause, 3),
			pfc(50, Resume, 3)}, []Interval{{10, 30}, {40, 50}}},
		{"out of order", []PFCEvent{pfc(30, Resume, 3), pfc(10, Pause, 3)}, []Interval{{10, 30}}},
		{"to the end of the run", []PFCEvent{pfc(10, Pause, 3)}, []Interval{{10, 400}}},
		{"from before the run", []PFCEvent{pfc(-150, Pause, 3), pfc(30, Resume, 3)},
			[]Interval{{-100, 30}}},
		{"after the run", []PFCEvent{pfc(401, Pause, 3), pfc(500, Resume, 3)}, nil},
		{"refreshed", []PFCEvent{pfc(10, Pause, 3), pfc(20, Pause, 3), pfc(30, Resume, 3)},
			[]Interval{{10, 30}}},
		{"resumed twice", []PFCEvent{pfc(10, Pause, 3), pfc(20, Resume, 3), pfc(30, Resume, 3)},
			[]Interval{{10, 20}}},
		{"resumed first", []PFCEvent{pfc(10, Resume, 3), pfc(20, Pause, 3), pfc(30, Resume, 3)},
			[]Interval{{20, 30}}},
		{"two classes", []PFCEvent{pfc(10, Pause, 3), pfc(20, Pause, 4), pfc(30, Resume, 3),
			pfc(40, Resume, 4)}, []Interval{{10, 40}}},
		{"of no length", []PFCEvent{pfc(10, Pause, 3), pfc(10, Resume, 3)}, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := small()
			// another link
			r.PFC = append(tc.events, PFCEvent{EffectNs: 15, From: "S0", To: "S1", Class: 3,
				Kind: Pause})
			qt.Assert(t, qt.DeepEquals(r.PausedIntervals("S1->S0"), tc.want))
		})
	}
}

func TestPauseTimelines(t *testing.T) {
	r := small() // bins of 100 ns from -100 to 400
	r.PFC = []PFCEvent{
		pfc(-60, Pause, 3), pfc(-35, Resume, 3),
		pfc(50, Pause, 3), pfc(225, Resume, 3),
		pfc(275, Pause, 3), pfc(300, Resume, 3),
		pfc(1000, Pause, 3), // after the run
	}
	qt.Assert(t, qt.DeepEquals(r.PausedShare("S1->S0"),
		Timeline{-100, 100, []float64{0.25, 0.5, 1, 0.5, 0}}))
	r.PauseRepeats = []PauseRepeats{
		{TimeNs: -200, From: "S1", To: "S0", Class: 3, Frames: 9},
		{TimeNs: -100, From: "S1", To: "S0", Class: 3, Frames: 1},
		{TimeNs: 0, From: "S1", To: "S0", Class: 3, Frames: 1},
		{TimeNs: 200, From: "S1", To: "S0", Class: 3, Frames: 1},
		{TimeNs: 200, From: "S1", To: "S0", Class: 1, Frames: 2},
		{TimeNs: 300, From: "S1", To: "H0", Class: 3, Frames: 4},
		{TimeNs: 400, From: "S1", To: "S0", Class: 3, Frames: 9},
	}
	// One frame in 100 ns is 10 million a second.
	qt.Assert(t, qt.DeepEquals(r.PauseRate("S1->S0"),
		Timeline{-100, 100, []float64{10e6, 10e6, 0, 30e6, 0}}))
	qt.Assert(t, qt.Equals(r.PauseRate("S0->S1").Max(), 0))
}

func TestFlowRate(t *testing.T) {
	r := small()
	r.Series = []Sample{
		{TimeNs: -100, Kind: KindFlow, Name: "F0", RateBps: 5},
		{TimeNs: 300, Kind: KindFlow, Name: "F0", RateBps: 7},
		{TimeNs: 300, Kind: KindFlow, Name: "F1", RateBps: 10},
		{TimeNs: 300, Kind: KindPort, Name: "F1", RateBps: 99},
	}
	got, err := r.FlowRate("F0+F1")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, Timeline{-100, 100, []float64{5, 0, 0, 0, 17}}))

	r.Flows = []Flow{{Name: "F0", Group: "G"}, {Name: "F1", Group: "G"}}
	got, err = r.FlowRate("G")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got.Values, []float64{5, 0, 0, 0, 17}))

	_, err = r.FlowRate("F0+F2")
	qt.Assert(t, qt.ErrorMatches(err, "series has no flow F2"))
	for _, ns := range []int64{-200, 400, 50} {
		r.Series[0].TimeNs = ns
		_, err = r.FlowRate("F0")
		qt.Assert(t,
			qt.ErrorMatches(err, "series has flow F0 at .* ns, which is not the start of a bin"))
	}
}

func TestSendRate(t *testing.T) {
	r := small()
	r.Series = append(r.Series, Sample{TimeNs: 0, Kind: KindSender, Name: "F3", RateBps: 2})
	got, err := r.SendRate("F2+F3")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, Timeline{-100, 100, []float64{7, 2, 0, 0, 0}}))

	_, err = r.SendRate("S0->S1")
	qt.Assert(t, qt.ErrorMatches(err, "series has no sender S0->S1"))
}

func TestPortTimelines(t *testing.T) {
	r := small()
	r.Series = append(r.Series, Sample{TimeNs: 0, Kind: KindPort, Name: "S0->S1", RateBps: 3,
		QueueBytes: 4, QueueMaxBytes: 5},
		Sample{TimeNs: 300, Kind: KindPort, Name: "S0->S1", QueueBytes: 6})
	got, err := r.QueueMax("S0->S1")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, Timeline{-100, 100, []float64{8, 5, 0, 0, 0}}))

	got, err = r.PortRate("S0->S1")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, Timeline{-100, 100, []float64{6, 3, 0, 0, 0}}))

	got, err = r.QueueEnd("S0->S1")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got, Timeline{-100, 100, []float64{4, 0, 0, 6}}))

	for _, timeline := range []func(string) (Timeline, error){r.QueueMax, r.PortRate, r.QueueEnd} {
		_, err = timeline("F2")
		qt.Assert(t, qt.ErrorMatches(err, "series has no port F2"))
	}
}

func TestBurstEnd(t *testing.T) {
	r := &Run{Flows: []Flow{{Name: "F0", Proto: TCP, EndNs: new(int64(99))}}}
	_, err := r.BurstEndNs()
	qt.Assert(t, qt.ErrorMatches(err, "the run has no burst"))

	r.Flows = append(r.Flows, Flow{Name: "b0", Proto: UDP, EndNs: new(int64(-7))})
	end, err := r.BurstEndNs()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(end, -7))

	r.Flows = append(r.Flows, Flow{Name: "b1", Proto: UDP, EndNs: new(int64(30))},
		Flow{Name: "b2", Proto: UDP, EndNs: new(int64(20))})
	end, err = r.BurstEndNs()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(end, 30))

	r.Flows = append(r.Flows, Flow{Name: "b3", Proto: UDP})
	_, err = r.BurstEndNs()
	qt.Assert(t, qt.ErrorMatches(err, "burst flow b3 did not end during the run"))
}

func TestRecovery(t *testing.T) {
	const never = -1
	for _, tc := range []struct {
		name    string
		values  []float64 // from t = -100, bins of 100, target 18, hold 300
		sinceNs int64
		want    int64
	}{
		{"never below", []float64{20, 20, 20, 20, 20, 20}, 0, 0},
		{"below before the start does not count", []float64{0, 20, 20, 20, 20, 20}, 0, 0},
		{"back after an outage", []float64{20, 20, 0, 0, 20, 20, 20, 20}, 0, 300},
		{"from the start of a bin after the moment", []float64{20, 0, 0, 0, 20, 20, 20}, 150, 150},
		{"one noisy bin of small depth is no outage", []float64{20, 20, 15, 20, 20, 20, 20}, 0, 0},
		{"one lost bin is an outage", []float64{20, 20, 20, 0, 20, 20, 20}, 0, 300},
		{"the last of two outages counts", []float64{20, 0, 20, 20, 20, 0, 20, 20, 20}, 0, 500},
		{"a spike does not make a recovery", []float64{20, 0, 20, 0, 0, 20, 20, 20}, 0, 400},
		{"the mean reaches the target before the bins do", []float64{20, 0, 16, 20, 20, 20}, 0,
			200},
		{"not back", []float64{20, 20, 0, 0, 0, 0}, 0, never},
		{"back for less than hold", []float64{20, 0, 0, 0, 20, 20}, 0, never},
		{"run shorter than hold", []float64{20, 20, 20}, 0, never},
		{"after the run", []float64{20, 20, 20, 20, 20}, 1000, never},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := Timeline{-100, 100, tc.values}.RecoveryNs(18, tc.sinceNs, 300)
			if tc.want == never {
				qt.Assert(t, qt.ErrorIs(err, ErrNotReached))
				return
			}
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, tc.want))
		})
	}
}

func TestConservation(t *testing.T) {
	good := func() *Run {
		r := small()
		r.Ports[0].PauseSent, r.Ports[0].ResumeSent = 1, 0
		r.PFC = []PFCEvent{{From: "S0", To: "S1", Kind: Pause}}
		return r
	}
	for _, tc := range []struct {
		name  string
		spoil func(r *Run)
		want  []string
	}{
		{"adds up", func(r *Run) {}, nil},
		{"packet vanished", func(r *Run) { r.Ports[0].SentPackets-- },
			[]string{"port S0->S1 accepted 36 packets, but sent 7, holds 3 and dropped 25"}},
		{"packet made up", func(r *Run) { r.Ports[0].QueuedPackets++ },
			[]string{"port S0->S1 accepted 36 packets, but sent 8, holds 4 and dropped 25"}},
		{"refused packets were not taken in",
			func(r *Run) { r.Ports[0].DroppedBufferPackets += 100 }, nil},
		{"too many bytes", func(r *Run) { r.Ports[0].SentBytes = 15_001 },
			[]string{"port S0->S1 sent 15001 bytes, but accepted 15000"}},
		{"all packets, not all bytes", func(r *Run) {
			r.Ports[0].SentPackets, r.Ports[0].QueuedPackets, r.Ports[0].DroppedResetPackets = 15,
				0, 0
			r.Ports[0].EnqueuedPackets, r.Ports[0].DroppedWREDPackets,
				r.Ports[0].DroppedTailPackets = 15, 0, 0
		}, []string{"port S0->S1 sent all packets, but only 8000 of 15000 bytes"}},
		{"event lost", func(r *Run) { r.PFC = nil },
			[]string{"port S0->S1 sent 1 pause frames, but the log has 0"}},
		{"out of turn", func(r *Run) {
			r.Ports[0].PauseSent = 2
			r.PFC = append(r.PFC, PFCEvent{From: "S0", To: "S1", Kind: Pause, Class: 1},
				PFCEvent{From: "S0", To: "S1", Kind: Resume, Class: 2, SentNs: 5})
			r.Ports[0].ResumeSent = 1
		}, []string{"port S0->S1 sent two resume frames in a row for class 2, the second at 5 ns"}},
		{"event made up", func(r *Run) {
			r.PFC = append(r.PFC, PFCEvent{From: "S0", To: "S1",
				Kind: Resume})
		}, []string{"port S0->S1 sent 0 resume frames, but the log has 1"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			r := good()
			tc.spoil(r)
			qt.Assert(t, qt.DeepEquals(r.Conservation(), tc.want))
		})
	}
}

// Every packet dropped was either refused or taken in and lost.
func TestDroppedPackets(t *testing.T) {
	p := Port{DroppedBufferPackets: 1, DroppedRingPackets: 20, DroppedNoClassPackets: 300,
		DroppedResetPackets: 4000, DroppedWREDPackets: 50000, DroppedTailPackets: 600000}
	qt.Assert(t, qt.Equals(p.RefusedPackets(), 321))
	qt.Assert(t, qt.Equals(p.DroppedPackets(), 654321))
}
