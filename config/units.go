// SPDX-License-Identifier: Apache-2.0

package config

import (
	"fmt"
	"math"
	"math/big"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config/lazy"
)

// Rate is a data rate in bit/s.
type Rate uint64

// Duration is a time in ns. It may be negative.
type Duration int64

// Bytes is an amount of data in bytes.
type Bytes uint64

// Ratio is a number without unit, written as a decimal, a fraction such as 1/128 or a share such as
// 5%.
type Ratio float64

// The units of [Duration].
const (
	Nanosecond  Duration = 1
	Microsecond          = 1000 * Nanosecond
	Millisecond          = 1000 * Microsecond
	Second               = 1000 * Millisecond
)

// unit is a name and how many base units it stands for.
type unit struct {
	name  string
	scale uint64
}

// Units of each kind, largest first.
var (
	rateUnits     = []unit{{"Tbps", 1e12}, {"Gbps", 1e9}, {"Mbps", 1e6}, {"kbps", 1e3}, {"bps", 1}}
	durationUnits = []unit{{"s", 1e9}, {"ms", 1e6}, {"us", 1e3}, {"ns", 1}}
	bytesUnits    = []unit{{"GB", 1e9}, {"MB", 1e6}, {"KB", 1e3}, {"B", 1}}
	binaryUnits   = []unit{{"MiB", 1 << 20}, {"KiB", 1 << 10}}
)

// valueError says why a value can't be used, and what to write instead.
type valueError struct {
	msg, hint string
}

// Bad returns the error of a value that can't be used; the hint says what to write instead.
func Bad(msg, hint string) error { return &valueError{msg, hint} }

func (e *valueError) Error() string {
	return withHint(e.msg, e.hint)
}

func withHint(msg, hint string) string {
	if hint == "" {
		return msg
	}
	return msg + " (hint: " + hint + ")"
}

// ParseRate parses a rate such as 40Gbps. The units are bps, kbps, Mbps and Gbps,
// powers of 1000.
func ParseRate(text string) (Rate, error) {
	n, err := parseQuantity(text, rateUnits, "write a rate as 40Gbps")
	if err != nil {
		return 0, err
	}
	if !n.IsUint64() {
		return 0, Bad(fmt.Sprintf("rate %q is out of range", text), "write a rate as 40Gbps")
	}
	return Rate(n.Uint64()), nil
}

// ParseDuration parses a time such as 5us or -1ms. The units are ns, us, ms and s.
func ParseDuration(text string) (Duration, error) {
	n, err := parseQuantity(text, durationUnits, "write a time as 5us")
	if err != nil {
		return 0, err
	}
	if !n.IsInt64() {
		return 0, Bad(fmt.Sprintf("time %q is out of range", text), "write a time as 5us")
	}
	return Duration(n.Int64()), nil
}

// ParseBytes parses an amount of data such as 64KB. The units are B, KB = 1000 B
// and so on to MB and GB, and KiB = 1024 B and MiB = 1024 KiB.
func ParseBytes(text string) (Bytes, error) {
	n, err := parseQuantity(text, slices.Concat(bytesUnits, binaryUnits), "write a size as 64KB")
	if err != nil {
		return 0, err
	}
	if !n.IsUint64() {
		return 0, Bad(fmt.Sprintf("size %q is out of range", text), "write a size as 64KB")
	}
	return Bytes(n.Uint64()), nil
}

// ParseRatio parses a number without unit, such as 0.5, 1/128 or 5%.
func ParseRatio(text string) (Ratio, error) {
	number, isShare := strings.CutSuffix(text, "%")
	num, den, isFraction := strings.Cut(number, "/")
	n, ok := parseDecimal(num)
	if !ok {
		return 0, Bad(fmt.Sprintf("%q is not a number", text), "write 0.5 or 1/128")
	}
	if isFraction {
		d, ok := parseDecimal(den)
		if !ok || d.Sign() == 0 {
			return 0, Bad(fmt.Sprintf("%q is not a fraction", text), "write 0.5 or 1/128")
		}
		n.Quo(n, d)
	}
	if isShare {
		n.Quo(n, big.NewRat(100, 1))
	}
	f, _ := n.Float64()
	return Ratio(f), nil
}

// decimal matches numbers without exponent: 1e999999999 would be a very long number.
var decimal = lazy.Regexp(`^-?[0-9]{1,20}(\.[0-9]{1,20})?$`)

func parseDecimal(text string) (*big.Rat, bool) {
	if !decimal().MatchString(text) {
		return nil, false
	}
	return new(big.Rat).SetString(text)
}

// parseQuantity returns a number with unit in base units, exactly.
func parseQuantity(text string, units []unit, example string) (*big.Int, error) {
	if text == "0" {
		return new(big.Int), nil
	}
	i := strings.LastIndexAny(text, "0123456789.") + 1
	n, ok := parseDecimal(text[:i])
	if !ok {
		return nil, Bad(fmt.Sprintf("%q is not a number with a unit", text), example)
	}
	u, err := findUnit(text[i:], units, example)
	if err != nil {
		return nil, fmt.Errorf("%q: %w", text, err)
	}
	n.Mul(n, new(big.Rat).SetFrac(new(big.Int).SetUint64(u.scale), big.NewInt(1)))
	if !n.IsInt() {
		return nil, Bad(fmt.Sprintf("%q is not a whole number of %s", text, baseUnit(units)),
			example)
	}
	return n.Num(), nil
}

