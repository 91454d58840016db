// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// layout finds the fields of C structs by the types of a BPF object. Structs have the same layout
// in the wasm module of the same source.
type layout struct {
	types *btf.Spec
}

// structOf returns a struct by its name.
func (l layout) structOf(name string) (*btf.Struct, error) {
	var s *btf.Struct
	if err := l.types.TypeByName(name, &s); err != nil {
		return nil, fmt.Errorf("find struct %s: %w", name, err)
	}
	return s, nil
}

// size returns the size of a struct.
func (l layout) size(name string) (uint32, error) {
	s, err := l.structOf(name)
	if err != nil {
		return 0, err
	}
	return s.Size, nil
}

// offset returns where a field is in a struct: "tcd.state", or "sk_pacing_rate" also if it is in a
// struct at the struct's beginning.
func (l layout) offset(name, path string) (uint32, error) {
	s, err := l.structOf(name)
	if err != nil {
		return 0, err
	}
	return offsetIn(s, path)
}

func offsetIn(s *btf.Struct, path string) (uint32, error) {
	name, rest, nested := strings.Cut(path, ".")
	for _, m := range s.Members {
		if m.Name != name {
			continue
		}
		if !nested {
			return m.Offset.Bytes(), nil
		}
		inner, ok := btf.UnderlyingType(m.Type).(*btf.Struct)
		if !ok {
			return 0, fmt.Errorf("field %s of struct %s is no struct", name, s.Name)
		}
		offset, err := offsetIn(inner, rest)
		return m.Offset.Bytes() + offset, err
	}
	if len(s.Members) > 0 {
		first, ok := btf.UnderlyingType(s.Members[0].Type).(*btf.Struct)
		if ok && s.Members[0].Offset == 0 {
			if offset, err := offsetIn(first, path); err == nil {
				return offset, nil
			}
		}
	}
	return 0, fmt.Errorf("struct %s has no field %s", s.Name, path)
}

// value returns the number of a name in an enum.
func (l layout) value(enum, name string) (uint64, error) {
	var e *btf.Enum
	if err := l.types.TypeByName(enum, &e); err != nil {
		return 0, fmt.Errorf("find enum %s: %w", enum, err)
	}
	for _, v := range e.Values {
		if v.Name == name {
			return v.Value, nil
		}
	}
	return 0, fmt.Errorf("enum %s has no value %s", enum, name)
}

// offsets looks several fields of a struct up. The first error stays in err.
type offsets struct {
	layout layout
	name   string
	err    error
}

func (o *offsets) of(path string) uint32 {
	offset, err := o.layout.offset(o.name, path)
	if o.err == nil {
		o.err = err
	}
	return offset
}
