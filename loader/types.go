// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"bytes"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// IsCounts reports whether a map of this name holds counters (bpf/include/counts.h).
func IsCounts(mapName string) bool { return strings.HasSuffix(mapName, "_counts") }

// MarshalTypes returns the types of an object's flow table and counters, as BTF with a variable of
// each map's name, for [UnmarshalTypes]. The kernel keeps these types too, but gives them only to
// those that have CAP_SYS_ADMIN, which services do without.
func MarshalTypes(spec *ebpf.CollectionSpec) ([]byte, error) {
	var vars []btf.Type
	for name, m := range spec.Maps {
		if (name == flowsMap || IsCounts(name)) && m.Value != nil {
			vars = append(vars, &btf.Var{Name: name, Type: m.Value})
		}
	}
	if len(vars) == 0 {
		return nil, nil
	}
	b, err := btf.NewBuilder(vars, nil)
	if err != nil {
		return nil, fmt.Errorf("collect the types of the object's maps: %w", err)
	}
	data, err := b.Marshal(nil, nil)
	if err != nil {
		return nil, fmt.Errorf("write the types of the object's maps: %w", err)
	}
	return data, nil
}

// MapTypes are the types of maps' values, by the maps' names.
type MapTypes map[string]*btf.Struct

// UnmarshalTypes reads what [MarshalTypes] wrote.
func UnmarshalTypes(data []byte) (MapTypes, error) {
	types := MapTypes{}
	if len(data) == 0 {
		return types, nil
	}
	spec, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		return nil, fmt.Errorf("read the types of maps: %w", err)
	}
	for t, err := range spec.All() {
		if err != nil {
			return nil, fmt.Errorf("read the types of maps: %w", err)
		}
		v, ok := t.(*btf.Var)
		if !ok {
			continue
		}
		value, ok := btf.As[*btf.Struct](v.Type)
		if !ok {
			return nil, fmt.Errorf("the values of map %s are of type %v: want a struct", v.Name,
				v.Type)
		}
		types[v.Name] = value
	}
	return types, nil
}

// ValueType returns the type of a map's values: the one of its name, or else the kernel's.
func (t MapTypes) ValueType(name string, m *ebpf.Map) (*btf.Struct, error) {
	if value := t[name]; value != nil {
		return value, nil
	}
	h, err := m.Handle()
	if err != nil {
		return nil, fmt.Errorf("read the types of map %s, which takes CAP_SYS_ADMIN: run pcn "+
			"host up, which stores them: %w", name, err)
	}
	defer h.Close()
	spec, err := h.Spec(nil)
	if err != nil {
		return nil, err
	}
	var value *btf.Struct
	for one, err := range spec.All() { // what a type is made of comes before it
		if err != nil {
			return nil, err
		}
		if s, ok := one.(*btf.Struct); ok && s.Size == m.ValueSize() {
			value = s
		}
	}
	if value == nil {
		return nil, errors.New("its values are not structs")
	}
	return value, nil
}
