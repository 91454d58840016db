// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/lazy"
)

// Param is a parameter of a scheme, as its C source describes it (bpf/algo/param.h).
type Param struct {
	Key     string // in files; in a mapping with its key, such as marking.kmin
	Doc     string
	Kind    Kind
	Range   string   // "1us to 1s"; empty for flags and choices
	Default string   // a value or a formula
	OnHosts string   // the default on production hosts, if it is another; else empty
	Auto    string   // the formula that users choose by writing auto; empty if they can't
	Choices []string // of a choice

	place
	byDefault, low, high *formula
	onHosts, auto        *formula
	aboveLow, belowHigh  bool
	ifZero, divides      *formula
	onlyTCD              bool
	choices              []choice
}

// place locates a value in the object's variables.
type place struct {
	variable string
	offset   uint32
	format   format
}

// derived is a field whose value follows from others: users do not set it.
type derived struct {
	place
	name    string
	formula *formula
	entries uint32 // of a table, whose formula uses the index i; 0 if it is not a table
}

// tags holds the annotations of a field by kind.
type tags map[string]string

// parseTags reads annotations "what:text".
func parseTags(list []string) tags {
	t := tags{}
	for _, tag := range list {
		what, text, _ := strings.Cut(tag, ":")
		if what == "of" {
			field, rest, _ := strings.Cut(text, ":")
			what, text, _ = strings.Cut(rest, ":")
			what = "of:" + field + ":" + what
		}
		t[what] = text
	}
	return t
}

// The annotations that variables and fields may have (bpf/algo/param.h, bpf/include/scheme.h).
var (
	variableTags = []string{"prefix", "scheme"}
	fieldTags    = []string{
		"doc", "range", "default", "key", "from", "zero", "with_tcd", "table", "divides", "stat",
		"host", "auto",
	}
)

// check fails for unknown kinds of annotation.
func (t tags) check(known []string) error {
	for _, what := range slices.Sorted(maps.Keys(t)) {
		if !slices.Contains(known, what) && !strings.HasPrefix(what, "of:") {
			return fmt.Errorf("unknown annotation %q: want one of %s", what,
				strings.Join(known, ", "))
		}
	}
	return nil
}

// checkFields fails for annotations about fields that the struct does not have.
func (t tags) checkFields(s *btf.Struct) error {
	for _, what := range slices.Sorted(maps.Keys(t)) {
		about, ok := strings.CutPrefix(what, "of:")
		if !ok {
			continue
		}
		field, _, _ := strings.Cut(about, ":")
		if !slices.ContainsFunc(s.Members, func(m btf.Member) bool { return m.Name == field }) {
			return fmt.Errorf("annotation of field %q: struct %s has none of the name", field,
				s.Name)
		}
	}
	return nil
}

// of returns the annotations of a field in a member: those that the member gives override the
// field's own.
func (t tags) of(field string, own tags) tags {
	merged := tags{}
	maps.Copy(merged, own)
	for what, text := range t {
		if about, ok := strings.CutPrefix(what, "of:"+field+":"); ok {
			if about == "default" || about == "doc" {
				delete(merged, "from") // here users set it
			}
			merged[about] = text
		}
	}
	return merged
}

// fields visits the annotated fields of a struct and of the structs in it. member holds annotations
// that override those of the fields.
func fields(s *btf.Struct, base uint32, member tags,
	visit func(btf.Member, uint32, tags) error) error {
	return fieldsWithin(s, base, member, visit, maxNesting)
}

// maxNesting limits how deep structs are nested. Only a damaged object has more.
const maxNesting = 16

func fieldsWithin(
	s *btf.Struct, base uint32, member tags, visit func(btf.Member, uint32, tags) error, depth int,
) error {
	if depth == 0 {
		return fmt.Errorf("struct %s is nested too deep", s.Name)
	}
	if err := member.checkFields(s); err != nil {
		return err
	}
	for _, m := range s.Members {
		own := member.of(m.Name, parseTags(m.Tags))
		offset := base + m.Offset.Bytes()
		if inner, ok := btf.UnderlyingType(m.Type).(*btf.Struct); ok {
			if err := fieldsWithin(inner, offset, own, visit, depth-1); err != nil {
				return err
			}
			continue
		}
		if err := visit(m, offset, own); err != nil {
			return fmt.Errorf("%s.%s: %w", s.Name, m.Name, err)
		}
	}
	return nil
}

