// SPDX-License-Identifier: Apache-2.0

package config

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestParseRate(t *testing.T) {
	for text, want := range map[string]Rate{
		"40Gbps":                  40e9,
		"2.5Gbps":                 2.5e9,
		"100Mbps":                 100e6,
		"1kbps":                   1000,
		"7bps":                    7,
		"0":                       0,
		"0bps":                    0,
		"18446744073709551615bps": math.MaxUint64,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseRate(text)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, want))
		})
	}
}

func TestParseDuration(t *testing.T) {
	for text, want := range map[string]Duration{
		"5us":     5000,
		"2.6ms":   2_600_000,
		"-1ms":    -1_000_000,
		"0.5s":    500_000_000,
		"1ns":     1,
		"0":       0,
		"-0.1us":  -100,
		"1.001us": 1001,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseDuration(text)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, want))
		})
	}
}

// KB is 1000 bytes in the papers, KiB is 1024 everywhere.
func TestParseBytes(t *testing.T) {
	for text, want := range map[string]Bytes{
		"64KB":   64_000,
		"64KiB":  65_536,
		"32MB":   32_000_000,
		"1MiB":   1 << 20,
		"1000B":  1000,
		"1.03KB": 1030,
		"0":      0,
	} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseBytes(text)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, want))
		})
	}
}

func TestParseRatio(t *testing.T) {
	for text, want := range map[string]Ratio{"1/128": 0.0078125, "0.95": 0.95, "1": 1,
		"0.1/4": 0.025, "5%": 0.05, "12.5%": 0.125, "1/2%": 0.005, "150%": 1.5} {
		t.Run(text, func(t *testing.T) {
			got, err := ParseRatio(text)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, want))
		})
	}
}

func TestUnitErrorsSayWhatToWrite(t *testing.T) {
	rate := func(s string) error { _, err := ParseRate(s); return err }
	duration := func(s string) error { _, err := ParseDuration(s); return err }
	size := func(s string) error { _, err := ParseBytes(s); return err }
	ratio := func(s string) error { _, err := ParseRatio(s); return err }
	for _, tc := range []struct {
		parse      func(string) error
		text, want string
	}{
		{rate, "40", `"40": unit is missing \(hint: write a rate as 40Gbps\)`},
		{rate, "40gbps", `"40gbps": unknown unit "gbps" \(hint: did you mean "Gbps"\?\)`},
		{rate, "40 Gbps", `"40 Gbps": unknown unit " Gbps" \(hint: did you mean "Gbps"\?\)`},
		{rate, "40GB", `"40GB": unknown unit "GB" \(hint: write a rate as 40Gbps\)`},
		{rate, "-1bps", `rate "-1bps" is out of range .*`},
		{rate, "fast", `"fast" is not a number with a unit .*`},
		{rate, "", `"" is not a number with a unit .*`},
		{rate, "0.1bps", `"0.1bps" is not a whole number of bps .*`},
		{rate, "18446744073709551616bps", `rate "18446744073709551616bps" is out of range .*`},
		{rate, "1e9bps", `"1e9bps" is not a number with a unit .*`},
		{duration, "5", `"5": unit is missing \(hint: write a time as 5us\)`},
		{duration, "0.5ns", `"0.5ns" is not a whole number of ns .*`},
		{duration, "5µs", `"5µs": unknown unit "µs" .*`},
		{duration, "9223372037s", `time "9223372037s" is out of range .*`},
		{duration, "1..2us", `"1..2us" is not a number with a unit .*`},
		{size, "64kb", `"64kb": unknown unit "kb" \(hint: did you mean "KB"\?\)`},
		{size, "-64KB", `size "-64KB" is out of range .*`},
		{ratio, "1/0", `"1/0" is not a fraction .*`},
		{ratio, "half", `"half" is not a number .*`},
		{ratio, "5%%", `"5%%" is not a number .*`},
		{ratio, "%", `"%" is not a number .*`},
		{ratio, "1e400", `"1e400" is not a number .*`},
	} {
		t.Run(tc.text, func(t *testing.T) {
			qt.Assert(t, qt.ErrorMatches(tc.parse(tc.text), tc.want))
		})
	}
}

