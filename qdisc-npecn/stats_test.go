// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// lateBy is the histogram of packets that were so late.
func lateBy(ns ...uint64) Lateness {
	var l Lateness
	for _, x := range ns {
		l.counts[min(x/lateBucketNs, lateBuckets-1)]++
		l.MaxNs = max(l.MaxNs, x)
	}
	return l
}

func TestQuantile(t *testing.T) {
	for _, test := range []struct {
		name string
		l    Lateness
		q    float64
		want uint64
	}{
		{"none", lateBy(), 0.5, 0},
		{"all on time", lateBy(0, 0, 0), 1, 0},
		{"one", lateBy(100), 0.01, 100}, // the bucket ends at 128, but none was later than 100
		{"median of four", lateBy(10, 70, 130, 200), 0.5, 128},
		{"three quarters", lateBy(10, 70, 130, 200), 0.75, 192},
		{"all", lateBy(10, 70, 130, 200), 1, 200},
		{"99% of 100", lateBy(append(make([]uint64, 99), 5000)...), 0.99, 64},
		{"over 99% of 100", lateBy(append(make([]uint64, 99), 5000)...), 0.995, 5000},
		{"beyond the histogram", lateBy(0, 1<<40, 2<<40), 0.6, 2 << 40},
		{"in the last, open bucket", lateBy(lateBuckets*lateBucketNs-1, lateBuckets*lateBucketNs),
			0.5, lateBuckets * lateBucketNs},
	} {
		qt.Check(t, qt.Equals(test.l.QuantileNs(test.q), test.want), qt.Commentf(test.name))
	}
}

func TestLatenessAdd(t *testing.T) {
	sum := lateBy(10, 5000)
	sum.Add(lateBy(20, 300, 9))
	qt.Check(t, qt.Equals(sum, lateBy(9, 10, 20, 300, 5000)))
	sum.Add(Lateness{})
	qt.Check(t, qt.Equals(sum, lateBy(9, 10, 20, 300, 5000)))
}

func TestDropped(t *testing.T) {
	s := Stats{}
	s.Drops[DropBuffer], s.Drops[DropRing] = 1, 20
	s.Drops[DropClass], s.Drops[DropReset] = 300, 4000
	qt.Check(t, qt.Equals(s.Dropped(), 4321))
}
