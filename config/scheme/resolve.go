// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config"
)

// Network holds the properties of the network that formulas can use.
type Network struct {
	LineRateBps uint64 // of hosts' links
	BaseRTTNs   uint64 // of the longest path, in propagation delays alone; 0: not known
	PathRTTNs   uint64 // of the longest path, with the time of a frame on each link; 0: not known
	FrameBytes  uint64 // of a full data frame
	Flows       uint64 // that may share a link, an upper bound; 0: not known
	Host        bool   // a production host, not an experiment: parameters have other defaults
}

// Settings holds the parameters of a scheme that a file gives.
type Settings struct {
	// Set names the preset that the defaults are from; empty: the scheme's first.
	Set string
	// Given are the values in the file, by key.
	Given map[string]Value
}

// Problem says what is wrong with a value.
type Problem struct {
	Key       string
	Msg, Hint string
}

// Values are the values of all parameters of an object.
type Values struct {
	object *Object
	set    string
	byKey  map[string]Value
	autos  []*formula // of the parameters that are computed from the network
}

// Set returns the name of the preset that the defaults are from; empty if the scheme has none.
func (v *Values) Set() string { return v.set }

// Keys returns the keys of all parameters, in the order of the alphabet.
func (v *Values) Keys() []string { return slices.Sorted(maps.Keys(v.byKey)) }

// Get returns the value of a key. It panics if the scheme has no such parameter.
func (v *Values) Get(key string) Value {
	value, ok := v.byKey[key]
	if !ok {
		panic(fmt.Sprintf("scheme: control %s has no parameter %q", v.object.Control, key))
	}
	return value
}

// Has reports whether the scheme has a parameter.
func (v *Values) Has(key string) bool {
	_, ok := v.byKey[key]
	return ok
}

// Resolve returns the value of every parameter, from the file, the preset or its default, and a
// problem for each value that is out of range.
func (o *Object) Resolve(s Settings, n Network) (*Values, []Problem) {
	v := &Values{object: o, byKey: map[string]Value{}}
	problems := o.checkGiven(s.Given)
	set, err := o.preset(s.Set)
	if err != nil {
		problems = append(problems, Problem{"set", err.Error(),
			config.Suggest(s.Set, o.PresetNames())})
	}
	v.set = set.Name
	r := resolver{values: v, given: s.Given, preset: set, network: n, open: map[string]bool{}}
	for i := range o.Params {
		p := &o.Params[i]
		if _, err := r.value(p.Key); err != nil {
			problems = append(problems, Problem{p.Key, err.Error(), ""})
		}
	}
	return v, append(problems, r.checkAll()...)
}

// checkGiven returns the problems that do not depend on the network: unknown parameters and wrong
// kinds.
func (o *Object) checkGiven(given map[string]Value) []Problem {
	var problems []Problem
	for _, key := range slices.Sorted(maps.Keys(given)) {
		p := o.Param(key)
		if p == nil {
			hint := config.Suggest(key, o.Keys())
			problems = append(problems, Problem{key, "there is no such parameter", hint})
			continue
		}
		if v := given[key]; v.Kind != p.Kind {
			msg, hint := fmt.Sprintf("it is a %s", v.Kind), fmt.Sprintf("want a %s", p.Kind)
			problems = append(problems, Problem{key, msg, hint})
		}
	}
	return problems
}

// Uses reports whether a value of the sender depends on a property of the network with these
// values: line_rate, base_rtt, frame or flows.
func (v *Values) Uses(name string) bool {
	uses := func(f *formula) bool { return f != nil && strings.Contains(f.text, name) }
	return slices.ContainsFunc(v.autos, uses) || slices.ContainsFunc(v.object.derived,
		func(d derived) bool { return d.isSenderValue() && uses(d.formula) }) ||
		slices.ContainsFunc(v.object.Params, func(p Param) bool {
			return p.isSenderValue() && v.Get(p.Key).Number == 0 && uses(p.ifZero)
		})
}

// resolver evaluates values that depend on each other.
type resolver struct {
	values  *Values
	given   map[string]Value
	preset  Preset
	network Network
	open    map[string]bool // being evaluated
}

var errCycle = errors.New("its default depends on itself")

// value returns the value of a parameter, which it evaluates once.
func (r *resolver) value(key string) (Value, error) {
	if v, ok := r.values.byKey[key]; ok {
		return v, nil
	}
	p := r.values.object.Param(key)
	if p == nil {
		return Value{}, fmt.Errorf("there is no %q", key)
	}
	if r.open[key] {
		return Value{}, errCycle
	}
	r.open[key] = true
	v, err := r.evaluate(p)
	if err != nil {
		return Value{}, err
	}
	r.values.byKey[key] = v
	return v, nil
}

