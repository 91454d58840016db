// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"errors"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// Counts holds a program's counters by the member names of its C struct.
type Counts map[string]uint64

// Names of the maps of counters, in the objects that have them.
const (
	npCounts    = "np_counts"
	rpCounts    = "rp_counts"
	cnmCounts   = "cnm_counts"
	wredCounts  = "wred_counts"
	fabricDrops = "fabric_drops"
)

// IsCounts reports whether a map of this name holds counters, for [ReadCounts].
func IsCounts(mapName string) bool { return strings.HasSuffix(mapName, "_counts") }

// ReadCounts reads a map of counters (bpf/include/counts.h), summed over all CPUs. The names come
// from the map's BTF, so maps of other versions work too.
func ReadCounts(m *ebpf.Map) (Counts, error) {
	names, err := counterNames(m)
	if err != nil {
		return nil, fmt.Errorf("read the names of the counters in %s: %w", m, err)
	}
	values, err := m.LookupBytes(uint32(0))
	if err != nil {
		return nil, fmt.Errorf("read the counters in %s: %w", m, err)
	}
	const size = 8
	if len(values)%(size*len(names)) != 0 {
		return nil, fmt.Errorf("read the counters in %s: %d bytes are not %d counters for each CPU",
			m, len(values), len(names))
	}
	c := Counts{}
	for i := 0; i < len(values); i += size {
		c[names[i/size%len(names)]] += binary.NativeEndian.Uint64(values[i:])
	}
	return c, nil
}

// counterNames returns the member names of a map's value, in their order.
func counterNames(m *ebpf.Map) ([]string, error) {
	spec, err := typesOf(m)
	if err != nil {
		return nil, err
	}
	for t, err := range spec.All() { // the types of key and value
		if err != nil {
			return nil, err
		}
		s, ok := t.(*btf.Struct)
		if !ok || len(s.Members) == 0 {
			continue
		}
		var names []string
		for _, member := range s.Members {
			names = append(names, strings.TrimSuffix(member.Name, "_"))
		}
		return names, nil
	}
	return nil, errors.New("its value is not a struct: want a struct of counters")
}

// typesOf returns the types of a map's key and value, which the kernel keeps.
func typesOf(m *ebpf.Map) (*btf.Spec, error) {
	h, err := m.Handle()
	if err != nil {
		return nil, err
	}
	defer h.Close()
	return h.Spec(nil)
}

// readCounts reads one of the object's maps of counters.
func (o *object) readCounts(mapName string) (Counts, error) {
	c, err := ReadCounts(o.coll.Maps[mapName])
	if err != nil {
		return nil, fmt.Errorf("tc program %s: %w", o.name, err)
	}
	return c, nil
}
