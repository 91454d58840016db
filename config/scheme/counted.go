// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"debug/elf"
	"io"
)

// CountedVariable is where a user's file that was compiled for labs counts what C leaves undefined
// (bpf/include/undefined.h).
const CountedVariable = "undefined"

// Standstill is what a control does that allows a flow nothing, and StandstillHint what to do.
const (
	Standstill = "control_rate or control_window returned 0, or went below 0, so that a flow " +
		"stands still"
	StandstillHint = "a rate is in bit/s and a window in packets: set it in control_start, and " +
		"keep it above 0 where you change it"
)

// LockHint says what to do about a helper of BPF that is called under a flow's lock.
const LockHint = "a control's functions hold the flow's lock and call no helpers of BPF: " +
	"e->now_ns is the time, and a field of the state with STAT(...) is for you to see"

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