func (r *resolver) evaluate(p *Param) (Value, error) {
	v, isGiven := r.given[p.Key]
	if isGiven && !v.auto {
		return v, nil
	}
	text, f := p.Default, p.byDefault
	if r.network.Host && p.OnHosts != "" {
		text, f = p.OnHosts, p.onHosts
	}
	if v, ok := r.preset.Values[p.Key]; ok {
		text, f = v.Is, r.preset.formulas[p.Key]
	}
	if isGiven {
		f = p.auto
		r.values.autos = append(r.values.autos, f)
	}
	if f == nil {
		return p.Kind.parse(text, p.choices)
	}
	number, err := f.eval(r.lookupBeside(p))
	if p.Kind != KindRatio {
		number = math.Trunc(number)
	}
	if err == nil && !isGiven {
		number = r.raise(p, number)
	}
	if err == nil && (math.IsNaN(number) || math.IsInf(number, 0)) {
		err = fmt.Errorf("%q is no finite number here", f.text)
	}
	return Value{Kind: p.Kind, Number: number}, err
}

// raise returns a default, or the least value in its range if the default is below: shares of slow
// links, such as a tenth of 1 kbit/s, are. Where another parameter bounds the range, that one may
// be what is wrong.
func (r *resolver) raise(p *Param, number float64) float64 {
	if p.low == nil || p.aboveLow || len(r.rangeKeys(p)) > 0 {
		return number
	}
	low, err1 := p.low.eval(r.lookupBeside(p))
	high, err2 := p.high.eval(r.lookupBeside(p))
	if errors.Join(err1, err2) == nil && low <= high {
		return max(number, low)
	}
	return number
}

// lookup returns the value of a name in a formula: a property of the network or another parameter.
func (r *resolver) lookup(name string) (float64, error) {
	switch name {
	case "line_rate":
		return float64(r.network.LineRateBps), nil
	case "base_rtt":
		return float64(r.network.BaseRTTNs), nil
	case "path_rtt":
		return float64(r.network.PathRTTNs), nil
	case "frame":
		return float64(r.network.FrameBytes), nil
	case "flows":
		return float64(max(r.network.Flows, 1)), nil
	}
	v, err := r.value(name)
	return v.Number, err
}

// lookupBeside is lookup that tries parameters of the same mapping first.
func (r *resolver) lookupBeside(p *Param) lookup {
	return func(name string) (float64, error) { return r.lookup(r.keyBeside(p, name)) }
}

// keyBeside returns the key that a name in a parameter's formula means.
func (r *resolver) keyBeside(p *Param, name string) string {
	mapping := p.Key[:strings.LastIndexByte(p.Key, '.')+1]
	if mapping != "" && r.values.object.Param(mapping+name) != nil {
		return mapping + name
	}
	return name
}

// checkAll returns the values that are out of range. Of two values that contradict each other it
// names one.
func (r *resolver) checkAll() []Problem {
	var problems []Problem
	wrong := map[string]bool{}
	check := func(p *Param) {
		if problem := r.check(p); problem != nil {
			problems = append(problems, *problem)
			wrong[p.Key] = true
		}
	}
	params := r.values.object.Params
	for i := range params {
		if len(r.rangeKeys(&params[i])) == 0 {
			check(&params[i])
		}
	}
	for i := range params {
		keys := r.rangeKeys(&params[i])
		if len(keys) > 0 && !slices.ContainsFunc(keys,
			func(key string) bool { return wrong[key] }) {
			check(&params[i])
		}
	}
	return problems
}

// rangeKeys returns the other parameters that a range depends on.
func (r *resolver) rangeKeys(p *Param) []string {
	var keys []string
	for _, f := range []*formula{p.low, p.high} {
		if f == nil {
			continue
		}
		for _, name := range f.names {
			if key := r.keyBeside(p, name); r.values.object.Param(key) != nil {
				keys = append(keys, key)
			}
		}
	}
	return keys
}

