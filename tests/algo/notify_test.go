// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// notified runs marked packets of one flow that arrive at these times, and returns when a CNP was sent.
func notified(t testing.TB, m *markers, intervalNs uint64, timesNs ...uint64) (sent []uint64) {
	t.Helper()

	steps := make([]markNotifyStep, len(timesNs))
	for i, ns := range timesNs {
		steps[i] = markNotifyStep{NowNs: ns, Ce: true}
	}
	m.notify(t, intervalNs, steps)
	for _, step := range steps {
		if step.Cnp {
			sent = append(sent, step.NowNs)
		}
	}
	return sent
}

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
			qt.Assert(t, qt.DeepEquals(notified(t, m, test.intervalNs, test.timesNs...), test.want))
		})
	}
}

// CNPs are an interval apart or more; only a marked packet brings one about; and one that comes an interval after the
// latest does.
func TestDCQCNNotifyRandomPackets(t *testing.T) {
	m := loadMarkers(t)

	const sequences, length = 50, 2000
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 51))
		intervalNs := pick(r, 0, 50_000, logUniform(r, 1, 1e9))
		stepNs := logUniform(r, 2, max(3*intervalNs, 3))
		share := pick(r, 0.01, 0.5, 1)
		steps := make([]markNotifyStep, length)
		nowNs := pick[uint64](r, 0, startNs)
		for i := range steps {
			steps[i] = markNotifyStep{NowNs: nowNs, Ce: r.Float64() < share}
			nowNs += r.Uint64N(stepNs)
		}
		m.notify(t, intervalNs, steps)

		cnps, latestNs := 0, uint64(0)
		for i, step := range steps {
			want := step.Ce && (cnps == 0 || step.NowNs-latestNs >= intervalNs)
			if step.Cnp != want {
				t.Fatalf("packet %d: CNP %v, want %v; %+v, interval %d ns, latest CNP at %d", i, step.Cnp, want, step, intervalNs, latestNs)
			}
			if want {
				cnps, latestNs = cnps+1, step.NowNs
			}
		}
		qt.Assert(t, qt.IsTrue(cnps > 0))
	}
}
