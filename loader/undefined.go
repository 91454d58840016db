// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"encoding/binary"
	"fmt"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// undefinedMap is the data section of [scheme.CountedVariable].
const undefinedMap = ".data." + scheme.CountedVariable

// undefined is what a control counts, in the order of the variable's members.
var undefined = []struct{ what, hint string }{
	{"a division by zero, which gives 0, or a remainder of one, which changes nothing",
		"test the divisor before; the simulator stops there"},
	{"a shift by more bits than the number has, of which the low ones count",
		"limit it: << (n & 63) for a u64; the simulator stops there"},
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
	if c.coll != nil && c.coll.Maps[undefinedMap] != nil {
		shared[undefinedMap] = c.coll.Maps[undefinedMap]
	}
	return shared
}

// Undefined describes what the control did so far that C leaves undefined, with the first line and
// a hint. A control that was not compiled for a lab counts nothing.
func (c *Control) Undefined() ([]string, error) {
	m := c.Shared()[undefinedMap]
	if m == nil {
		return nil, nil
	}
	value := make([]byte, m.ValueSize())
	if err := m.Lookup(uint32(0), value); err != nil {
		return nil, fmt.Errorf("read what control %s left undefined: %w", c.Name(), err)
	}
	seen := make([]undefinedSeen, len(undefined))
	if _, err := binary.Decode(value, binary.LittleEndian, seen); err != nil {
		return nil, fmt.Errorf("read what control %s left undefined: %w", c.Name(), err)
	}
	var all []string
	for i, s := range seen {
		if s.Times == 0 {
			continue
		}
		all = append(all, fmt.Sprintf("%s:%d: %s: %d times\n(hint: %s)",
			c.scheme.Object.FileAt(s.File), s.Line, undefined[i].what, s.Times, undefined[i].hint))
	}
	return all, nil
}
