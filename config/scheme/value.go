// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
)

// Kind is the unit of a parameter or statistic, which decides how files write it.
type Kind string

// The kinds.
const (
	KindRate   Kind = "rate"   // bit/s, written 40Gbps
	KindTime   Kind = "time"   // ns, written 50us
	KindBytes  Kind = "size"   // bytes, written 64KB
	KindRatio  Kind = "ratio"  // a number without unit, written 0.5, 1/128 or 5%
	KindCount  Kind = "count"  // a whole number
	KindFlag   Kind = "flag"   // true or false
	KindChoice Kind = "choice" // one of some names
)

// Value is the value of a parameter or statistic.
type Value struct {
	Kind Kind
	// Number is in bit/s, ns, bytes or without unit; 1 is true; of a choice it is its number in C.
	Number float64
	choice string
	auto   bool // Number is to be computed from the network
}

// IsAuto reports whether the value is to be computed from the network.
func (v Value) IsAuto() bool { return v.auto }

// String writes the value as files have it.
func (v Value) String() string {
	if v.auto {
		return Auto
	}
	switch v.Kind {
	case KindRate:
		return config.Rate(v.Number).String()
	case KindTime:
		return config.Duration(v.Number).String()
	case KindBytes:
		return config.Bytes(v.Number).String()
	case KindRatio:
		return config.Ratio(v.Number).String()
	case KindFlag:
		return strconv.FormatBool(v.Number != 0)
	case KindChoice:
		return v.choice
	default:
		return strconv.FormatFloat(v.Number, 'f', -1, 64)
	}
}

// choice is a name that a file may give, and its number in C.
type choice struct {
	name   string
	number uint64
}

func names(choices []choice) []string {
	var all []string
	for _, c := range choices {
		all = append(all, c.name)
	}
	return all
}

// parse reads a value as a file writes it.
func (k Kind) parse(text string, choices []choice) (Value, error) {
	v := Value{Kind: k}
	var err error
	switch k {
	case KindRate:
		var r config.Rate
		r, err = config.ParseRate(text)
		v.Number = float64(r)
	case KindTime:
		var d config.Duration
		d, err = config.ParseDuration(text)
		v.Number = float64(d)
	case KindBytes:
		var b config.Bytes
		b, err = config.ParseBytes(text)
		v.Number = float64(b)
	case KindRatio:
		var r config.Ratio
		r, err = config.ParseRatio(text)
		v.Number = float64(r)
	case KindCount:
		var n uint64
		if n, err = strconv.ParseUint(text, 10, 32); err != nil {
			err = config.Bad(fmt.Sprintf("%q is not a whole number in range", text), "")
		}
		v.Number = float64(n)
	case KindFlag:
		if text != "true" && text != "false" {
			err = config.Bad(fmt.Sprintf("invalid value %q: want true or false", text), "")
		}
		v.Number = float64(boolToInt(text == "true"))
	case KindChoice:
		return chosen("value", text, choices)
	}
	return v, err
}

// chosen returns the choice with this name; errors call it what.
func chosen(what, text string, choices []choice) (Value, error) {
	i := slices.IndexFunc(choices, func(c choice) bool { return c.name == text })
	if i < 0 {
		hint := config.Suggest(text, names(choices))
		return Value{}, config.Bad(fmt.Sprintf("unknown %s %q", what, text), hint)
	}
	return Value{Kind: KindChoice, Number: float64(choices[i].number), choice: text}, nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// format is how C stores a value (bpf/algo/param.h).
type format struct {
	size     uint32 // bytes
	fraction uint   // bits behind the binary point
	scale    float64
	signed   bool
	special  string // typedef of a non-linear scale
}

// The typedefs of bpf/algo/param.h and of algorithms that define the format of a number.
var formats = map[string]struct {
	kind     Kind
	fraction uint
	scale    float64
}{
	"q24":       {KindRatio, 24, 0},
	"wide_q24":  {KindRatio, 24, 0},
	"q10":       {KindRatio, 10, 0},
	"q8":        {KindRatio, 8, 0},
	"permille":  {KindRatio, 0, 1000},
	"halvings":  {KindRatio, 0, 0},
	"flag":      {KindFlag, 0, 0},
	"cct_entry": {KindRatio, 0, 0},
}

// encode converts a number to its C value.
func (f format) encode(number float64) (uint64, error) {
	switch f.special {
	case "halvings":
		return encodeHalvings(number)
	case "cct_entry":
		return encodeShifted(number)
	}
	scaled := math.Ldexp(number, int(f.fraction))
	if f.scale != 0 {
		scaled *= f.scale
	}
	scaled = math.Round(scaled)
	bits := int(8 * f.size)
	if f.signed {
		bits--
	}
	if !(scaled >= 0 && scaled < math.Ldexp(1, bits)) {
		return 0, fmt.Errorf("%g does not fit %d bits", number, bits)
	}
	return uint64(scaled), nil
}

// hint gives an example of a number that encode accepts.
func (f format) hint() string {
	if f.special == "halvings" {
		return "write 1/16"
	}
	return ""
}

// decode is the inverse of encode. Signed statistics may be negative.
func (f format) decode(n uint64) float64 {
	switch f.special {
	case "halvings":
		return math.Ldexp(1, -int(min(n, 1<<16)))
	case "cct_entry":
		return math.Ldexp(float64(n&(1<<shiftedBits-1)), -int(n>>shiftedBits))
	}
	number := float64(n)
	if unused := 64 - 8*f.size; f.signed {
		number = float64(int64(n<<unused) >> unused)
	}
	v := math.Ldexp(number, -int(f.fraction))
	if f.scale != 0 {
		v /= f.scale
	}
	return v
}

// encodeHalvings returns n for 2^-n.
func encodeHalvings(number float64) (uint64, error) {
	fraction, exponent := math.Frexp(number)
	if fraction != 0.5 || exponent > 1 {
		return 0, fmt.Errorf("%g is not a power of 1/2", number)
	}
	return uint64(1 - exponent), nil
}

// shiftedBits is how many bits of multiplier a cct_entry has.
const shiftedBits = 14

// encodeShifted encodes a number as multiplier / 2^shift, with 2 bits of shift above 14 bits of
// multiplier. It uses the largest shift for which the multiplier fits.
func encodeShifted(number float64) (uint64, error) {
	for shift := 3; shift >= 0; shift-- {
		m := math.Round(math.Ldexp(number, shift))
		if m >= 0 && m < 1<<shiftedBits {
			return uint64(shift)<<shiftedBits | uint64(m), nil
		}
	}
	return 0, fmt.Errorf("%g does not fit %d bits", number, shiftedBits)
}

// put writes the C value into its place; get reads it.
func (f format) put(to []byte, n uint64) {
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], n)
	copy(to[:f.size], b[:])
}

func (f format) get(from []byte) uint64 {
	var b [8]byte
	copy(b[:], from[:f.size])
	return binary.LittleEndian.Uint64(b[:])
}

// Suffixes of C names and the kinds that they stand for.
var unitSuffixes = []struct {
	suffix string
	kind   Kind
}{
	{"_bps", KindRate}, {"_ns", KindTime}, {"_bytes", KindBytes}, {"_packets", KindCount},
}

// kindOfName returns the kind by the unit at the end of a C name, and the name without the unit.
func kindOfName(name string) (Kind, string) {
	for _, u := range unitSuffixes {
		if bare, ok := strings.CutSuffix(name, u.suffix); ok {
			return u.kind, bare
		}
	}
	return KindCount, name
}
