// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	none = markTcdVerdictTCD_MARK_NONE
	ue   = markTcdVerdictTCD_MARK_UE
	ce   = markTcdVerdictTCD_MARK_CE
)

// notified runs packets of one flow with this mark that arrive at these times, and returns when a CNP was sent. Each says
// what its packet did.
func notified(t testing.TB, m *markers, mark markTcdVerdict, intervalNs uint64, timesNs ...uint64) (sent []uint64) {
	t.Helper()

	steps := make([]markNotifyStep, len(timesNs))
	for i, ns := range timesNs {
		steps[i] = markNotifyStep{NowNs: ns, Mark: mark}
	}
	m.notify(t, intervalNs, steps)
	for _, step := range steps {
		if step.Cnp != none {
			qt.Assert(t, qt.Equals(step.Cnp, mark))
			sent = append(sent, step.NowNs)
		}
	}
	return sent
}

// Packets marked CE, and with TCD packets marked UE if there are none of the others.
func TestDCQCNNotify(t *testing.T) {
	m := loadMarkers(t)

	for _, test := range []struct {
		name       string
		intervalNs uint64
		timesNs    []uint64
		want       []uint64
	}{
		{"the first packet at once", 50_000, []uint64{startNs}, []uint64{startNs}},
		{"at time 0", 50_000, []uint64{0, 1, 49_999, 50_000}, []uint64{0, 50_000}},
		{"right after time 0", 50_000, []uint64{7}, []uint64{7}},
		{"an interval after the latest CNP, not packet", 50_000, []uint64{0, 30_000, 60_000, 90_000, 120_000}, []uint64{0, 60_000, 120_000}},
		{"after silence", 50_000, []uint64{0, 1e9, 1e9 + 1}, []uint64{0, 1e9}},
		{"interval 0: every marked packet", 0, []uint64{0, 0, 1, 1}, []uint64{0, 0, 1, 1}},
		{"two at a time", 50_000, []uint64{5, 5, 50_005, 50_005}, []uint64{5, 50_005}},
		{"a clock that goes back", 50_000, []uint64{50_000, 10, 60_000, 100_000}, []uint64{50_000, 100_000}},
		{"the end of time", 50_000, []uint64{math.MaxUint64 - 10, math.MaxUint64}, []uint64{math.MaxUint64 - 10}},
	} {
		t.Run(test.name, func(t *testing.T) {
			for _, mark := range []markTcdVerdict{ce, ue} {
				qt.Assert(t, qt.DeepEquals(notified(t, m, mark, test.intervalNs, test.timesNs...), test.want))
			}
			qt.Assert(t, qt.HasLen(notified(t, m, none, test.intervalNs, test.timesNs...), 0))
		})
	}
}

// TCD: CE is notified as if there were no UE, and UE if there was no CNP of either kind for an interval.
func TestTCDNotify(t *testing.T) {
	m := loadMarkers(t)

	type packet struct {
		atUs      uint64
		mark, cnp markTcdVerdict
	}
	for _, test := range []struct {
		name    string
		packets []packet
	}{
		{"no UE in the interval of a CE", []packet{{0, ce, ce}, {10, ue, none}, {49, ue, none}}},
		{"UE after it", []packet{{0, ce, ce}, {50, ue, ue}}},
		{"CE at once, whatever was said of UE", []packet{{0, ue, ue}, {10, ce, ce}, {20, ce, none}}},
		{"CE an interval after the latest CE", []packet{{0, ce, ce}, {50, ue, ue}, {60, ce, ce}, {100, ce, none}, {110, ce, ce}}},
		{"UE an interval after the latest of either", []packet{{0, ue, ue}, {40, ce, ce}, {60, ue, none}, {89, ue, none}, {90, ue, ue}}},
		{"UE an interval after UE", []packet{{0, ce, ce}, {60, ue, ue}, {100, ue, none}, {110, ue, ue}}},
		{"CE that is not notified delays no UE", []packet{{0, ce, ce}, {49, ce, none}, {50, ue, ue}}},
		{"nothing is not notified", []packet{{0, none, none}, {60, ue, ue}, {120, none, none}, {180, ce, ce}, {240, none, none}}},
	} {
		t.Run(test.name, func(t *testing.T) {
			steps := make([]markNotifyStep, len(test.packets))
			for i, p := range test.packets {
				steps[i] = markNotifyStep{NowNs: startNs + p.atUs*1000, Mark: p.mark}
			}
			m.notify(t, 50_000, steps)
			for i, p := range test.packets {
				qt.Check(t, qt.Equals(steps[i].Cnp, p.cnp), qt.Commentf("packet %d: %+v", i, p))
			}
		})
	}
}

// CNPs of a kind are an interval apart or more; only a marked packet brings one about; and one that comes an interval
// after the latest does.
func TestDCQCNNotifyRandomPackets(t *testing.T) {
	m := loadMarkers(t)

	const sequences, length = 50, 2000
	saidCEs, saidUEs := 0, 0
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 51))
		intervalNs := pick(r, 0, 50_000, logUniform(r, 1, 1e9))
		stepNs := logUniform(r, 2, max(3*intervalNs, 3))
		share := pick(r, 0.01, 0.5, 1)
		steps := make([]markNotifyStep, length)
		nowNs := pick[uint64](r, 0, startNs)
		for i := range steps {
			if r.Float64() < share {
				steps[i].Mark = pick(r, ue, ce)
			}
			steps[i].NowNs = nowNs
			nowNs += r.Uint64N(stepNs)
		}
		m.notify(t, intervalNs, steps)

		var all, saidCE []uint64 // CNPs
		over := func(cnps []uint64, nowNs uint64) bool { return len(cnps) == 0 || nowNs-cnps[len(cnps)-1] >= intervalNs }
		for i, step := range steps {
			want := none
			switch {
			case step.Mark == ce && over(saidCE, step.NowNs):
				want, saidCE = ce, append(saidCE, step.NowNs)
			case step.Mark == ue && over(all, step.NowNs):
				want = ue
			}
			if step.Cnp != want {
				t.Fatalf("packet %d: CNP %v, want %v; %+v, interval %d ns, CNPs before at %v", i, step.Cnp, want, step, intervalNs, all)
			}
			if want != none {
				all = append(all, step.NowNs)
			}
		}
		saidCEs += len(saidCE)
		saidUEs += len(all) - len(saidCE)
	}
	qt.Assert(t, qt.IsTrue(saidCEs > 1000 && saidUEs > 1000), qt.Commentf("%d, %d", saidCEs, saidUEs))
}
