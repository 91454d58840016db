// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// FlowsRefused is how many flows found the table full.
func (c *Control) FlowsRefused() (uint64, error) {
	return c.count("table_full")
}

// count reads a member of struct control_counts, summed over all CPUs.
func (c *Control) count(name string) (uint64, error) {
	m := c.coll.Maps[countsMap]
	values, err := m.LookupBytes(uint32(0))
	if err != nil {
		return 0, err
	}
	h, err := m.Handle()
	if err != nil {
		return 0, err
	}
	defer h.Close()
	spec, err := h.Spec(nil)
	if err != nil {
		return 0, err
	}
	var counts *btf.Struct
	if err := spec.TypeByName("control_counts", &counts); err != nil {
		return 0, err
	}
	var n uint64
	for _, member := range counts.Members {
		if member.Name != name {
			continue
		}
		for at := int(member.Offset.Bytes()); at < len(values); at += int(counts.Size) {
			n += binary.LittleEndian.Uint64(values[at:])
		}
	}
	return n, nil
}

// BaseRTT is the smallest round trip that LDCP has measured to a host; ErrNoFlow if it has none.
func (c *Control) BaseRTT(host netip.Addr) (time.Duration, error) {
	var ns uint64
	err := c.coll.Maps["base_rtts"].Lookup(host.As16(), &ns)
	if errors.Is(err, ebpf.ErrKeyNotExist) {
		return 0, ErrNoFlow
	}
	return time.Duration(ns), err
}

// HasProgram reports whether the kernel runs a program of the object.
func (c *Control) HasProgram(name string) bool { return c.coll.Programs[name] != nil }

// LimitsBursts reports whether TCP asks the control how many packets may leave at once.
func (c *Control) LimitsBursts() bool {
	for name := range c.coll.Programs {
		if strings.HasSuffix(name, "_min_tso_segs") {
			return true
		}
	}
	return false
}
