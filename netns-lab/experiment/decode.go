// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Error is one thing that is wrong with an experiment file.
type Error struct {
	File      string
	Line, Col int    // from 1; 0 where unknown
	Msg       string // what is wrong
	Hint      string // what to do about it; may be empty
}

// Error returns file:line:col: what is wrong (hint: what to do about it).
func (e *Error) Error() string {
	pos := e.File
	if e.Line > 0 {
		pos += ":" + strconv.Itoa(e.Line)
	}
	if e.Col > 0 {
		pos += ":" + strconv.Itoa(e.Col)
	}
	return pos + ": " + withHint(e.Msg, e.Hint)
}

// decoder turns YAML into Go values, remembers where each value stands and
// collects what is wrong.
//
// yaml.v3 can be strict too, but then knows no columns and no hints.
type decoder struct {
	file  string
	nodes map[string]*yaml.Node // by path, such as flows[0].from
	bad   map[*yaml.Node]bool   // values that could not be read
	errs  []*Error

	attached attached

	// Of the topology.
	hosts, ports, tiers []string
	isHost              map[string]bool
}

func newDecoder(file string) *decoder {
	return &decoder{
		file: file, nodes: make(map[string]*yaml.Node), bad: make(map[*yaml.Node]bool), attached: attached{read: make(map[string]string)},
	}
}

// maxErrors is how many are told.
const maxErrors = 200

// err joins what was found, in the order of the file.
func (d *decoder) err() error {
	slices.SortStableFunc(d.errs, func(a, b *Error) int {
		return cmp.Or(cmp.Compare(a.Line, b.Line), cmp.Compare(a.Col, b.Col))
	})
	if more := len(d.errs) - maxErrors; more > 0 {
		d.errs = append(d.errs[:maxErrors], &Error{File: d.file, Msg: fmt.Sprintf("%d more errors", more), Hint: "correct these first"})
	}
	joined := make([]error, len(d.errs))
	for i, e := range d.errs {
		joined[i] = e
	}
	return errors.Join(joined...)
}

// has reports whether the file gives the value at path.
func (d *decoder) has(path string) bool {
	return d.nodes[path] != nil
}

// fail adds an error at the value of path or, if the file does not give it, at
// the innermost mapping around it. It adds nothing about what could not be read
// anyway.
func (d *decoder) fail(path, msg, hint string) {
	at := path
	for at != "" && d.nodes[at] == nil {
		at = at[:max(strings.LastIndexAny(at, ".["), 0)]
	}
	if d.nodes[at] == nil {
		d.errs = append(d.errs, &Error{File: d.file, Msg: msg, Hint: hint})
		return
	}
	if n := d.nodes[at]; !d.bad[n] {
		d.failAt(n, msg, hint)
	}
}

// failValue adds an error about a value that can't be read.
func (d *decoder) failValue(n *yaml.Node, msg, hint string) {
	d.bad[n] = true
	d.failAt(n, msg, hint)
}

func (d *decoder) failAt(n *yaml.Node, msg, hint string) {
	d.errs = append(d.errs, &Error{File: d.file, Line: n.Line, Col: n.Column, Msg: msg, Hint: hint})
}

// yamlLine finds the position in an error of yaml.v3.
var yamlLine = regexp.MustCompile(`^yaml: line (\d+): (.*)$`)

// root returns the mapping that the file consists of, or nil if it has none.
func (d *decoder) root(data []byte) *yaml.Node {
	var doc, more yaml.Node
	dec := yaml.NewDecoder(bytes.NewReader(data))
	if err := dec.Decode(&doc); err != nil {
		d.failSyntax(err)
		return nil
	}
	if err := dec.Decode(&more); err == nil {
		d.failAt(&more, "second document", "write one experiment per file")
		return nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		d.failAt(root, "want a mapping", "start with name: and topology:")
		return nil
	}
	return root
}

func (d *decoder) failSyntax(err error) {
	if errors.Is(err, io.EOF) {
		d.errs = append(d.errs, &Error{File: d.file, Msg: "is empty", Hint: "start with name: and topology:"})
		return
	}
	e := &Error{File: d.file, Msg: err.Error()}
	if m := yamlLine.FindStringSubmatch(err.Error()); m != nil {
		e.Line, _ = strconv.Atoi(m[1])
		e.Msg = m[2]
	}
	d.errs = append(d.errs, e)
}

// decode fills in the struct that dst points to.
func (d *decoder) decode(n *yaml.Node, dst any) {
	d.value("", n, reflect.ValueOf(dst).Elem())
}

func (d *decoder) value(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind == yaml.AliasNode {
		n = n.Alias
	}
	d.nodes[path] = n
	if n.ShortTag() == "!!null" {
		d.failValue(n, "value is missing", "give a value or remove the key")
		return
	}
	if u, ok := v.Addr().Interface().(yaml.Unmarshaler); ok {
		d.check(n, u.UnmarshalYAML(n))
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
		d.check(n, scalar(n, v))
	}
}