// check returns the problem of a value; nil if it has none.
func (r *resolver) check(p *Param) *Problem {
	v, ok := r.values.byKey[p.Key]
	if !ok {
		return nil
	}
	isChosen := func(c choice) bool { return float64(c.number) == v.Number }
	if p.Kind == KindChoice && !slices.ContainsFunc(p.choices, isChosen) {
		msg := fmt.Sprintf("there is no choice %g", v.Number)
		return &Problem{p.Key, msg, strings.Join(p.Choices, ", ")}
	}
	if p.low == nil {
		return nil
	}
	low, err1 := p.low.eval(r.lookupBeside(p))
	high, err2 := p.high.eval(r.lookupBeside(p))
	if err := errors.Join(err1, err2); err != nil {
		return &Problem{p.Key, err.Error(), ""}
	}
	isWithin := v.Number >= low && v.Number <= high // false for NaN
	if !isWithin || p.aboveLow && v.Number == low || p.belowHigh && v.Number == high {
		hint := r.rangeInWords(p, low, high)
		if low > high {
			hint = "no value is right here: the link is too slow for the scheme's other parameters"
		}
		return &Problem{p.Key, fmt.Sprintf("%s is out of range", v), hint}
	}
	if p.divides != nil {
		whole, err := p.divides.eval(r.lookup)
		if err == nil && math.Mod(whole, v.Number) != 0 {
			msg := fmt.Sprintf("%s does not divide %s", v, Value{Kind: p.Kind, Number: whole})
			return &Problem{p.Key, msg, divisorsInWords(p.Kind, whole, v.Number, low, high)}
		}
	}
	if _, err := p.format.encode(v.Number); err != nil {
		return &Problem{p.Key, err.Error(), p.format.hint()}
	}
	return nil
}

// maxDivisorSteps bounds how far from a value its next divisors are looked for.
const maxDivisorSteps = 100_000

// divisorsInWords names what divides whole next to a value, within a range; "" if that is far.
func divisorsInWords(kind Kind, whole, value, low, high float64) string {
	find := func(from, step float64) string {
		for i := range maxDivisorSteps {
			v := from + float64(i)*step
			if v < max(low, 1) || v > high {
				break
			}
			if math.Mod(whole, v) == 0 {
				return Value{Kind: kind, Number: v}.String()
			}
		}
		return ""
	}
	below, above := find(math.Floor(value), -1), find(math.Ceil(value), 1)
	switch {
	case below != "" && above != "":
		return below + " or " + above + " do"
	case below+above != "":
		return below + above + " does"
	default:
		return ""
	}
}

// rangeInWords writes the range with the present values of its bounds: "0ns to t_high = 4us".
func (r *resolver) rangeInWords(p *Param, low, high float64) string {
	bound := func(f *formula, number float64) string {
		text := Value{Kind: p.Kind, Number: number}.String()
		if r.values.object.Param(r.keyBeside(p, f.text)) != nil {
			text = f.text + " = " + text
		}
		return text
	}
	text := ""
	if p.aboveLow {
		text = "above "
	}
	text += bound(p.low, low) + " to "
	if p.belowHigh {
		text += "below "
	}
	return text + bound(p.high, high)
}

// Bytes returns a variable of the object in C's layout; nil if the object has no such variable. tcd
// is true if switches mark by TCD.
func (v *Values) Bytes(variable string, n Network, tcd bool) ([]byte, error) {
	o := v.object
	size, ok := o.sizes[variable]
	if !ok {
		return nil, nil
	}
	out := make([]byte, size)
	r := resolver{values: &Values{object: o, byKey: maps.Clone(v.byKey)}, network: n,
		open: map[string]bool{}}
	for i := range o.Params {
		p := &o.Params[i]
		if p.variable != variable || p.onlyTCD && !tcd {
			continue
		}
		number := v.byKey[p.Key].Number
		if number == 0 && p.ifZero != nil {
			var err error
			if number, err = p.ifZero.eval(r.lookup); err != nil {
				return nil, fmt.Errorf("%s: %w", p.Key, err)
			}
		}
		if err := p.write(out, number); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Key, err)
		}
	}
	for _, d := range o.derived {
		if d.variable != variable {
			continue
		}
		if err := d.fill(out, &r); err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
	}
	return out, nil
}

func (p place) write(out []byte, number float64) error {
	n, err := p.format.encode(number)
	if err != nil {
		return err
	}
	p.format.put(out[p.offset:], n)
	return nil
}

// fill writes the field, or all entries of the table.
func (d derived) fill(out []byte, r *resolver) error {
	for i := range max(d.entries, 1) {
		number, err := d.formula.eval(func(name string) (float64, error) {
			if name == "i" && d.entries > 0 {
				return float64(i), nil
			}
			return r.lookup(name)
		})
		if err != nil {
			return err
		}
		at := d.place
		at.offset += i * d.format.size
		if err := at.write(out, number); err != nil {
			return err
		}
	}
	return nil
}
