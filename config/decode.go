// SPDX-License-Identifier: Apache-2.0

// Package config decodes YAML files strictly. It reports all mistakes of a file at once, each with
// its line, its column and a hint.
package config

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config/lazy"
)

// Error is one mistake in a file.
type Error struct {
	File      string
	Line, Col int    // from 1; 0 if unknown
	Msg       string // what is wrong
	Hint      string // what to do about it; may be empty
}

// Error returns "file:line:col: message (hint: what to do)", without what is unknown.
func (e *Error) Error() string {
	pos := e.File
	if e.Line > 0 {
		pos += ":" + strconv.Itoa(e.Line)
	}
	if e.Col > 0 {
		pos += ":" + strconv.Itoa(e.Col)
	}
	if pos == "" {
		return withHint(e.Msg, e.Hint)
	}
	return strings.TrimPrefix(pos, ":") + ": " + withHint(e.Msg, e.Hint)
}

// ErrorsIn returns the mistakes that err joins. Any other error becomes one without a place.
func ErrorsIn(err error) []*Error {
	switch e := err.(type) {
	case interface{ Unwrap() []error }:
		var all []*Error
		for _, one := range e.Unwrap() {
			all = append(all, ErrorsIn(one)...)
		}
		return all
	case *Error:
		return []*Error{e}
	}
	var at *Error
	if next := errors.Unwrap(err); next != nil && errors.As(err, &at) {
		return ErrorsIn(next)
	}
	return []*Error{{Msg: err.Error()}}
}

// Decoder turns YAML into Go values, remembers the position of each value, and collects mistakes.
//
// The strict mode of yaml.v3 has neither columns nor hints.
type Decoder struct {
	File  string                // name in errors
	Nodes map[string]*yaml.Node // by path, such as flows[0].from
	Errs  []*Error
	// Of holds the file names of nodes that come from another file.
	Of map[*yaml.Node]string

	what, start string              // kind of file, and how to start one: for hints
	bad         map[*yaml.Node]bool // values that could not be read
}

// NewDecoder returns a decoder. Hints name what, the kind of file, and start, the keys to begin
// with.
func NewDecoder(file, what, start string) *Decoder {
	return &Decoder{
		File: file, Nodes: make(map[string]*yaml.Node), Of: make(map[*yaml.Node]string), what: what,
		start: "start with " + start, bad: make(map[*yaml.Node]bool),
	}
}

// MaxErrors is the number of errors of a file that Err returns.
const MaxErrors = 200