// check adds an error about the value at n.
func (d *decoder) check(n *yaml.Node, err error) {
	if err == nil {
		return
	}
	var ve *valueError
	if !errors.As(err, &ve) {
		d.failValue(n, err.Error(), "")
		return
	}
	// The hint ends the text, also where the error is wrapped in what it is about.
	d.failValue(n, strings.TrimSuffix(err.Error(), withHint("", ve.hint)), ve.hint)
}

func (d *decoder) structure(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, "want a mapping", "write {key: value}")
		return
	}
	fields := keyedFields(v.Type())
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		child := strings.TrimPrefix(path+"."+key.Value, ".")
		field := slices.IndexFunc(fields, func(f keyed) bool { return f.key == key.Value })
		if field < 0 {
			d.failAt(key, fmt.Sprintf("unknown key %q", key.Value), suggest(key.Value, keysOf(v.Type())))
			continue
		}
		if d.has(child) {
			d.failAt(key, fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
			continue
		}
		d.value(child, val, v.FieldByIndex(fields[field].index))
	}
}

func (d *decoder) slice(path string, n *yaml.Node, v reflect.Value) {
	if _, ok := v.Interface().(Workloads); ok && n.Kind == yaml.MappingNode { // the one there mostly is
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

// mapping fills in a map, whose keys are the user's own.
func (d *decoder) mapping(path string, n *yaml.Node, v reflect.Value) {
	if n.Kind != yaml.MappingNode {
		d.failValue(n, "want a mapping", "write {key: value}")
		return
	}
	v.Set(reflect.MakeMap(v.Type()))
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, val := n.Content[i], n.Content[i+1]
		child := path + "." + key.Value
		if d.has(child) {
			d.failAt(key, fmt.Sprintf("duplicate key %q", key.Value), "keep one of them")
			continue
		}
		item := reflect.New(v.Type().Elem()).Elem()
		d.value(child, val, item)
		v.SetMapIndex(reflect.ValueOf(key.Value), item)
	}
}

// fillFrom copies to v, the struct at path, what the file does not give from defaults.
func (d *decoder) fillFrom(path string, v, defaults reflect.Value) {
	for _, f := range keyedFields(v.Type()) {
		at := path + "." + f.key
		field, value := v.FieldByIndex(f.index), defaults.FieldByIndex(f.index)
		switch {
		case !d.has(at):
			field.Set(value)
		case field.Kind() == reflect.Struct:
			d.fillFrom(at, field, value)
		}
	}
}

// scalar fills in a text, a whole number or a truth value.
func scalar(n *yaml.Node, v reflect.Value) error {
	if n.Kind != yaml.ScalarNode {
		return &valueError{"want a single value, not a list or a mapping", ""}
	}
	var err error
	switch v.Kind() {
	case reflect.String:
		v.SetString(n.Value)
	case reflect.Bool:
		if n.Value != "true" && n.Value != "false" {
			return &valueError{fmt.Sprintf("%q is neither true nor false", n.Value), ""}
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
		panic("experiment: no decoder for " + v.Type().String())
	}
	if err != nil {
		return &valueError{fmt.Sprintf("%q is not a whole number in range", n.Value), ""}
	}
	return nil
}

// keyed is a field of a struct, or of one embedded in it, and its key in the file.
type keyed struct {
	key   string
	index []int
}

// keyedFields returns the fields of struct type t in their order.
func keyedFields(t reflect.Type) []keyed {
	var fields []keyed
	for _, f := range reflect.VisibleFields(t) {
		if key := f.Tag.Get("yaml"); key != "" && !f.Anonymous {
			fields = append(fields, keyed{key, f.Index})
		}
	}
	return fields
}

func keysOf(t reflect.Type) []string {
	var keys []string
	for _, f := range keyedFields(t) {
		keys = append(keys, f.key)
	}
	return keys
}

// suggest returns a hint at the known name closest to a wrong one.
func suggest(wrong string, known []string) string {
	best, bestDistance := "", 3
	for _, k := range known {
		if dist := editDistance(strings.ToLower(wrong), strings.ToLower(k)); dist < min(bestDistance, len(k)) {
			best, bestDistance = k, dist
		}
	}
	switch {
	case best != "":
		return fmt.Sprintf("did you mean %q?", best)
	case len(known) > 0 && len(known) <= 30:
		return "one of " + strings.Join(known, ", ")
	default:
		return ""
	}
}

// editDistance is how many bytes to insert, delete or replace to turn a into b (Levenshtein).
func editDistance(a, b string) int {
	row := make([]int, len(b)+1)
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			diagonal, row[j+1] = row[j+1], min(row[j]+1, row[j+1]+1, diagonal+cost)
		}
	}
	return row[len(b)]
}
