// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"debug/elf"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// description reads what an object says of itself: the types of its variables and of its flow
// table, and its operations. It leaves programs out, which no start of pcn needs: with them the
// built-in objects took 15 ms and 8 MB.
func description(data []byte) (*ebpf.CollectionSpec, error) {
	types, err := btf.LoadSpecFromReader(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	file, err := elf.NewFile(bytes.NewReader(data))
	if err != nil {
		return nil, err
	}
	spec := &ebpf.CollectionSpec{
		Maps: map[string]*ebpf.MapSpec{}, Variables: map[string]*ebpf.VariableSpec{},
	}
	for _, section := range file.Sections {
		var contents *btf.Datasec
		if err := types.TypeByName(section.Name, &contents); err != nil {
			continue // no variables are in it
		}
		var data []byte
		if section.Type != elf.SHT_NOBITS {
			if data, err = section.Data(); err != nil {
				return nil, fmt.Errorf("section %s: %w", section.Name, err)
			}
		}
		for _, at := range contents.Vars {
			if err := describe(spec, section.Name, data, at); err != nil {
				return nil, fmt.Errorf("section %s: %w", section.Name, err)
			}
		}
	}
	return spec, nil
}

// describe adds a variable of a section with these bytes: one with data, a map, or the operations.
// The bytes are nil if all are zero.
func describe(spec *ebpf.CollectionSpec, section string, data []byte, at btf.VarSecinfo) error {
	v, ok := at.Type.(*btf.Var)
	if !ok {
		return fmt.Errorf("%v is not a variable", at.Type)
	}
	if section == ".maps" {
		return describeMap(spec, v)
	}
	var value []byte
	if data != nil {
		end := uint64(at.Offset) + uint64(at.Size)
		if end > uint64(len(data)) {
			return fmt.Errorf("variable %s lies beyond its end: the object is damaged", v.Name)
		}
		value = data[at.Offset:end]
	}
	if strings.HasPrefix(section, ".struct_ops") {
		spec.Maps[v.Name] = &ebpf.MapSpec{
			Name: v.Name, Type: ebpf.StructOpsMap, Value: v.Type,
			Contents: []ebpf.MapKV{{Key: uint32(0), Value: value}},
		}
		return nil
	}
	spec.Variables[v.Name] = &ebpf.VariableSpec{
		Name: v.Name, SectionName: section, Offset: at.Offset, Value: value, Type: v,
	}
	return nil
}

// describeMap adds a map with the type of its values, if it says one.
func describeMap(spec *ebpf.CollectionSpec, v *btf.Var) error {
	definition, ok := btf.UnderlyingType(v.Type).(*btf.Struct)
	if !ok {
		return fmt.Errorf("map %s is a %v: want a struct", v.Name, v.Type)
	}
	for _, m := range definition.Members {
		to, ok := m.Type.(*btf.Pointer)
		if m.Name != "value" || !ok {
			continue
		}
		size, err := btf.Sizeof(to.Target)
		if err != nil {
			return fmt.Errorf("map %s: %w", v.Name, err)
		}
		spec.Maps[v.Name] = &ebpf.MapSpec{
			Name: v.Name, Value: to.Target, ValueSize: uint32(size),
		}
	}
	return nil
}