// Err joins all errors in the order of the file; nil if there are none.
func (d *Decoder) Err() error {
	slices.SortStableFunc(d.Errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if more := len(d.Errs) - MaxErrors; more > 0 {
		d.Errs = append(d.Errs[:MaxErrors], &Error{File: d.File,
			Msg: fmt.Sprintf("%d more errors", more), Hint: "correct these first"})
	}
	joined := make([]error, len(d.Errs))
	for i, e := range d.Errs {
		joined[i] = e
	}
	return errors.Join(joined...)
}

// Has reports whether the file gives the value at path.
func (d *Decoder) Has(path string) bool {
	return d.Nodes[path] != nil
}

// Fail adds an error at the value of path. If the file lacks the value, the error has the position
// of the innermost mapping around it. A value that could not be read gets no further errors.
func (d *Decoder) Fail(path, msg, hint string) {
	at := path
	for at != "" && d.Nodes[at] == nil {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	if d.Nodes[at] == nil {
		d.Errs = append(d.Errs, &Error{File: d.File, Msg: msg, Hint: hint})
		return
	}
	if n := d.Nodes[at]; !d.bad[n] {
		d.FailAt(n, msg, hint)
	}
}

// failValue adds an error at a value that can't be read.
func (d *Decoder) failValue(n *yaml.Node, msg, hint string) {
	d.bad[n] = true
	d.FailAt(n, msg, hint)
}

// FailAt adds an error at the position of a node.
func (d *Decoder) FailAt(n *yaml.Node, msg, hint string) {
	d.Errs = append(d.Errs, &Error{File: cmp.Or(d.Of[n], d.File), Line: n.Line, Col: n.Column,
		Msg: msg, Hint: hint})
}

// yamlLine finds the position in an error of yaml.v3.
var yamlLine = lazy.Regexp(`^yaml: line (\d+): (.*)$`)

// Root returns the top-level mapping of the file; nil after an error.
func (d *Decoder) Root(data []byte) *yaml.Node {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		d.failSyntax(data, err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		d.FailAt(&more, "second document", "write one "+d.what+" per file")
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.FailAt(root, "want a mapping", d.start)
		return nil
	}
	return root
}

// failSyntax adds an error of the YAML parser.
func (d *Decoder) failSyntax(data []byte, err error) {
	if errors.Is(err, io.EOF) {
		d.Errs = append(d.Errs, &Error{File: d.File, Line: 1, Col: 1, Msg: "file is empty",
			Hint: d.start})
		return
	}
	msg, line := strings.TrimPrefix(err.Error(), "yaml: "), 0
	if m := yamlLine().FindStringSubmatch(err.Error()); m != nil {
		line, _ = strconv.Atoi(m[1])
		msg = m[2]
	}
	e := &Error{File: d.File, Msg: msg, Hint: syntaxHint(msg)}
	e.Line, e.Col = syntaxPlace(data, line, msg)
	d.Errs = append(d.Errs, e)
}

// Decode fills in the struct that dst points to.
func (d *Decoder) Decode(n *yaml.Node, dst any) {
	d.value("", n, reflect.ValueOf(dst).Elem())
}

// DecodeAt fills in what dst points to with the value at path.
func (d *Decoder) DecodeAt(path string, n *yaml.Node, dst any) {
	d.value(path, n, reflect.ValueOf(dst).Elem())
}

func (d *Decoder) value(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.Nodes[path] = n
	if n.ShortTag() == "!!null" {
		d.failValue(n, "value is missing", "give a value or remove the key")
		return
	}
	if u, ok := v.Addr().Interface().(yaml.Unmarshaler); ok {
		d.Check(n, u.UnmarshalYAML(n))
		return
	}
	switch v.Kind() {
	case reflect.Struct:
		d.structure(path, n, v)
	case reflect.Slice:
		d.slice(path, n, v)
	case reflect.Map:
		d.mapping(path, n, v)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		d.value(path, n, v.Elem())
	default:
		d.Check(n, scalar(n, v))
	}
}

// Check adds an error about the value at n.
func (d *Decoder) Check(n *yaml.Node, err error) {
	if err == nil {
		return
	}
	var ve *valueError
	if !errors.As(err, &ve) {
		d.failValue(n, err.Error(), "")
		return
	}
	// The hint must be at the end of the text, even if the error is wrapped.
	d.failValue(n, strings.TrimSuffix(err.Error(), withHint("", ve.hint)), ve.hint)
}

func (d *Decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, "want a mapping", "write {key: value}")
		return
	}
	fields := KeyedFields(v.Type())
	extra, _ := v.Addr().Interface().(Extra)
	var extraKeys []string
	if extra != nil {
		extraKeys = extra.ExtraKeys()
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		child := strings.TrimPrefix(path+"."+key.Value, ".")
		field := slices.IndexFunc(fields, func(f Keyed) bool { return f.Key == key.Value })
		isExtra := field < 0 && slices.Contains(extraKeys, key.Value)
		if field < 0 && !isExtra {
			known := slices.Concat(KeysOf(v.Type()), extraKeys)
			d.FailAt(key, fmt.Sprintf("unknown key %q", key.Value), Suggest(key.Value, known))
			meant := Closest(key.Value, KeysOf(v.Type()))
			if meant == "" || ValueIndex(n, meant) >= 0 {
				continue
			}
			// The key is misspelt, not missing: one message is enough.
			field = slices.Index(KeysOf(v.Type()), meant)
			child = strings.TrimPrefix(path+"."+meant, ".")
			if !d.Has(child) {
				d.value(child, val, v.FieldByIndex(fields[field].Index))
			}
			continue
		}
		if d.Has(child) {
			d.FailAt(key, fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
			continue
		}
		if isExtra {
			extra.DecodeExtra(d, child, key.Value, val)
			continue
		}
		d.value(child, val, v.FieldByIndex(fields[field].Index))
	}
}

// ValueIndex returns the index in n.Content of the value of a mapping's key; -1 if n is no mapping
// or lacks the key.
func ValueIndex(n *yaml.Node, key string) int {
	if n.Kind != yaml.MappingNode {
		return -1
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		if n.Content[i].Value == key {
			return i + 1
		}
	}
	return -1
}

// FailedAt reports whether there is an error at the value at path, or at its missing parts.
func (d *Decoder) FailedAt(path string) bool {
	n := d.Nodes[path]
	return n != nil && slices.ContainsFunc(d.Errs, func(e *Error) bool {
		return e.Line == n.Line && e.Col == n.Column && e.File == cmp.Or(d.Of[n], d.File)
	})
}

// Extra is a struct that takes more keys than its fields have.
type Extra interface {
	// ExtraKeys returns these keys.
	ExtraKeys() []string
	// DecodeExtra decodes the value of one of them, which stands at path.
	DecodeExtra(d *Decoder, path, key string, value *yaml.Node)
}

// EachKey calls visit for each key of the mapping at path, with the nodes of the key and its value.
// It adds an error if the node is not a mapping, and for duplicate keys.
func (d *Decoder) EachKey(path string, n *yaml.Node, visit func(key string, at, value *yaml.Node)) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.Nodes[path] = n
	if n.Kind != yaml.MappingNode {
		d.failValue(n, "want a mapping", "write {key: value}")
		return
	}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key := n.Content[i]
		if d.Has(path + "." + key.Value) {
			d.FailAt(key, fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
			continue
		}
		visit(key.Value, key, n.Content[i+1])
	}
}

