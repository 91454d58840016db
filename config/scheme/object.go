// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"sync"

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
	section    string   // whose presets it has
	presets    []Preset // see sets
	readOnce   sync.Once
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
	// FlowsMap is the table of live flows.
	FlowsMap = "flows"
)

// ErrNoControl says that an object has no congestion control in it.
var ErrNoControl = errors.New("the object has no congestion control: want one struct " +
	"tcp_congestion_ops in section .struct_ops.link")

// NewObject reads a compiled congestion control.
func NewObject(data []byte) (*Object, error) { return newObject(bytes.NewReader(data)) }

// newObject reads it from a file.
func newObject(file io.ReaderAt) (*Object, error) {
	d, err := describe(file)
	if err != nil {
		return nil, err
	}
	o, err := d.object(file)
	if err != nil {
		return nil, err
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

// Types returns the object's maps, variables and types, in a quarter of the time of Spec, which
// reads the programs too.
func (o *Object) Types() (*ebpf.CollectionSpec, error) { return readTypes(o.file) }

// Programs returns the names of the object's programs by their sections, such as
// "struct_ops/init".
func (o *Object) Programs() (map[string]string, error) {
	f, err := elf.NewFile(o.file)
	if err != nil {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	symbols, err := f.Symbols()
	if err != nil {
		return nil, fmt.Errorf("read the object's symbols: %w", err)
	}
	programs := map[string]string{}
	for _, s := range symbols {
		if elf.ST_TYPE(s.Info) == elf.STT_FUNC && int(s.Section) < len(f.Sections) {
			programs[f.Sections[s.Section].Name] = s.Name
		}
	}
	return programs, nil
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

// readVariable reads the parameters in a variable.
func (o *Object) readVariable(v variable) error {
	own := parseTags(v.tags)
	if v.name == ParamsVariable {
		var err error
		if o.attributes, err = parseAttributes(v.tags); err != nil {
			return err
		}
	}
	o.sizes[v.name] = v.bytes
	prefix := ""
	if p := own["prefix"]; p != "" {
		prefix = p + "."
	}
	for _, f := range v.fields {
		if err := o.readField(f, place{v.name, f.offset, f.format}, prefix); err != nil {
			return fmt.Errorf("%s: %w", f.label, err)
		}
	}
	return nil
}

func (o *Object) readField(f member, at place, prefix string) error {
	t := parseTags(f.tags)
	if text, ok := t.formula(); ok {
		d := derived{place: at, name: f.name, entries: f.entries}
		if err := o.checkPlace(at, max(d.entries, 1)); err != nil {
			return err
		}
		var err error
		d.formula, err = parseFormula(text)
		o.derived = append(o.derived, d)
		return err
	}
	p, err := newParam(f, at, prefix, t)
	if err != nil {
		return err
	}
	if o.Param(p.Key) != nil {
		return fmt.Errorf("duplicate key %q", p.Key)
	}
	if err := o.checkPlace(at, 1); err != nil {
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

// isSenderValue reports whether the value is the sender's, and not that of a receiver or a switch.
func (p place) isSenderValue() bool {
	return p.variable == ParamsVariable ||
		p.variable == pathVariable || p.variable == lossVariable
}

// IsSender reports whether the parameter is one of the sender's algorithm.
func (p Param) IsSender() bool {
	return (p.variable == ParamsVariable || p.variable == lossVariable) && !p.onlyTCD
}

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
