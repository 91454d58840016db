// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/go-quicktest/qt"
)

func named(t testing.TB, name string) *CDF {
	t.Helper()
	c, err := NamedCDF(name)
	qt.Assert(t, qt.IsNil(err))
	return c
}

// TestCDFsThatComeAlong holds each against its mean, and the number and bytes of flows below 10 KB,
// 100 KB and 1 MB.
func TestCDFsThatComeAlong(t *testing.T) {
	want := map[string]struct {
		meanBytes      float64
		flows, carried [3]float64 // share below the sizes
	}{
		"web-search": {1_711_250, [3]float64{0.15, 0.5417, 0.7},
			[3]float64{0.0004, 0.0102, 0.0504}},
		"data-mining": {12_658_198.6, [3]float64{0.8, 0.8231, 0.9109},
			[3]float64{0.0001, 0.0002, 0.0023}},
		"fb-hadoop": {120_420.75, [3]float64{0.7026, 0.885, 0.975},
			[3]float64{0.0048, 0.0791, 0.3149}},
		"ali-storage-2019": {40_869.8, [3]float64{0.7206, 0.9535, 0.9858},
			[3]float64{0.0854, 0.243, 0.4802}},
		"fb-key-value": {342.235, [3]float64{0.995, 1, 1}, [3]float64{0.7163, 0.9839, 1}},
	}
	qt.Assert(t, qt.HasLen(want, len(CDFs())))
	for _, name := range CDFs() {
		t.Run(name, func(t *testing.T) {
			c, w := named(t, name), want[name]
			about := func(got, want, off float64) {
				t.Helper()
				qt.Check(t, qt.IsTrue(math.Abs(got-want) <= off),
					qt.Commentf("got %g, want %g", got, want))
			}
			about(c.MeanBytes(), w.meanBytes, 1e-6*w.meanBytes)
			for i, bytes := range []float64{10e3, 100e3, 1e6} {
				about(c.flowsUpTo(bytes), w.flows[i], 1e-4)
				about(c.carried(bytes), w.carried[i], 2e-3)
			}
		})
	}
	_, err := NamedCDF("hadoop")
	qt.Check(t,
		qt.ErrorMatches(err,
			`unknown distribution of flow sizes "hadoop" \(hint: one of ali-storage-2019, data-mining, fb-hadoop, fb-key-value, web-search\)`))
}

// carried is the share of all bytes that flows below a size have, by steps of the quantile.
func (c *CDF) carried(bytes float64) float64 {
	const steps = 100_000
	below, all := 0.0, 0.0
	for i := range steps {
		size := float64(c.Quantile((float64(i) + 0.5) / steps))
		all += size
		if size < bytes {
			below += size
		}
	}
	return below / all
}

func TestQuantileAndShare(t *testing.T) {
	c, err := ParseCDF("t", "100 0\n200 50 # half\n\n# all\n1000 100\n")
	qt.Assert(t, qt.IsNil(err))
	for _, p := range []struct{ share, bytes float64 }{{0, 100}, {0.25, 150}, {0.5, 200},
		{0.75, 600}, {1, 1000}} {
		qt.Check(t, qt.Equals(c.Quantile(p.share), uint64(p.bytes)))
		qt.Check(t, qt.Equals(c.flowsUpTo(p.bytes), p.share))
	}
	qt.Check(t, qt.Equals(c.flowsUpTo(99), 0))
	qt.Check(t, qt.Equals(c.flowsUpTo(1001), 1))
	qt.Check(t, qt.Equals(c.MeanBytes(), 0.5*150+0.5*600))
	qt.Check(t, qt.Equals(named(t, "fb-key-value").Quantile(0), 1)) // not 0 B
	for _, name := range CDFs() {
		c := named(t, name)
		for share := 0.05; share < 1; share += 0.01 {
			bytes := float64(c.Quantile(share))
			qt.Check(t, qt.IsTrue(c.flowsUpTo(bytes-1) <= share && share <= c.flowsUpTo(bytes+1)),
				qt.Commentf("%s: %g", name, share))
		}
	}
}

// distance is Kolmogorov's and Smirnov's: how far the distribution of what was drawn is from what
// it should be.
func distance(drawn []float64, cdf func(float64) float64) float64 {
	slices.Sort(drawn)
	far, n := 0.0, float64(len(drawn))
	for i, x := range drawn {
		if i+1 < len(drawn) && drawn[i+1] == x {
			continue // sizes are whole: the last of those that are the same counts
		}
		far = max(far, math.Abs(cdf(x)-float64(i+1)/n))
	}
	return far
}

// farAt1Percent is the distance that 1 of 100 samples of n exceeds.
func farAt1Percent(n int) float64 { return 1.63 / math.Sqrt(float64(n)) }

func TestSizesHaveTheDistribution(t *testing.T) {
	const n = 100_000
	for _, name := range CDFs() {
		c := named(t, name)
		rng := rand.New(rand.NewPCG(1, 2))
		var sizes []float64
		sum := 0.0
		for range n {
			size := float64(c.Quantile(rng.Float64()))
			sizes = append(sizes, size)
			sum += size
		}
		// sizes are rounded to whole bytes: half a byte more is not counted
		far := distance(sizes, func(x float64) float64 { return c.flowsUpTo(x + 0.5) })
		qt.Check(t, qt.IsTrue(far < farAt1Percent(n)), qt.Commentf("%s: %g", name, far))
		mean := sum / n
		qt.Check(t, qt.IsTrue(math.Abs(mean/c.MeanBytes()-1) < 0.04),
			qt.Commentf("%s: mean %g of %g", name, mean, c.MeanBytes()))
	}
	// the test tells distributions apart
	var sizes []float64
	rng := rand.New(rand.NewPCG(1, 2))
	for range n {
		sizes = append(sizes, float64(named(t, "web-search").Quantile(rng.Float64()))*1.05)
	}
	qt.Check(t, qt.IsTrue(distance(sizes, named(t, "web-search").flowsUpTo) > 2*farAt1Percent(n)))
}