// IsBad reports whether the value at a node could not be read.
func (d *Decoder) IsBad(n *yaml.Node) bool { return d.bad[n] }

// Text returns the single value at path as it is written.
func (d *Decoder) Text(path string, n *yaml.Node) string {
	var text string
	d.value(path, n, reflect.ValueOf(&text).Elem())
	return text
}

// OneOrMore marks a list type that a file may also write as a single mapping.
type OneOrMore interface{ OneOrMore() }

func (d *Decoder) slice(path string, n *yaml.Node, v reflect.Value) {
	if _, ok := v.Interface().(OneOrMore); ok && n.Kind == yaml.MappingNode {
		n = &yaml.Node{Kind: yaml.SequenceNode, Content: []*yaml.Node{n}}
	}
	if n.Kind != yaml.SequenceNode {
		d.failValue(n, "want a list", "write [a, b], or one item per line after \"- \"")
		return
	}
	v.Set(reflect.MakeSlice(v.Type(), len(n.Content), len(n.Content)))
	for i, item := range n.Content {
		d.value(fmt.Sprintf("%s[%d]", path, i), item, v.Index(i))
	}
}

// mapping fills in a map whose keys the user chooses.
func (d *Decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, "want a mapping", "write {key: value}")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		child := path + "." + key.Value
		if d.Has(child) {
			d.FailAt(key, fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(child, val, item)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
}

// FillFrom copies to v, the struct at path, the values of defaults that the file does not give.
func (d *Decoder) FillFrom(path string, v, defaults reflect.Value) {
	for _, f := range KeyedFields(v.Type()) {
		at := path + "." + f.Key
		field, value := v.FieldByIndex(f.Index), defaults.FieldByIndex(f.Index)
		switch {
		case !d.Has(at):
			field.Set(value)
		case field.Kind() == reflect.Struct:
			d.FillFrom(at, field, value)
		}
	}
}

// scalar fills in a string, a whole number or a boolean.
func scalar(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode {
		return Bad("want a single value, not a list or a mapping", "")
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			return Bad(fmt.Sprintf("invalid value %q: want true or false", n.Value), "")
		}
		v.SetBool(n.Value == "true")
	case reflect.Int:
		var i int64
		i, err = strconv.ParseInt(n.Value, 10, v.Type().Bits())
		v.SetInt(i)
	case reflect.Uint, reflect.Uint64:
		var u uint64
		u, err = strconv.ParseUint(n.Value, 10, v.Type().Bits())
		v.SetUint(u)
	default:
		panic("config: no decoder for " + v.Type().String())
	}
	if err != nil {
		return Bad(fmt.Sprintf("%q is not a whole number in range", n.Value), "write 3")
	}
	return nil
}

