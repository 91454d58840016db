// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"errors"
	"math"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// known are the names that formulas of tests look up.
func known(name string) (float64, error) {
	values := map[string]float64{"line_rate": 40e9, "kmin": 6000, "marking.kmax": 2e5, "i": 3}
	v, ok := values[name]
	if !ok {
		return 0, errors.New("there is no " + name)
	}
	return v, nil
}

func TestFormulas(t *testing.T) {
	for text, want := range map[string]float64{
		"0":                                      0,
		"12.5":                                   12.5,
		"55us":                                   55e3,
		"1Gbps":                                  1e9,
		"30KB":                                   30e3,
		"5%":                                     5, // shares are written as fractions
		"1/256":                                  1. / 256,
		"1 + 2 * 3":                              7,
		"(1 + 2) * 3":                            9,
		"8 - 4 - 2":                              2,
		"64 / 4 / 2":                             8,
		"2 * 3 ^ 2":                              18,
		"min(1, 2) + max(1, 2)":                  3,
		"min( 100Mbps , line_rate / 10 )":        100e6,
		"26000B * max(line_rate, 10Gbps)/10Gbps": 104e3,
		"kmin * 3 / 2":                           9000,
		"marking.kmax":                           2e5,
		"15 * (min(i, 6) / 6) ^ 2":               3.75,
		"  i  ":                                  3,
		"1/0":                                    math.Inf(1),
	} {
		t.Run(text, func(t *testing.T) {
			if text == "5%" {
				_, err := parseFormula(text)
				qt.Assert(t, qt.ErrorMatches(err, `formula "5%": "%" is left over`))
				return
			}
			f, err := parseFormula(text)
			qt.Assert(t, qt.IsNil(err))
			got, err := f.eval(known)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(got, want))
		})
	}
}

func TestNamesOfFormulas(t *testing.T) {
	f, err := parseFormula("min(line_rate / 10, marking.kmax) + i ^ 2")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(f.names, []string{"line_rate", "marking.kmax", "i"}))
}

func TestErrorsOfFormulas(t *testing.T) {
	for text, want := range map[string]string{
		"":             `formula "": want a number, a name or "\(" before ""`,
		"0\x00":        `.*"\\x00" is left over`,
		"1 +":          `.*want a number, a name or "\(" before ""`,
		"1 2":          `formula "1 2": "2" is left over`,
		"(1":           `.*"\)" is missing`,
		"1)":           `.*"\)" is left over`,
		"max(1)":       `.*max wants two arguments`,
		"max(1, 2":     `.*"\)" is missing`,
		"max(1, 2, 3)": `.*"\)" is missing`,
		"mean(1, 2)":   `.*unknown function "mean": want min or max`,
		"5parsec":      `.*"5parsec".*`,
		"1..2":         `.*"1\.\.2".*`,
		"-1":           `.*want a number, a name or "\(" before "-1"`,
		"50 us":        `.*"us" is left over`,
	} {
		t.Run(text, func(t *testing.T) {
			_, err := parseFormula(text)
			qt.Assert(t, qt.ErrorMatches(err, want))
		})
	}

	f, err := parseFormula("1 + line_rat")
	qt.Assert(t, qt.IsNil(err))
	_, err = f.eval(known)
	qt.Assert(t, qt.ErrorMatches(err, "there is no line_rat"))
}

// Whatever the text is, a formula parses or is refused. What parses is evaluated, and parses in
// parentheses to the same.
func FuzzFormula(f *testing.F) {
	for _, o := range builtinObjects(f) {
		for _, p := range o.Params {
			f.Add(p.Default)
			f.Add(p.Range)
		}
	}
	f.Add("((1")
	f.Add("max(1, min(2, i)) ^ 2 - 1us/0")
	f.Fuzz(func(t *testing.T, text string) {
		parsed, err := parseFormula(text)
		if err != nil {
			return
		}
		lookup := func(string) (float64, error) { return 2, nil }
		value, err := parsed.eval(lookup)
		qt.Assert(t, qt.IsNil(err))

		again, err := parseFormula("(" + text + ")")
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(slices.Equal(again.names, parsed.names)))
		valueAgain, err := again.eval(lookup)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(value == valueAgain || math.IsNaN(value) && math.IsNaN(valueAgain)))
	})
}
