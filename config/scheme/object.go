// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Object is a compiled congestion control with the description from its C source.
type Object struct {
	// Control is the name by which sockets select it.
	Control string
	// Params are the parameters of the control and of its scheme's other parts, in the order of the
	// source.
	Params []Param
	// Stats are the statistics that its algorithm keeps for each flow.
	Stats []Stat

	file       io.ReaderAt
	derived    []derived
	sizes      map[string]uint32 // of the variables with parameters
	attributes map[string]attribute
	presets    []Preset
}

// Stat is a statistic that an algorithm keeps for each flow.
type Stat struct {
	Key  string // with its unit
	Doc  string
	Kind Kind

	offset uint32
	format format
}

// The variables that hold parameters: of the sender, of its wiring to TCP, its losses and its
// doubt, of the notification point, of switches' marking and of WRED.
var parameterVariables = []string{ParamsVariable, pathVariable, lossVariable, doubtVariable,
	NotificationVariable, MarkerVariable, "wred_params"}

// Names of variables in objects.
const (
	ParamsVariable       = "params"
	NotificationVariable = "np_params"
	MarkerVariable       = "marker_params"
	pathVariable         = "path_params"
	lossVariable         = "loss_params"
	doubtVariable        = "doubt_params"
	// flowsMap is the table of live flows.
	flowsMap = "flows"
)

// ErrNoControl says that an object has no congestion control in it.
var ErrNoControl = errors.New("the object has no congestion control: want one struct " +
	"tcp_congestion_ops in section .struct_ops.link")

// NewObject reads a compiled congestion control.
func NewObject(data []byte) (*Object, error) { return newObject(bytes.NewReader(data)) }

// newObject reads it from a file: objects that are built in need no memory of their own.
func newObject(file io.ReaderAt) (*Object, error) {
	described, err := withoutPrograms(file)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	spec, err := ebpf.LoadCollectionSpecFromReader(described)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	o := &Object{file: file, sizes: map[string]uint32{}}
	if o.Control, err = controlName(spec); err != nil {
		return nil, err
	}
	for _, name := range parameterVariables {
		if v := spec.Variables[name]; v != nil {
			if err := o.readVariable(name, v); err != nil {
				return nil, fmt.Errorf("control %s: variable %s: %w", o.Control, name, err)
			}
		}
	}
	if err := o.readStats(spec.Maps[flowsMap]); err != nil {
		return nil, fmt.Errorf("control %s: %w", o.Control, err)
	}
	if err := o.checkAttributes(); err != nil {
		return nil, fmt.Errorf("control %s: %w", o.Control, err)
	}
	if err := o.checkDefaults(""); err != nil {
		return nil, fmt.Errorf("control %s: %w", o.Control, err)
	}
	return o, nil
}

// Spec returns the object as a collection to load, a fresh one each time.
func (o *Object) Spec() (*ebpf.CollectionSpec, error) {
	return ebpf.LoadCollectionSpecFromReader(o.file)
}

// Variables returns the names of the object's variables that hold parameters.
func (o *Object) Variables() []string { return slices.Sorted(maps.Keys(o.sizes)) }

// SHA256 returns the hash of the object's bytes, in hexadecimal.
func (o *Object) SHA256() string {
	h := sha256.New()
	const all = 1<<63 - 1
	if _, err := io.Copy(h, io.NewSectionReader(o.file, 0, all)); err != nil {
		panic(err) // the file is in memory
	}
	return hex.EncodeToString(h.Sum(nil))
}