// formatOf returns the C format of a type, and its kind and choices if the type determines them.
func formatOf(t btf.Type) (format, Kind, []choice, error) {
	size, err := btf.Sizeof(t)
	if err != nil {
		return format{}, "", nil, err
	}
	if size < 1 || size > 8 {
		return format{}, "", nil, fmt.Errorf("%d bytes: want an integer or an enum of 1 to 8", size)
	}
	f := format{size: uint32(size)}
	if def, ok := t.(*btf.Typedef); ok {
		if known, ok := formats[def.Name]; ok {
			f.fraction, f.scale, f.special = known.fraction, known.scale, def.Name
			return f, known.kind, nil, nil
		}
	}
	switch under := btf.UnderlyingType(t).(type) {
	case *btf.Enum:
		return f, KindChoice, choicesOf(under), nil
	case *btf.Int:
		if under.Encoding == btf.Bool {
			return f, KindFlag, nil, nil
		}
		f.signed = under.Encoding == btf.Signed
		return f, "", nil, nil
	default:
		return f, "", nil, fmt.Errorf("it is a %v: want an integer or an enum", under)
	}
}

// choicesOf returns the names of an enum in lower case, without their common prefix of words.
func choicesOf(e *btf.Enum) []choice {
	common := ""
	if len(e.Values) > 0 {
		common = e.Values[0].Name
	}
	for _, v := range e.Values {
		for !strings.HasPrefix(v.Name, common) {
			common = common[:len(common)-1]
		}
	}
	common = common[:strings.LastIndexByte(common, '_')+1]
	var all []choice
	for _, v := range e.Values {
		all = append(all, choice{strings.ToLower(strings.TrimPrefix(v.Name, common)), v.Value})
	}
	return all
}

// otherUnit is a unit at the end of a C name that no value has.
var otherUnit = lazy.Regexp(`_([um]s|[kmg]bps|[kmg]b)$`)

// newParam makes a parameter from a field's annotations.
func newParam(f member, at place, prefix string, t tags) (p Param, err error) {
	p = Param{Doc: t["doc"], Range: t["range"], Default: t["default"], OnHosts: t["host"],
		Auto: t["auto"], place: at, choices: f.choices}
	byName, bare := kindOfName(f.name)
	p.Kind = cmp.Or(f.kind, byName)
	if unit := otherUnit().FindString(f.name); unit != "" && p.Kind == KindCount {
		return p, fmt.Errorf("its name ends in %q, and C has times in ns, rates in bit/s and "+
			"sizes in bytes (hint: end it in _ns, _bps or _bytes)", unit)
	}
	p.Key = prefix + bare
	if key, ok := t["key"]; ok {
		p.Key = prefix + key
	}
	if err = p.limitChoices(); err != nil {
		return p, err
	}
	_, p.onlyTCD = t["with_tcd"]
	if p.Kind == KindChoice || p.Kind == KindFlag {
		_, err = p.Kind.parse(p.Default, p.choices)
		if err == nil && p.OnHosts != "" {
			_, err = p.Kind.parse(p.OnHosts, p.choices)
		}
		return p, err
	}
	return p, p.parseFormulas(t)
}

// limitChoices keeps the choices that the range names, such as "ai or hai"; all if the range is
// empty.
func (p *Param) limitChoices() error {
	if p.Kind == KindChoice && p.Range != "" {
		var left []choice
		for name := range strings.SplitSeq(p.Range, " or ") {
			i := slices.IndexFunc(p.choices, func(c choice) bool { return c.name == name })
			if i < 0 {
				return fmt.Errorf("range %q: %q is none of %s", p.Range, name,
					strings.Join(names(p.choices), ", "))
			}
			left = append(left, p.choices[i])
		}
		p.choices, p.Range = left, ""
	}
	p.Choices = names(p.choices)
	return nil
}

func (p *Param) parseFormulas(t tags) (err error) {
	low, high, ok := strings.Cut(p.Range, " to ")
	if !ok {
		return fmt.Errorf("range %q: want LOW to HIGH", p.Range)
	}
	low, p.aboveLow = strings.CutPrefix(low, "above ")
	high, p.belowHigh = strings.CutPrefix(high, "below ")
	for _, f := range []struct {
		to   **formula
		text string
	}{
		{&p.low, low}, {&p.high, high}, {&p.byDefault, p.Default}, {&p.ifZero, t["zero"]},
		{&p.divides, t["divides"]}, {&p.onHosts, p.OnHosts}, {&p.auto, p.Auto},
	} {
		isOptional := f.to != &p.low && f.to != &p.high && f.to != &p.byDefault
		if f.text == "" && isOptional {
			continue
		}
		if *f.to, err = parseFormula(f.text); err != nil {
			return err
		}
	}
	return nil
}

// Auto is what users write for the value of a parameter's formula for auto.
const Auto = "auto"

// Parse reads a value as files write it.
func (p *Param) Parse(text string) (Value, error) {
	if text == Auto && p.auto != nil {
		return Value{Kind: p.Kind, auto: true}, nil
	}
	if p.Kind == KindChoice {
		return chosen(p.Key, text, p.choices)
	}
	return p.Kind.parse(text, nil)
}
