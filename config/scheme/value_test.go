// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"math"
	"testing"

	"github.com/cilium/ebpf/btf"
	"github.com/go-quicktest/qt"
)

// Types of C, as compilers describe them.
var (
	u8  = &btf.Int{Name: "unsigned char", Size: 1}
	u16 = &btf.Int{Name: "unsigned short", Size: 2}
	u32 = &btf.Int{Name: "unsigned int", Size: 4}
	u64 = &btf.Int{Name: "unsigned long long", Size: 8}
	s64 = &btf.Int{Name: "long long", Size: 8, Encoding: btf.Signed}

	boolean = &btf.Int{Name: "_Bool", Size: 1, Encoding: btf.Bool}
	colour  = &btf.Enum{Name: "colour", Size: 4, Values: []btf.EnumValue{
		{Name: "COLOUR_RED", Value: 0}, {Name: "COLOUR_GREEN", Value: 1}, {
			Name: "COLOUR_DARK_RED", Value: 7,
		},
	}}
)

func typedef(name string, of btf.Type) *btf.Typedef { return &btf.Typedef{Name: name, Type: of} }

func mustFormat(t *testing.T, of btf.Type) format {
	t.Helper()
	f, _, _, err := formatOf(of)
	qt.Assert(t, qt.IsNil(err))
	return f
}

func TestFormatsHoldNumbers(t *testing.T) {
	for _, tc := range []struct {
		name   string
		of     btf.Type
		number float64
		in     uint64 // as C holds it
	}{
		{"q24 one", typedef("q24", u32), 1, 1 << 24},
		{"q24 1/128", typedef("q24", u32), 1. / 128, 1 << 17},
		{"q24 rounds", typedef("q24", u32), 0.02, 335544},
		{"q24 largest", typedef("q24", u32), 255, 255 << 24},
		{"wide q24", typedef("wide_q24", u64), 16383, 16383 << 24},
		{"q10", typedef("q10", u32), 0.25, 256},
		{"q8", typedef("q8", u32), 2.5, 640},
		{"permille", typedef("permille", u32), 0.95, 950},
		{"permille rounds", typedef("permille", u32), 0.9996, 1000},
		{"halvings of one", typedef("halvings", u32), 1, 0},
		{"halvings", typedef("halvings", u32), 1. / 16, 4},
		{"short delay", typedef("cct_entry", u16), 1.5, 3<<14 | 12},
		{"delay of no fraction", typedef("cct_entry", u16), 9000, 9000},
		{"longest delay", typedef("cct_entry", u16), 1<<14 - 1, 1<<14 - 1},
		{"delay of one bit", typedef("cct_entry", u16), 8191.5, 1<<14 | 16383},
		{"flag", typedef("flag", u32), 1, 1},
		{"bool", boolean, 1, 1},
		{"enum", colour, 7, 7},
		{"rate", typedef("u64", u64), 800e9, 800e9},
		{"byte", u8, 255, 255},
		{"signed", s64, 12, 12},
		{"nothing", u32, 0, 0},
	} {
		t.Run(tc.name, func(t *testing.T) {
			f := mustFormat(t, tc.of)
			in, err := f.encode(tc.number)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(in, tc.in))

			data := []byte("........")
			f.put(data, in)
			qt.Assert(t, qt.Equals(f.get(data), in))
			qt.Assert(t, qt.Equals(string(data[f.size:]), "........"[f.size:]))

			// What is read is what was given, to half a unit of the format.
			qt.Assert(t, qt.IsTrue(math.Abs(f.decode(in)-tc.number) <= resolution(f)/2))
			again, err := f.encode(f.decode(in))
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(again, in))
		})
	}
}

// resolution is the distance of two numbers that the format tells apart.
func resolution(f format) float64 {
	if f.scale != 0 {
		return 1 / f.scale
	}
	return math.Ldexp(1, -int(f.fraction))
}

func TestEveryCCTEntryIsReadAsItWasWritten(t *testing.T) {
	f := mustFormat(t, typedef("cct_entry", u16))
	for number := 0.125; number < 1<<14-1; number *= 1.01 {
		in, err := f.encode(number)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(in < 1<<16))
		// three bits of fraction below 2048, and fewer above
		step := math.Max(1./8, math.Ldexp(1, int(math.Ceil(math.Log2(number+0.5)))-14))
		qt.Assert(t, qt.IsTrue(math.Abs(f.decode(in)-number) <= step/2), qt.Commentf("%g", number))
	}
}

