// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

func hosts(first, count int) []string {
	var names []string
	for i := range count {
		names = append(names, fmt.Sprintf("H%d", first+i))
	}
	return names
}

// all is every host to every other: the traffic of PCN, section 7.4, on 64 hosts.
func all(t testing.TB, sizes string) Spec {
	return Spec{
		Sizes: named(t, sizes), Senders: hosts(0, 64), Receivers: hosts(0, 64), Load: 0.6,
		RateBps:   10e9,
		MinIncast: 1, MaxIncast: 15, ToNs: 100e6, Seed: 1,
	}
}

func generate(t testing.TB, s Spec) []Flow {
	t.Helper()
	flows, err := s.Generate()
	qt.Assert(t, qt.IsNil(err))
	return flows
}

func TestFlowsAreInOrderAndBetweenHosts(t *testing.T) {
	s := all(t, "fb-hadoop")
	s.FromNs = -1e6
	flows := generate(t, s)
	qt.Assert(t, qt.IsTrue(len(flows) > 20_000))
	last := s.FromNs
	for _, f := range flows {
		qt.Assert(t, qt.IsTrue(f.StartNs >= last && f.StartNs < s.ToNs))
		qt.Assert(t, qt.IsTrue(f.Src != f.Dst && f.SizeBytes >= 1))
		qt.Assert(t, qt.SliceContains(s.Senders, f.Src))
		qt.Assert(t, qt.SliceContains(s.Receivers, f.Dst))
		last = f.StartNs
	}
}

// TestLoad: receivers get on average what the load says, all alike.
func TestLoad(t *testing.T) {
	for _, c := range []struct {
		sizes  string
		load   float64
		incast [2]int
	}{
		{"fb-hadoop", 0.6, [2]int{1, 1}}, {"fb-hadoop", 0.6, [2]int{1, 15}},
		{"fb-hadoop", 0.3, [2]int{15, 15}},
		{"ali-storage-2019", 1.2, [2]int{1, 15}}, {"web-search", 0.6, [2]int{1, 1}},
		{"fb-key-value", 0.001, [2]int{1, 1}},
	} {
		s := all(t, c.sizes)
		s.Load, s.MinIncast, s.MaxIncast = c.load, c.incast[0], c.incast[1]
		bytes := map[string]float64{}
		total := 0.0
		for _, f := range generate(t, s) {
			bytes[f.Dst] += float64(f.SizeBytes)
			total += float64(f.SizeBytes)
		}
		capacity := float64(s.RateBps) / 8 * float64(s.ToNs) / 1e9
		got, deviation := total/capacity/64, s.deviation()
		qt.Check(t, qt.IsTrue(math.Abs(got/c.load-1) < 3*deviation),
			qt.Commentf("%+v: %g, deviation %g", c, got, deviation))
		for _, to := range s.Receivers { // of which each has a 64th of the flows
			got := bytes[to] / capacity
			qt.Check(t, qt.IsTrue(math.Abs(got/c.load-1) < 5*8*deviation),
				qt.Commentf("%+v, %s: %g", c, to, got))
		}
	}
}

// deviation is the standard deviation of what all receivers get, as a share of it: that of a
// compound Poisson process.
func (s *Spec) deviation() float64 {
	var sum, squares float64
	const steps = 100_000
	for i := range steps {
		size := float64(s.Sizes.Quantile((float64(i) + 0.5) / steps))
		sum += size / steps
		squares += size * size / steps
	}
	var degrees, pairs float64
	count := float64(s.MaxIncast - s.MinIncast + 1)
	for d := s.MinIncast; d <= s.MaxIncast; d++ {
		degrees += float64(d) / count
		pairs += float64(d*(d-1)) / count
	}
	events := float64(s.ToNs-s.FromNs) / s.meanGapNs()
	return math.Sqrt((degrees*squares+pairs*sum*sum)/events) / (degrees * sum)
}

// arrivals are the flows that start together.
func arrivals(flows []Flow) [][]Flow {
	var all [][]Flow
	for i, f := range flows {
		if i == 0 || f.StartNs != flows[i-1].StartNs || f.Dst != flows[i-1].Dst {
			all = append(all, nil)
		}
		all[len(all)-1] = append(all[len(all)-1], f)
	}
	return all
}

