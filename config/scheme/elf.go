// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
)

// withoutPrograms returns an object as a file in which readers find no programs, only variables,
// maps and types. To decode programs takes three quarters of the time to read an object, and each
// microVM reads all objects.
func withoutPrograms(object io.ReaderAt) (io.ReaderAt, error) {
	f, err := elf.NewFile(object)
	if err != nil {
		return nil, err
	}
	if f.Class != elf.ELFCLASS64 {
		return nil, fmt.Errorf("it is an %v: want an object of clang for BPF", f.Class)
	}
	var header elf.Header64
	start := make([]byte, binary.Size(header))
	if _, err := object.ReadAt(start, 0); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	if _, err := binary.Decode(start, f.ByteOrder, &header); err != nil {
		return nil, fmt.Errorf("its header: %w", err)
	}
	without := patched{object, int64(header.Shoff),
		make([]byte, len(f.Sections)*int(header.Shentsize))}
	if _, err := object.ReadAt(without.patch, without.at); err != nil {
		return nil, fmt.Errorf("its section headers: %w", err)
	}
	for i, s := range f.Sections {
		isProgram := s.Flags&elf.SHF_EXECINSTR != 0 || s.Name == ".BTF.ext"
		if !isProgram && s.Type != elf.SHT_REL {
			continue // relocations are of programs, or of operations to them
		}
		const nameAt, typeAt = 0, 4 // in elf.Section64
		at := without.patch[i*int(header.Shentsize):]
		f.ByteOrder.PutUint32(at[nameAt:], 0)
		f.ByteOrder.PutUint32(at[typeAt:], uint32(elf.SHT_NULL))
	}
	return without, nil
}

// patched is a file with other bytes in one place. The file is not copied: objects have a megabyte
// together.
type patched struct {
	file  io.ReaderAt
	at    int64
	patch []byte
}

// ReadAt implements [io.ReaderAt].
func (p patched) ReadAt(to []byte, at int64) (int, error) {
	n, err := p.file.ReadAt(to, at)
	if skip := p.at - at; skip >= 0 && skip < int64(n) {
		copy(to[skip:n], p.patch)
	} else if skip < 0 && -skip < int64(len(p.patch)) {
		copy(to[:n], p.patch[-skip:])
	}
	return n, err
}
