// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// UndefinedMap is the data section of [scheme.CountedVariable].
const UndefinedMap = ".data." + scheme.CountedVariable

// undefined is what a user's file counts, in the order of the variable's members.
var undefined = []struct{ what, hint string }{
	{"a division by zero, which gives 0, or a remainder of one, which changes nothing",
		"test the divisor before; the simulator stops there"},
	{"a shift by more bits than the number has, of which the low ones count",
		"limit it: << (n & 63) for a u64; the simulator stops there"},
	{scheme.Standstill, scheme.StandstillHint + "; the simulator stops there"},
}

// undefinedSeen is struct undefined_seen of bpf/include/undefined.h.
type undefinedSeen struct {
	File         uint64
	Line, Column uint32
	Times        uint64
}

// Shared returns the maps that the control's other programs, loaded beside it, have in common with
// it.
func (c *Control) Shared() map[string]*ebpf.Map {
	shared := map[string]*ebpf.Map{}
	if c.flows != nil {
		shared[flowsMap] = c.flows
	}
	if c.coll != nil && c.coll.Maps[UndefinedMap] != nil {
		shared[UndefinedMap] = c.coll.Maps[UndefinedMap]
	}
	return shared
}

// Undefined describes what the control did so far that C leaves undefined, with the first line and
// a hint. A control that was not compiled for a lab counts nothing.
func (c *Control) Undefined() ([]string, error) {
	return Undefined(c.Shared()[UndefinedMap], c.scheme.Object.FileAt)
}

// Undefined describes what a map of an object counted, of which fileAt names the C files. A nil map
// counted nothing.
func Undefined(m *ebpf.Map, fileAt func(offset uint64) string) ([]string, error) {
	if m == nil {
		return nil, nil
	}
	value := make([]byte, m.ValueSize())
	if err := m.Lookup(uint32(0), value); err != nil {
		return nil, fmt.Errorf("read what C leaves undefined: %w", err)
	}
	seen := make([]undefinedSeen, len(undefined))
	if _, err := binary.Decode(value, binary.LittleEndian, seen); err != nil {
		return nil, fmt.Errorf("read what C leaves undefined: %w", err)
	}
	var all []string
	for i, s := range seen {
		if s.Times == 0 {
			continue
		}
		what := undefined[i].what
		if s.Line != 0 {
			what = fmt.Sprintf("%s:%d: %s", fileAt(s.File), s.Line, what)
		}
		all = append(all, fmt.Sprintf("%s: %d times\n(hint: %s)", what, s.Times,
			undefined[i].hint))
	}
	return all, nil
}
