// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
)

// withoutPrograms returns a copy of an object in which readers find no programs, only variables,
// maps and types. To decode programs takes three quarters of the time to read an object, and each
// microVM reads all objects.
func withoutPrograms(object []byte) ([]byte, error) {
	f, err := elf.NewFile(bytes.NewReader(object))
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("it is an %v: want an object of clang for BPF", f.Class)
	}
	var header elf.Header64
	if _, err := binary.Decode(object, f.ByteOrder, &header); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	without := bytes.Clone(object)
	for i, s := range f.Sections {
		isProgram := s.Flags&elf.SHF_EXECINSTR != 0 || s.Name == ".BTF.ext"
		if !isProgram && s.Type != elf.SHT_REL {
			continue // relocations are of programs, or of operations to them
		}
		const nameAt, typeAt = 0, 4 // in elf.Section64
		at := without[header.Shoff+uint64(i)*uint64(header.Shentsize):]
		f.ByteOrder.PutUint32(at[nameAt:], 0)
		f.ByteOrder.PutUint32(at[typeAt:], uint32(elf.SHT_NULL))
	}
	return without, nil
}
