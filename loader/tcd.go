// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
)

// tcdSuffix is what the names of controls end in that go by TCD's marks (SIGCOMM 2021; bpf/algo/tcd_rp.h).
const tcdSuffix = "_tcd"

// flagNeedsECN is TCP_CONG_NEEDS_ECN of tcp_congestion_ops.flags.
const flagNeedsECN = 2

// setOps names the object's tcp_congestion_ops, and sets flags beside those it has.
func setOps(spec *ebpf.CollectionSpec, name string, flags byte) error {
	ops := spec.Maps[opsMap]
	value, ok := ops.Contents[0].Value.([]byte)
	layout, isStruct := btf.As[*btf.Struct](ops.Value)
	if !ok || !isStruct {
		return fmt.Errorf("map %s is no struct_ops", opsMap)
	}
	for _, m := range layout.Members {
		field := value[m.Offset.Bytes():]
		switch m.Name {
		case "name":
			size, err := btf.Sizeof(m.Type)
			if err != nil || len(name) >= size {
				return fmt.Errorf("name of %d bytes: want fewer than %d", len(name), size)
			}
			clear(field[:size])
			copy(field, name)
		case "flags":
			field[0] |= flags // little endian
		}
	}
	return nil
}