// Operations returns the map of the object's one struct tcp_congestion_ops.
func Operations(spec *ebpf.CollectionSpec) (*ebpf.MapSpec, error) {
	for _, m := range spec.Maps {
		if m.Type == ebpf.StructOpsMap {
			return m, nil
		}
	}
	return nil, ErrNoControl
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

// readVariable reads the parameters in a variable.
func (o *Object) readVariable(name string, v *ebpf.VariableSpec) error {
	if v.Type == nil {
		return errors.New("it has no type: compile with -g")
	}
	s, ok := btf.UnderlyingType(v.Type.Type).(*btf.Struct)
	if !ok {
		return fmt.Errorf("it is a %v: want a struct", v.Type.Type)
	}
	own := parseTags(v.Type.Tags)
	if err := own.check(variableTags); err != nil {
		return err
	}
	if name == ParamsVariable {
		var err error
		if o.attributes, err = parseAttributes(v.Type.Tags); err != nil {
			return err
		}
	}
	o.sizes[name] = uint32(v.Size())
	prefix := ""
	if p := own["prefix"]; p != "" {
		prefix = p + "."
	}
	return fields(s, 0, own, func(m btf.Member, offset uint32, t tags) error {
		if err := t.check(fieldTags); err != nil {
			return err
		}
		return o.readField(m, place{variable: name, offset: offset}, prefix, t)
	})
}

func (o *Object) readField(m btf.Member, at place, prefix string, t tags) error {
	d, err := newDerived(m, at, t)
	if err != nil {
		return err
	}
	if d != nil {
		if err := o.checkPlace(d.place, max(d.entries, 1)); err != nil {
			return err
		}
		o.derived = append(o.derived, *d)
		return nil
	}
	if _, ok := t["doc"]; !ok {
		return nil // padding
	}
	p, err := newParam(m, at, prefix, t)
	if err != nil {
		return err
	}
	if o.Param(p.Key) != nil {
		return fmt.Errorf("duplicate key %q", p.Key)
	}
	if err := o.checkPlace(p.place, 1); err != nil {
		return err
	}
	o.Params = append(o.Params, p)
	return nil
}

// checkPlace fails if a value lies beyond its variable, as in a damaged object.
func (o *Object) checkPlace(p place, entries uint32) error {
	if uint64(p.offset)+uint64(entries)*uint64(p.format.size) > uint64(o.sizes[p.variable]) {
		return errors.New("it lies beyond the end of the variable: the object is damaged")
	}
	return nil
}

// readStats reads the statistics in the flow table's entries; an object may have no table.
func (o *Object) readStats(flows *ebpf.MapSpec) error {
	if flows == nil {
		return nil
	}
	entry, ok := btf.UnderlyingType(flows.Value).(*btf.Struct)
	if !ok {
		return fmt.Errorf("map %s: its values are not a struct", flowsMap)
	}
	var err error
	o.Stats, err = StatsOf(entry, flows.ValueSize)
	return err
}

// StatsOf returns the statistics that the struct of a flow table's entries describes, of so many
// bytes.
func StatsOf(entry *btf.Struct, size uint32) ([]Stat, error) {
	var stats []Stat
	err := fields(entry, 0, nil, func(m btf.Member, offset uint32, t tags) error {
		doc, ok := t["stat"]
		if !ok {
			return nil
		}
		f, kind, _, err := formatOf(m.Type)
		if err != nil {
			return err
		}
		if uint64(offset)+uint64(f.size) > uint64(size) {
			return errors.New("it lies beyond the end of the entry: the object is damaged")
		}
		if kind == "" {
			kind, _ = kindOfName(m.Name)
		}
		key := m.Name
		if k, ok := t["key"]; ok {
			key = k
		}
		stats = append(stats, Stat{Key: key, Doc: doc, Kind: kind, offset: offset, format: f})
		return nil
	})
	return stats, err
}

// Read reads the statistic from an entry of the flow table.
func (s Stat) Read(entry []byte) float64 {
	return s.format.decode(s.format.get(entry[s.offset:]))
}

// Param returns the parameter of a key; nil if there is none.
func (o *Object) Param(key string) *Param {
	i := slices.IndexFunc(o.Params, func(p Param) bool { return p.Key == key })
	if i < 0 {
		return nil
	}
	return &o.Params[i]
}

// Keys returns the keys of the parameters, in the order of the source.
func (o *Object) Keys() []string {
	var keys []string
	for _, p := range o.Params {
		keys = append(keys, p.Key)
	}
	return keys
}

// Uses reports whether a value of the sender can depend on a property of the network: line_rate,
// base_rtt or frame. See [Values.Uses].
func (o *Object) Uses(name string) bool {
	uses := func(f *formula) bool { return f != nil && strings.Contains(f.text, name) }
	return slices.ContainsFunc(o.derived, func(d derived) bool {
		return d.isSenderValue() && uses(d.formula)
	}) ||
		slices.ContainsFunc(o.Params, func(p Param) bool {
			return p.isSenderValue() &&
				uses(p.ifZero)
		})
}

// isSenderValue reports whether the value is the sender's, and not that of a receiver or a switch.
func (p place) isSenderValue() bool {
	return p.variable == ParamsVariable ||
		p.variable == pathVariable || p.variable == lossVariable
}

// IsSender reports whether the parameter is one of the sender's algorithm.
func (p Param) IsSender() bool {
	return (p.variable == ParamsVariable || p.variable == lossVariable) && !p.onlyTCD
}

// IsNotification reports whether the parameter is one of the notification point.
func (p Param) IsNotification() bool { return p.variable == NotificationVariable }

// checkDefaults resolves the defaults of a set, to find unknown names early.
func (o *Object) checkDefaults(set string) error {
	n := Network{LineRateBps: 10e9, BaseRTTNs: 100_000, PathRTTNs: 110_000, FrameBytes: 1000}
	values, problems := o.Resolve(Settings{Set: set}, n)
	if len(problems) > 0 {
		return fmt.Errorf("the default of %s: %s", problems[0].Key, problems[0].Msg)
	}
	for _, variable := range o.Variables() {
		if _, err := values.Bytes(variable, n, true); err != nil {
			return err
		}
	}
	return nil
}