// TestArrivals: gaps are exponential with the mean that the load makes, and as many senders start
// at once as can be, each number as often.
func TestArrivals(t *testing.T) {
	s := all(t, "fb-hadoop")
	var gaps []float64
	last := int64(0)
	degrees := make([]float64, 16)
	events := arrivals(generate(t, s))
	for _, a := range events {
		gaps = append(gaps, float64(a[0].StartNs-last))
		last = a[0].StartNs
		degrees[len(a)]++
		senders := map[string]bool{}
		for _, f := range a {
			senders[f.Src] = true
		}
		qt.Assert(t, qt.HasLen(senders, len(a)))
	}
	// 8 senders on average
	mean := named(t, "fb-hadoop").MeanBytes() * 8 * 8 / (0.6 * 10e9 * 64) * 1e9
	far := distance(gaps, func(x float64) float64 { return 1 - math.Exp(-(x+0.5)/mean) })
	qt.Check(t, qt.IsTrue(far < farAt1Percent(len(gaps))), qt.Commentf("%g", far))

	chi2, each := 0.0, float64(len(events))/15
	for _, n := range degrees[1:] {
		chi2 += (n - each) * (n - each) / each
	}
	// 1 of 100 with 14 degrees of freedom
	qt.Check(t, qt.IsTrue(chi2 < 29.1), qt.Commentf("%g", chi2))
}

// TestSynchronisedBurst: all hosts start at the same ns, every time.
func TestSynchronisedBurst(t *testing.T) {
	s := Spec{
		Sizes: named(t, "fb-hadoop"), Senders: hosts(2, 14), Receivers: []string{"R1"}, Load: 0.6,
		RateBps:   40e9,
		MinIncast: 14, MaxIncast: 14, ToNs: 100e6, Seed: 3,
	}
	events := arrivals(generate(t, s))
	qt.Assert(t, qt.IsTrue(len(events) > 100))
	for _, a := range events {
		var from []string
		for _, f := range a {
			from = append(from, f.Src)
		}
		slices.Sort(from)
		want := slices.Clone(s.Senders)
		slices.Sort(want)
		qt.Assert(t, qt.DeepEquals(from, want))
	}
}

// TestSameSize: flows of one arrival are alike, those of several are not, and their sizes have the
// distribution.
func TestSameSize(t *testing.T) {
	s := all(t, "web-search")
	s.SameSize = true
	var sizes []float64
	for _, a := range arrivals(generate(t, s)) {
		sizes = append(sizes, float64(a[0].SizeBytes))
		for _, f := range a {
			qt.Assert(t, qt.Equals(f.SizeBytes, a[0].SizeBytes))
		}
	}
	far := distance(sizes, named(t, "web-search").flowsUpTo)
	qt.Check(t, qt.IsTrue(far < farAt1Percent(len(sizes))),
		qt.Commentf("%g of %d", far, len(sizes)))
}

func TestPriorities(t *testing.T) {
	s := all(t, "web-search")
	s.ClassBytes = []uint64{10e3, 100e3, 1e6}
	flows := generate(t, s)
	for _, f := range flows {
		want := uint8(3)
		switch {
		case f.SizeBytes < 10e3:
			want = 0
		case f.SizeBytes < 100e3:
			want = 1
		case f.SizeBytes < 1e6:
			want = 2
		}
		qt.Assert(t, qt.Equals(f.Priority, want))
	}
	qt.Check(t, qt.DeepEquals(priorities(flows), []uint8{0, 1, 2, 3}))
	for size, want := range map[uint64]uint8{9_999: 0, 10_000: 1, 99_999: 1, 100_000: 2, 999_999: 2,
		1_000_000: 3} {
		qt.Check(t, qt.Equals(s.priority(size), want), qt.Commentf("%d B", size))
	}
	s.ClassBytes = nil
	qt.Check(t, qt.DeepEquals(priorities(generate(t, s)), []uint8{0}))
}

