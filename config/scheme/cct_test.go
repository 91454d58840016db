// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"encoding/binary"
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// delayOf is what an entry of the congestion control table says, in packet times.
func delayOf(entry uint64) float64 { return math.Ldexp(float64(entry&(1<<14-1)), -int(entry>>14)) }

// An entry is the nearest to a delay that 14 bits of multiplier and 2 of shift give.
func TestCCTEntries(t *testing.T) {
	for delay, want := range map[float64]struct{ multiplier, shift uint64 }{
		0:       {0, 3},
		0.06:    {0, 3},
		0.07:    {1, 3},
		1:       {8, 3},
		2047.9:  {16383, 3},
		2047.95: {8192, 2},
		4095.5:  {16382, 2},
		8000:    {16000, 1},
		16383:   {16383, 0},
	} {
		got, err := encodeShifted(delay)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, want.shift<<14|want.multiplier), qt.Commentf("%g", delay))
		qt.Check(t, qt.IsTrue(math.Abs(delayOf(got)-delay) <= math.Ldexp(0.5, -int(want.shift))),
			qt.Commentf("%g", delay))
	}
}

// The table has the delays of its formula up to CCTI_Limit, and the last one from there on: none is
// shorter than the one before.
func TestCCT(t *testing.T) {
	object := Builtin().Sections()["ibcc"]
	network := Network{LineRateBps: 40e9, BaseRTTNs: 10_000, FrameBytes: 1000}
	for _, c := range []struct{ limit, exponent, delay float64 }{
		{127, 2, 15}, {9, 1, 9}, {1, 4, 1.0 / 65536}, {127, 4, 16383}, {100, 3, 2048},
	} {
		values, problems := object.Resolve(Settings{Given: map[string]Value{
			"ccti_limit":   {Kind: KindCount, Number: c.limit},
			"cct_exponent": {Kind: KindCount, Number: c.exponent},
			"cct_delay":    {Kind: KindRatio, Number: c.delay},
		}}, network)
		qt.Assert(t, qt.HasLen(problems, 0))
		params, err := values.Bytes(ParamsVariable, network, false)
		qt.Assert(t, qt.IsNil(err))
		const entries = 128
		before := -1.0
		for i, table := 0, params[len(params)-2*entries:]; i < entries; i++ {
			got := delayOf(uint64(binary.LittleEndian.Uint16(table[2*i:])))
			want := c.delay * math.Pow(min(float64(i)/c.limit, 1), c.exponent)
			qt.Check(t, qt.IsTrue(math.Abs(got-want) <= max(1.0/16, want/16384)),
				qt.Commentf("%+v, entry %d: %g, want %g", c, i, got, want))
			qt.Check(t, qt.IsTrue(got >= before),
				qt.Commentf("%+v, entry %d: %g after %g", c, i, got, before))
			before = got
		}
	}
}

// A power of 1/2 becomes its exponent; another number is refused.
func TestHalvings(t *testing.T) {
	for n := range uint64(11) {
		got, err := encodeHalvings(math.Ldexp(1, -int(n)))
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got, n))
	}
	for _, number := range []float64{0, 0.3, 2, -0.5, math.NaN(), math.Inf(1)} {
		_, err := encodeHalvings(number)
		qt.Check(t, qt.ErrorMatches(err, ".* is not a power of 1/2"))
	}
}