func TestCDFErrors(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"", `f.txt:1: the distribution is empty: want lines with a size in bytes and a share`},
		{"# a\n# b\n", `f.txt:2: the distribution is empty: .*`},
		{"540.5\n0 0\n100 1\n", `f.txt:1: one value, 540.5: want a size in bytes and .*Homa.*`},
		{"0 0\n100\n", `f.txt:2: 1 values: want a size in bytes and a share`},
		{"0 0\n100 0.5 1 2\n", `f.txt:2: 4 values: want a size in bytes and a share`},
		{"0 0\n1KB 0.5\n", `f.txt:2: invalid value "1KB": want a number from 0 to 1e\+15`},
		{"0 0\n-1 0.5\n", `f.txt:2: invalid value "-1": want a number from 0 to 1e\+15`},
		{"0 0\nNaN 0.5\n", `f.txt:2: invalid value "NaN": want a number .*`},
		{"0 0\n1e16 1\n", `f.txt:2: invalid value "1e16": want a number .*`},
		{"0 0.1\n100 1\n",
			`f.txt:2: the first share is 0.1: want 0, with a size below that of all flows`},
		{"0 0\n100 0.5\n99 1\n", `f.txt:3: size 99 or share 1 shrinks: want as much as .*`},
		{"0 0\n100 0.5\n200 0.4\n", `f.txt:3: size 200 or share 0.4 shrinks: want as much as .*`},
		{"0 0\n100 0.9\n", `f.txt:2: the last share is 0.9: want 1 or 100`},
		{"0 0\n", `f.txt:1: the last share is 0: want 1 or 100`},
	} {
		_, err := ParseCDF("f.txt", c.text)
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%q", c.text))
	}
}

// Sizes and shares may stay as they are: many flows then have one size, or no flow has some sizes.
func TestCDFWithSteps(t *testing.T) {
	for text, want := range map[string][]uint64{ // at shares of 0.1, 0.3, 0.5, 0.9
		"1000 1\n":                       {1000, 1000, 1000, 1000},
		"9000 0\n9000 0.4\n10000 1\n":    {9000, 9000, 9167, 9833},
		"0 0\n2000 0\n3000 50\n3000 100": {2200, 2600, 3000, 3000},
		"0 0\n100 0.5\n900 0.5\n1000 1":  {20, 60, 100, 980},
		"0 1 0\n1000 1 1\n":              {100, 300, 500, 900},
	} {
		c, err := ParseCDF("f.txt", text)
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%q", text))
		qt.Check(t, qt.Equals(c.Counted, text[:3] == "0 1"))
		mean := 0.0
		const n = 100_000
		for i := range n {
			mean += float64(c.Quantile((float64(i)+0.5)/n)) / n
		}
		qt.Check(t, qt.IsTrue(math.Abs(c.MeanBytes()-mean) < 1), qt.Commentf("%q", text))
		for i, share := range []float64{0.1, 0.3, 0.5, 0.9} {
			size := c.Quantile(share)
			qt.Check(t, qt.Equals(size, want[i]), qt.Commentf("%q at %g", text, share))
			qt.Check(t, qt.IsTrue(c.flowsUpTo(float64(size)+1) >= share-1e-3))
		}
		qt.Check(t, qt.IsFalse(math.IsNaN(c.MeanBytes())))
		qt.Check(t, qt.IsTrue(c.Quantile(0) >= 1 && c.Quantile(0) <= want[0]))
	}
}

// FuzzCDF: what is accepted is a distribution.
func FuzzCDF(f *testing.F) {
	f.Add("0 0\n100 0.5\n1000 1\n")
	f.Add("0 0 # none\n100 50\n\n1000 100")
	f.Add("1 0\n1e15 1")
	f.Fuzz(func(t *testing.T, text string) {
		c, err := ParseCDF("f", text)
		if err != nil {
			return
		}
		last := uint64(0)
		for _, share := range []float64{0, 0.1, 0.5, 0.9, 1} {
			size := c.Quantile(share)
			qt.Assert(t, qt.IsTrue(size >= max(last, 1) && size <= maxBytes))
			last = size
		}
		mean := c.MeanBytes()
		qt.Assert(t, qt.IsTrue(mean > 0 && mean <= maxBytes))
	})
}

// flowsUpTo returns the share of flows, 0 to 1, of at most this size.
func (c *CDF) flowsUpTo(bytes float64) float64 {
	i := sort.SearchFloat64s(c.bytes, bytes)
	switch {
	case i == len(c.bytes):
		return 1
	case c.bytes[i] == bytes:
		for i+1 < len(c.bytes) && c.bytes[i+1] == bytes {
			i++
		}
		return c.share[i]
	case i == 0:
		return 0
	}
	part := (bytes - c.bytes[i-1]) / (c.bytes[i] - c.bytes[i-1])
	return c.share[i-1] + part*(c.share[i]-c.share[i-1])
}