// InRange adds an error if v, the value at path, is below low or above high.
func InRange[T interface {
	cmp.Ordered
	fmt.Stringer
}](d *Decoder, path string, v, low, high T) {
	if v < low || v > high {
		d.Fail(path, fmt.Sprintf("%s is out of range", v), fmt.Sprintf("%s to %s", low, high))
	}
}

// CountInRange is [InRange] for numbers without a unit.
func CountInRange[T int | uint](d *Decoder, path string, v, low, high T) {
	if v < low || v > high {
		d.Fail(path, fmt.Sprintf("%d is out of range", v), fmt.Sprintf("%d to %d", low, high))
	}
}

// Keyed is a field of a struct, or of an embedded struct, with its key in the file.
type Keyed struct {
	Key   string
	Index []int
}

// KeyedFields returns the fields of struct type t in their order.
func KeyedFields(t reflect.Type) []Keyed {
	var fields []Keyed
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("yaml"); key != "" && !f.Anonymous {
			fields = append(fields, Keyed{key, f.Index})
		}
	}
	return fields
}

// KeysOf returns the keys of struct type t in their order.
func KeysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range KeyedFields(t) {
		keys = append(keys, f.Key)
	}
	return keys
}

// maxSuggested is how many known names a hint lists.
const maxSuggested = 40

// Suggest returns a hint with the known name closest to a wrong one, or with the known names. It
// never suggests the wrong name itself: a file may declare it, and still may not use it here.
func Suggest(wrong string, known []string) string {
	known = slices.DeleteFunc(slices.Clone(known), func(k string) bool { return k == wrong })
	best := Closest(wrong, known)
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) > maxSuggested:
		return fmt.Sprintf("one of %s, and %d more", strings.Join(known[:maxSuggested], ", "),
			len(known)-maxSuggested)
	case len(known) > 0:
		return "one of " + strings.Join(known, ", ")
	default:
		return ""
	}
}

// Closest returns the known name that a wrong one probably means; "" if none is close. Of two that
// are as close, the one with the same letters is meant: "pnc" is "pcn", not "pfc".
func Closest(wrong string, known []string) string {
	best, bestCost := "", 6
	for _, k := range known {
		a, b := strings.ToLower(wrong), strings.ToLower(k)
		distance := editDistance(a, b)
		cost := 2 * distance
		if sameLetters(a, b) {
			cost--
		}
		if cost < bestCost && distance < len(k) {
			best, bestCost = k, cost
		}
	}
	return best
}

func sameLetters(a, b string) bool {
	x, y := []byte(a), []byte(b)
	slices.Sort(x)
	slices.Sort(y)
	return bytes.Equal(x, y)
}

// editDistance returns the number of steps that turn a into b: insert, delete or replace a byte, or
// swap two neighbours (optimal string alignment). Swapped letters are the commonest slip of typing.
func editDistance(a, b string) int {
	before, last := make([]int, len(b)+1), make([]int, len(b)+1) // rows i-2 and i-1
	for j := range last {
		last[j] = j
	}
	for i := 1; i <= len(a); i++ {
		row := make([]int, len(b)+1)
		row[0] = i
		for j := 1; j <= len(b); j++ {
			replace := last[j-1]
			if a[i-1] != b[j-1] {
				replace++
			}
			row[j] = min(row[j-1]+1, last[j]+1, replace)
			if i > 1 && j > 1 && a[i-1] == b[j-2] && a[i-2] == b[j-1] {
				row[j] = min(row[j], before[j-2]+1)
			}
		}
		before, last = last, row
	}
	return last[len(b)]
}
