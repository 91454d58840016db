// SPDX-License-Identifier: Apache-2.0

package truth

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// Two flows of 30 Gbit/s share a port of 40 Gbit/s behind their own: it keeps 20 Gbit/s of 60, and
// is congested from the first bin on. The port behind it never is.
func TestSharedPort(t *testing.T) {
	model := New(100_000, 1000)
	rateOf := func(uint32) func(uint64) uint64 { return func(uint64) uint64 { return 40e9 } }
	flow := Stream{
		RateBps: 30e9, LimitBps: 40e9, Sampled: func(uint64, uint64) uint64 { return 0 },
	}
	model.AddFlow([]uint32{3, 1, 4}, flow.Offered(), rateOf)
	model.AddFlow([]uint32{2, 1, 4}, flow.Offered(), rateOf)
	model.Sort()
	qt.Check(t, qt.DeepEquals(model.Order(), []uint32{2, 3, 1, 4}))
	for bin := range uint64(3) {
		in := model.Step(bin * 100_000)
		qt.Check(t, qt.Equals(in[1], Input{60e9, true}))
		qt.Check(t, qt.Equals(in[4], Input{40e9, false}))
		qt.Check(t, qt.IsFalse(in[2].Congested))
	}
}

// A burst without a rate offers all at its start; one with a rate offers its share of each bin.
func TestBurst(t *testing.T) {
	at := Burst{StartNs: 150, WireBytes: 1000, Frames: 10}.Offered()
	qt.Check(t, qt.Equals(at(0, 100), 0.0))
	qt.Check(t, qt.Equals(at(100, 200), 1000.0))
	qt.Check(t, qt.Equals(at(200, 300), 0.0))
	at = Burst{StartNs: 150, WireBytes: 1000, Frames: 10, GapNs: 20}.Offered()
	qt.Check(t, qt.Equals(at(100, 200), 250.0))
	qt.Check(t, qt.Equals(at(200, 300), 500.0))
	qt.Check(t, qt.Equals(at(300, 400), 250.0))
	qt.Check(t, qt.Equals(at(400, 500), 0.0))
}

// A stream keeps to its sampled rate, up to its limit, and ends with its size.
func TestStream(t *testing.T) {
	s := Stream{
		StartNs: 50, WireBytes: 300, RateBps: 8e9, LimitBps: 16e9,
		Sampled: func(from, _ uint64) uint64 { return from / 100 * 20e9 },
	}
	at := s.Offered()
	qt.Check(t, qt.Equals(at(0, 100), 50.0))
	qt.Check(t, qt.Equals(at(100, 200), 200.0))
	qt.Check(t, qt.Equals(at(200, 300), 50.0))
}