func findUnit(name string, units []unit, example string) (unit, error) {
	for _, u := range units {
		if u.name == name {
			return u, nil
		}
	}
	if name == "" {
		return unit{}, Bad("unit is missing", example)
	}
	for _, u := range units {
		if strings.EqualFold(u.name, strings.TrimSpace(name)) {
			return unit{}, Bad(fmt.Sprintf("unknown unit %q", name),
				fmt.Sprintf("did you mean %q?", u.name))
		}
	}
	return unit{}, Bad(fmt.Sprintf("unknown unit %q", name), example)
}

func baseUnit(units []unit) string {
	for _, u := range units {
		if u.scale == 1 {
			return u.name
		}
	}
	return ""
}

// String returns the rate exactly, in the largest unit that is not larger than it.
func (r Rate) String() string {
	return formatExact(uint64(r), rateUnits)
}

// String returns the size exactly, in the largest decimal unit that is not larger than it.
func (b Bytes) String() string {
	return formatExact(uint64(b), bytesUnits)
}

// String returns the time exactly, in the largest unit that is not larger than it.
func (d Duration) String() string {
	if d < 0 {
		return "-" + formatExact(-uint64(d), durationUnits)
	}
	return formatExact(uint64(d), durationUnits)
}

// String returns the shortest decimal that is this ratio.
func (r Ratio) String() string {
	return strconv.FormatFloat(float64(r), 'f', -1, 64)
}

func formatExact(n uint64, units []unit) string {
	u := units[len(units)-1]
	for _, candidate := range units {
		if n >= candidate.scale {
			u = candidate
			break
		}
	}
	text := strconv.FormatUint(n/u.scale, 10)
	if rest := n % u.scale; rest != 0 {
		digits := len(strconv.FormatUint(u.scale, 10)) - 1
		text += "." + strings.TrimRight(fmt.Sprintf("%0*d", digits, rest), "0")
	}
	return text + u.name
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (r *Rate) UnmarshalYAML(n *yaml.Node) error {
	return UnmarshalScalar(r, n, ParseRate)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (d *Duration) UnmarshalYAML(n *yaml.Node) error {
	return UnmarshalScalar(d, n, ParseDuration)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (b *Bytes) UnmarshalYAML(n *yaml.Node) error {
	return UnmarshalScalar(b, n, ParseBytes)
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (r *Ratio) UnmarshalYAML(n *yaml.Node) error {
	return UnmarshalScalar(r, n, ParseRatio)
}

// UnmarshalScalar reads a single value.
func UnmarshalScalar[T any](dst *T, n *yaml.Node, parse func(string) (T, error)) error {
	if n.Kind != yaml.ScalarNode {
		return Bad("want a single value, not a list or a mapping", "")
	}
	v, err := parse(n.Value)
	if err != nil {
		return err
	}
	*dst = v
	return nil
}

// Unit is what a [Quantity] counts.
type Unit string

// The units of a quantity.
const (
	UnitCount Unit = "count"
	UnitShare Unit = "share"
	UnitTime  Unit = "time"
	UnitRate  Unit = "rate"
	UnitBytes Unit = "size"
)

// Quantity is a number that carries its unit.
type Quantity struct {
	Value float64 // ns, bit/s, bytes, or a plain number; 1 is a share of 100%
	Unit  Unit
}

// otherUnit is a number with letters behind it.
var otherUnit = lazy.Regexp(`^[0-9.]+ *[A-Za-z]+$`)

// ParseQuantity parses a time (2.6ms), a rate (6Gbps), a size (64KB), a share (5%) or a count (3).
func ParseQuantity(text string) (Quantity, error) {
	switch {
	case strings.HasSuffix(text, "bps"):
		r, err := ParseRate(text)
		return Quantity{float64(r), UnitRate}, err
	case strings.HasSuffix(text, "s"):
		d, err := ParseDuration(text)
		return Quantity{float64(d), UnitTime}, err
	case strings.HasSuffix(text, "%"):
		r, err := ParseRatio(text)
		return Quantity{float64(r), UnitShare}, err
	case strings.HasSuffix(text, "B"):
		b, err := ParseBytes(text)
		return Quantity{float64(b), UnitBytes}, err
	case otherUnit().MatchString(text):
		return Quantity{}, Bad(fmt.Sprintf("%q has an unknown unit", text),
			"write a time as 5us, a rate as 40Gbps, a size as 64KB")
	default:
		r, err := ParseRatio(text)
		return Quantity{float64(r), UnitCount}, err
	}
}

// String returns the quantity in its largest fitting unit, to 4 significant
// digits; a whole number is exact.
func (q Quantity) String() string {
	switch q.Unit {
	case UnitTime:
		return formatRounded(q.Value, durationUnits)
	case UnitRate:
		return formatRounded(q.Value, rateUnits)
	case UnitBytes:
		return formatRounded(q.Value, bytesUnits)
	case UnitShare:
		return strconv.FormatFloat(100*q.Value, 'g', 4, 64) + "%"
	default:
		if q.Value == math.Trunc(q.Value) {
			return strconv.FormatFloat(q.Value, 'f', -1, 64)
		}
		return strconv.FormatFloat(q.Value, 'g', 4, 64)
	}
}

func formatRounded(v float64, units []unit) string {
	u := units[len(units)-1]
	for _, candidate := range units {
		if math.Abs(v) >= float64(candidate.scale) {
			u = candidate
			break
		}
	}
	return strconv.FormatFloat(v/float64(u.scale), 'g', 4, 64) + u.name
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (q *Quantity) UnmarshalYAML(n *yaml.Node) error {
	return UnmarshalScalar(q, n, ParseQuantity)
}
