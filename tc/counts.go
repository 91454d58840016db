// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/cilium/ebpf"

	"github.com/pcn-linux/pcn/loader"
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

// ReadCounts reads a map of counters (bpf/include/counts.h), summed over all CPUs. The names come
// from the type of its values: that of the map's name, or else the kernel's, so that maps of other
// versions work too.
func ReadCounts(name string, m *ebpf.Map, types loader.MapTypes) (Counts, error) {
	value, err := types.ValueType(name, m)
	if err != nil {
		return nil, fmt.Errorf("read the names of the counters in %s: %w", m, err)
	}
	values, err := m.LookupBytes(uint32(0))
	if err != nil {
		return nil, fmt.Errorf("read the counters in %s: %w", m, err)
	}
	const size = 8
	n := len(value.Members)
	if n == 0 || len(values)%(size*n) != 0 {
		return nil, fmt.Errorf("read the counters in %s: %d bytes are not %d counters for each CPU",
			m, len(values), n)
	}
	c := Counts{}
	for i := 0; i < len(values); i += size {
		member := value.Members[i/size%n].Name
		c[strings.TrimSuffix(member, "_")] += binary.NativeEndian.Uint64(values[i:])
	}
	return c, nil
}

// readCounts reads one of the object's maps of counters.
func (o *object) readCounts(mapName string) (Counts, error) {
	c, err := ReadCounts(mapName, o.coll.Maps[mapName], nil)
	if err != nil {
		return nil, fmt.Errorf("tc program %s: %w", o.name, err)
	}
	return c, nil
}