func TestStringsAreShortAndExact(t *testing.T) {
	for want, got := range map[string]string{
		"40Gbps":                 Rate(40e9).String(),
		"2.5Gbps":                Rate(2.5e9).String(),
		"999bps":                 Rate(999).String(),
		"0bps":                   Rate(0).String(),
		"1.000001ms":             Duration(1_000_001).String(),
		"-2.6ms":                 Duration(-2_600_000).String(),
		"-9223372036.854775808s": Duration(math.MinInt64).String(),
		"64KB":                   Bytes(64_000).String(),
		"65.536KB":               Bytes(65_536).String(),
		"0.0078125":              Ratio(1. / 128).String(),
	} {
		qt.Check(t, qt.Equals(got, want))
	}
}

func TestQuantity(t *testing.T) {
	for _, tc := range []struct {
		text string
		want Quantity
		back string
	}{
		{"2.6ms", Quantity{2.6e6, UnitTime}, "2.6ms"},
		{"-5us", Quantity{-5000, UnitTime}, "-5us"},
		{"6Gbps", Quantity{6e9, UnitRate}, "6Gbps"},
		{"5%", Quantity{0.05, UnitShare}, "5%"},
		{"64KB", Quantity{64e3, UnitBytes}, "64KB"},
		{"1KiB", Quantity{1024, UnitBytes}, "1.024KB"},
		{"0.99", Quantity{0.99, UnitCount}, "0.99"},
		{"0.987654", Quantity{0.987654, UnitCount}, "0.9877"},
		{"0", Quantity{0, UnitCount}, "0"},
		{"12345678", Quantity{12345678, UnitCount}, "12345678"},
		{"3.0841234ms", Quantity{3084123.4, UnitTime}, ""},
	} {
		t.Run(tc.text, func(t *testing.T) {
			got, err := ParseQuantity(tc.text)
			if tc.back == "" {
				qt.Assert(t, qt.ErrorMatches(err, ".*not a whole number of ns.*"))
				return
			}
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, tc.want))
			qt.Assert(t, qt.Equals(got.String(), tc.back))
		})
	}
	qt.Assert(t, qt.Equals(Quantity{3084123, UnitTime}.String(), "3.084ms"))
	qt.Assert(t, qt.Equals(Quantity{-1.5, UnitTime}.String(), "-1.5ns"))
}

// What parses is written back as the same value.
func fuzzUnit[T interface {
	comparable
	String() string
}](f *testing.F, parse func(string) (T, error), seeds ...string) {
	for _, s := range append(seeds, "", "0", "-", ".", "1..", "-0.0", "1/",
		"99999999999999999999") {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		v, err := parse(text)
		if err != nil {
			return
		}
		again, err := parse(v.String())
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(again, v))
	})
}

func FuzzParseRate(f *testing.F) {
	fuzzUnit(f, ParseRate, "40Gbps", "2.5Mbps", "1kbps", "7bps", "-1bps", "40 Gbps")
}

func FuzzParseDuration(f *testing.F) {
	fuzzUnit(f, ParseDuration, "5us", "-1ms", "0.1s", "1ns", "-9223372036854775808ns")
}

func FuzzParseBytes(f *testing.F) {
	fuzzUnit(f, ParseBytes, "64KB", "64KiB", "1.5MB", "1MiB", "1B")
}

func FuzzParseRatio(f *testing.F) {
	f.Add("1/128")
	f.Add("0.95")
	f.Add("1/0")
	f.Add("-3/7")
	f.Fuzz(func(t *testing.T, text string) {
		r, err := ParseRatio(text)
		if err != nil {
			return
		}
		qt.Assert(t, qt.IsFalse(math.IsNaN(float64(r)) || math.IsInf(float64(r), 0)))
	})
}

func FuzzParseQuantity(f *testing.F) {
	for _, s := range []string{"2.6ms", "6Gbps", "5%", "64KB", "0", "1/128", "%", "s", "bps"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		q, err := ParseQuantity(text)
		if err != nil {
			return
		}
		// Rounded to 4 digits, but still of the same unit.
		if q.Unit != UnitCount {
			suffix := map[Unit]string{UnitTime: "s", UnitRate: "bps", UnitBytes: "B",
				UnitShare: "%"}[q.Unit]
			qt.Assert(t, qt.StringContains(q.String(), suffix))
		}
		qt.Assert(t, qt.IsFalse(math.IsNaN(q.Value) || math.IsInf(q.Value, 0)))
	})
}