func TestNumbersThatDoNotFit(t *testing.T) {
	for _, tc := range []struct {
		name   string
		of     btf.Type
		number float64
		want   string
	}{
		{"q24", typedef("q24", u32), 256, "256 does not fit 32 bits"},
		{"permille", typedef("permille", u32), 4294968, ".* does not fit 32 bits"},
		{"negative", u64, -1, "-1 does not fit 64 bits"},
		{"byte", u8, 256, "256 does not fit 8 bits"},
		{"signed", s64, math.Ldexp(1, 63), ".* does not fit 63 bits"},
		{"not a number", u64, math.NaN(), "NaN does not fit 64 bits"},
		{"infinite", typedef("q24", u32), math.Inf(1), ".*Inf does not fit 32 bits"},
		{"no power", typedef("halvings", u32), 0.1, "0.1 is not a power of 1/2"},
		{"above one", typedef("halvings", u32), 2, "2 is not a power of 1/2"},
		{"no halvings of 0", typedef("halvings", u32), 0, "0 is not a power of 1/2"},
		{"delay", typedef("cct_entry", u16), 1 << 14, "16384 does not fit 14 bits"},
		{"no delay", typedef("cct_entry", u16), math.NaN(), "NaN does not fit 14 bits"},
		{"negative delay", typedef("cct_entry", u16), -1, "-1 does not fit 14 bits"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			_, err := mustFormat(t, tc.of).encode(tc.number)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}

func TestNegativeStatistics(t *testing.T) {
	f := mustFormat(t, s64)
	qt.Assert(t, qt.Equals(f.decode(math.MaxUint64), -1))
	qt.Assert(t, qt.Equals(f.decode(5), 5))
}

func TestTypesWithoutFormat(t *testing.T) {
	for name, of := range map[string]btf.Type{
		"pointer": &btf.Pointer{Target: u32},
		"long":    &btf.Int{Name: "__int128", Size: 16},
		"struct":  &btf.Struct{Name: "s", Size: 4},
		"float":   &btf.Float{Name: "double", Size: 8},
		"void":    &btf.Void{},
	} {
		t.Run(name, func(t *testing.T) {
			_, _, _, err := formatOf(of)
			qt.Assert(t, qt.IsNotNil(err))
		})
	}
}

func TestChoicesAreNamedWithoutWhatTheyHaveInCommon(t *testing.T) {
	for _, tc := range []struct {
		name   string
		values []string
		want   []string
	}{
		{
			"common words", []string{"LDCP_FIRST_RTT_DROP", "LDCP_FIRST_RTT_ECT"},
			[]string{"drop", "ect"},
		},
		{"common letters", []string{"HALF_AI", "HALF_AX"}, []string{"ai", "ax"}},
		{"nothing in common", []string{"DROP", "ECT"}, []string{"drop", "ect"}},
		{"one", []string{"WAY_OUT"}, []string{"out"}},
		{"none", nil, nil},
	} {
		t.Run(tc.name, func(t *testing.T) {
			e := &btf.Enum{Size: 4}
			for i, v := range tc.values {
				e.Values = append(e.Values, btf.EnumValue{Name: v, Value: uint64(i)})
			}
			qt.Assert(t, qt.DeepEquals(names(choicesOf(e)), tc.want))
		})
	}
}

func TestKindsAreParsedAndWritten(t *testing.T) {
	choices := choicesOf(colour)
	for _, tc := range []struct {
		kind       Kind
		text, want string // want is how the value is written again; empty: as it was
		number     float64
	}{
		{KindRate, "40Gbps", "", 40e9},
		{KindTime, "0.055ms", "55us", 55e3},
		{KindBytes, "1KiB", "1.024KB", 1024},
		{KindRatio, "1/128", "0.0078125", 1. / 128},
		{KindRatio, "5%", "0.05", 0.05},
		{KindCount, "127", "", 127},
		{KindFlag, "true", "", 1},
		{KindFlag, "false", "", 0},
		{KindChoice, "dark_red", "", 7},
	} {
		t.Run(string(tc.kind)+" "+tc.text, func(t *testing.T) {
			v, err := tc.kind.parse(tc.text, choices)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(v.Number, tc.number))
			if tc.want == "" {
				tc.want = tc.text
			}
			qt.Assert(t, qt.Equals(v.String(), tc.want))
		})
	}
	for _, tc := range []struct {
		kind       Kind
		text, want string
	}{
		{KindRate, "40", `"40": unit is missing \(hint: write a rate as 40Gbps\)`},
		{KindTime, "5Gbps", `"5Gbps": unknown unit "Gbps" \(hint: write a time as 5us\)`},
		{KindBytes, "x", `"x" is not a number with a unit .*`},
		{KindRatio, "half", `"half" is not a number .*`},
		{KindCount, "1.5", `"1.5" is not a whole number in range`},
		{KindCount, "-1", `"-1" is not a whole number in range`},
		{KindCount, "4294967296", `"4294967296" is not a whole number in range`},
		{KindFlag, "yes", `invalid value "yes": want true or false`},
		{KindChoice, "gren", `unknown value "gren" \(hint: did you mean "green"\?\)`},
		{KindChoice, "", `unknown value "" \(hint: one of red, green, dark_red\)`},
	} {
		t.Run(string(tc.kind)+" "+tc.text, func(t *testing.T) {
			_, err := tc.kind.parse(tc.text, choices)
			qt.Assert(t, qt.ErrorMatches(err, tc.want))
		})
	}
}
