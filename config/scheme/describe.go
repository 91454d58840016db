// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// description is what the types of an object say, as they say it. The descriptions of the objects
// that are built in are Go source (descriptions.go), since to read the types of all objects took
// half of the start of each program.
type description struct {
	control   string
	variables []variable
	stats     []Stat
}

// variable is a variable with parameters.
type variable struct {
	name   string
	bytes  uint32
	tags   []string // annotations, "what:text"
	fields []member
}

// member is an annotated field of a variable, or of a struct in it.
type member struct {
	label   string // for errors
	name    string
	offset  uint32
	entries uint32 // of an array
	tags    []string
	format  format
	kind    Kind     // empty if the name says it
	choices []choice // of an enum
}

// describe reads what an object says.
func describe(file io.ReaderAt) (d description, err error) {
	spec, err := readTypes(file)
	if err != nil {
		return d, err
	}
	if d.control, err = controlName(spec); err != nil {
		return d, err
	}
	for _, name := range parameterVariables {
		if v := spec.Variables[name]; v != nil {
			described, err := describeVariable(name, v)
			if err != nil {
				return d, fmt.Errorf("control %s: variable %s: %w", d.control, name, err)
			}
			d.variables = append(d.variables, described)
		}
	}
	if d.stats, err = readStats(spec.Maps[FlowsMap]); err != nil {
		return d, fmt.Errorf("control %s: %w", d.control, err)
	}
	return d, nil
}

// readTypes reads an object without its programs.
func readTypes(file io.ReaderAt) (*ebpf.CollectionSpec, error) {
	types, err := withoutPrograms(file)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(types)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	return spec, nil
}

// controlName reads the name in the operations.
func controlName(spec *ebpf.CollectionSpec) (string, error) {
	ops, err := Operations(spec)
	if err != nil {
		return "", err
	}
	layout, isStruct := btf.As[*btf.Struct](ops.Value)
	if !isStruct || len(ops.Contents) == 0 {
		return "", ErrNoControl
	}
	value, isBytes := ops.Contents[0].Value.([]byte)
	if !isBytes {
		return "", ErrNoControl
	}
	for _, m := range layout.Members {
		if m.Name == "name" && int(m.Offset.Bytes()) < len(value) {
			text, _, _ := strings.Cut(string(value[m.Offset.Bytes():]), "\x00")
			return text, nil
		}
	}
	return "", ErrNoControl
}

func describeVariable(name string, v *ebpf.VariableSpec) (d variable, err error) {
	if v.Type == nil {
		return d, errors.New("it has no type: compile with -g")
	}
	s, ok := btf.UnderlyingType(v.Type.Type).(*btf.Struct)
	if !ok {
		return d, fmt.Errorf("it is a %v: want a struct", v.Type.Type)
	}
	own := parseTags(v.Type.Tags)
	if err := own.check(variableTags); err != nil {
		return d, err
	}
	d = variable{name: name, bytes: uint32(v.Size()), tags: v.Type.Tags}
	err = fields(s, 0, own, func(m btf.Member, offset uint32, t tags) error {
		if err := t.check(fieldTags); err != nil {
			return err
		}
		_, isDerived := t.formula()
		if _, ok := t["doc"]; !ok && !isDerived {
			return nil // padding
		}
		f, err := describeField(m, offset, t)
		f.label = s.Name + "." + m.Name
		d.fields = append(d.fields, f)
		return err
	})
	return d, err
}

func describeField(m btf.Member, offset uint32, t tags) (f member, err error) {
	f = member{name: m.Name, offset: offset, tags: t.list()}
	kind := m.Type
	_, isTable := t["table"]
	if array, ok := btf.UnderlyingType(m.Type).(*btf.Array); ok && isTable {
		f.entries, kind = array.Nelems, array.Type
	}
	f.format, f.kind, f.choices, err = formatOf(kind)
	return f, err
}

// readStats reads the statistics in the flow table's entries; an object may have no table.
func readStats(flows *ebpf.MapSpec) ([]Stat, error) {
	if flows == nil {
		return nil, nil
	}
	entry, ok := btf.UnderlyingType(flows.Value).(*btf.Struct)
	if !ok {
		return nil, fmt.Errorf("map %s: its values are not a struct", FlowsMap)
	}
	return StatsOf(entry, flows.ValueSize)
}

// list returns the annotations "what:text", sorted.
func (t tags) list() []string {
	var all []string
	for _, what := range slices.Sorted(maps.Keys(t)) {
		all = append(all, what+":"+t[what])
	}
	return all
}

// formula returns the formula of a derived field; false if the field is none.
func (t tags) formula() (string, bool) {
	if text, isTable := t["table"]; isTable {
		return text, true
	}
	return t["from"], t["from"] != ""
}

// object makes the object of a description.
func (d description) object(file io.ReaderAt) (*Object, error) {
	o := &Object{Control: d.control, Stats: d.stats, file: file, sizes: map[string]uint32{}}
	for _, v := range d.variables {
		if err := o.readVariable(v); err != nil {
			return nil, fmt.Errorf("control %s: variable %s: %w", o.Control, v.name, err)
		}
	}
	if err := o.checkAttributes(); err != nil {
		return nil, fmt.Errorf("control %s: %w", o.Control, err)
	}
	return o, nil
}