// TestSeedDecides: the same seed makes the same flows, on every machine; another seed makes others.
func TestSeedDecides(t *testing.T) {
	s := all(t, "fb-hadoop")
	flows := generate(t, s)
	qt.Check(t, qt.DeepEquals(generate(t, s), flows))
	qt.Check(t, qt.DeepEquals(flows[:3], []Flow{{9426, "H56", "H22", 547, 0},
		{9426, "H45", "H22", 350, 0}, {9426, "H36", "H22", 4372, 0}}))
	s.Seed = 2
	other := generate(t, s)
	qt.Check(t, qt.Not(qt.Equals(other[0], flows[0])))
}

func TestSpecErrors(t *testing.T) {
	for _, c := range []struct {
		spoil func(s *Spec)
		want  string
	}{
		{func(s *Spec) { s.Senders = nil },
			"0 senders and 64 receivers: want at least one of each"},
		{func(s *Spec) { s.Load = 0 }, "invalid load 0: want above 0 and at most 100"},
		{func(s *Spec) { s.Load = math.NaN() }, "invalid load NaN: want above 0 and at most 100"},
		{func(s *Spec) { s.RateBps = 0 }, "the rate of links is missing"},
		{func(s *Spec) { s.MinIncast = 0 },
			"invalid incast of 0 to 15 senders: want 1 or more, in growing order"},
		{func(s *Spec) { s.MaxIncast = 0 }, "invalid incast of 1 to 0 senders: .*"},
		{func(s *Spec) { s.MaxIncast = 64 }, "63 hosts can send to H0: want 64 for the incast"},
		{func(s *Spec) { s.ToNs = 0 }, "flows start from 0 ns to 0 ns: want a later end"},
		{func(s *Spec) { s.ClassBytes = []uint64{2, 1} },
			`invalid size classes \[2 1\]: want at most 255, in growing order`},
		{func(s *Spec) { s.Senders = []string{"H0", "H1", "H0"} }, "host H0 is listed twice"},
		{func(s *Spec) { s.Sizes = named(t, "fb-key-value"); s.ToNs = 1e12 },
			`the load makes 1\.4e\+11 flows: want at most 10000000`},
	} {
		s := all(t, "fb-hadoop")
		c.spoil(&s)
		_, err := s.Generate()
		qt.Check(t, qt.ErrorMatches(err, "generate flows: "+c.want))
	}
}

// Where links differ, load is of each receiver's own link, and hosts are chosen in proportion.
func TestLoadOfDifferentLinks(t *testing.T) {
	sizes, err := NamedCDF("fb-key-value")
	qt.Assert(t, qt.IsNil(err))
	rates := map[string]uint64{"A": 100e9, "B": 25e9, "C": 25e9, "R": 10e9, "S": 40e9}
	s := Spec{
		Sizes: sizes, Senders: []string{"A", "B", "C"}, Receivers: []string{"R", "S"}, Load: 0.5,
		LinkBps:   func(host string) uint64 { return rates[host] },
		MinIncast: 1, MaxIncast: 1, ToNs: 20e6, Seed: 1,
	}
	flows, err := s.Generate()
	qt.Assert(t, qt.IsNil(err))
	got, bits := map[string]float64{}, 0.0
	for _, f := range flows {
		got[f.Src] += 1 / float64(len(flows))
		got[f.Dst] += 1 / float64(len(flows))
		bits += float64(f.SizeBytes) * 8
	}
	qt.Check(t, qt.IsTrue(math.Abs(bits/(25e9*20e-3)-1) < 0.05), qt.Commentf("%g", bits))
	for host, want := range map[string]float64{
		"R": 10. / 50, "S": 40. / 50, "A": 100. / 150, "B": 25. / 150, "C": 25. / 150,
	} {
		// six standard deviations of so many choices
		most := 6 * math.Sqrt(want*(1-want)/float64(len(flows)))
		qt.Check(t, qt.IsTrue(math.Abs(got[host]-want) < most),
			qt.Commentf("%s: %g, want %g", host, got[host], want))
	}
}

// priorities returns the priorities of the flows, each once, in growing order.
func priorities(flows []Flow) []uint8 {
	var found []uint8
	for _, f := range flows {
		found = append(found, f.Priority)
	}
	slices.Sort(found)
	return slices.Compact(found)
}
