// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"debug/elf"
	"io"
	"slices"
	"strings"

	"github.com/cilium/ebpf/btf"
)

// CountedVariable is where a user's file that was compiled for labs counts what C leaves undefined
// (bpf/include/undefined.h).
const CountedVariable = "undefined"

// Standstill is what a control does that allows a flow nothing, and StandstillHint what to do.
const (
	Standstill     = "control_rate or control_window returned 0, so that a flow stands still"
	StandstillHint = "a rate is in bit/s and a window in packets: set it in control_start"
)

// Globals returns the names of variables that the control's programs change: there is one for all
// flows.
func (o *Object) Globals() []string {
	spec, err := o.Spec()
	if err != nil {
		return nil // NewObject has read it
	}
	var names []string
	for _, m := range spec.Maps {
		section, ok := btf.UnderlyingType(m.Value).(*btf.Datasec)
		if !ok || strings.HasPrefix(section.Name, ".rodata") {
			continue
		}
		for _, v := range section.Vars {
			if name := v.Type.TypeName(); name != CountedVariable {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return names
}

// FileAt returns the name of a C file: clang notes it as an offset among the object's strings. It
// is "" if there is none.
func (o *Object) FileAt(offset uint64) string { return FileAt(o.file, offset) }

// FileAt returns the name of a C file as [Object.FileAt] does, of any object.
func FileAt(object io.ReaderAt, offset uint64) string {
	file, err := elf.NewFile(object)
	if err != nil {
		return ""
	}
	section := file.Section(".rodata.str1.1")
	if section == nil {
		return ""
	}
	text, err := section.Data()
	if err != nil || offset >= uint64(len(text)) {
		return ""
	}
	name, _, _ := bytes.Cut(text[offset:], []byte{0})
	return string(name)
}
