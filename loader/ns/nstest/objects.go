// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Objects counts what of BPF a kernel has.
type Objects struct{ Programs, Maps, Links int }

// KernelObjects counts what of BPF the kernel has now, also what other processes loaded. What was
// closed just before may still be in it: see [Eventually].
func KernelObjects(t testing.TB) Objects {
	t.Helper()
	var has Objects
	for id := ebpf.ProgramID(0); ; has.Programs++ {
		if id = next(t, ebpf.ProgramGetNextID, id); id == 0 {
			break
		}
	}
	for id := ebpf.MapID(0); ; has.Maps++ {
		if id = next(t, ebpf.MapGetNextID, id); id == 0 {
			break
		}
	}
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		has.Links++
	}
	if err := it.Err(); err != nil {
		t.Fatal("list links:", err)
	}
	return has
}

// next returns the ID behind id, 0 for the last.
func next[ID ~uint32](t testing.TB, get func(ID) (ID, error), id ID) ID {
	t.Helper()
	id, err := get(id)
	if errors.Is(err, os.ErrNotExist) {
		return 0
	}
	if err != nil {
		t.Fatal("list objects of BPF:", err)
	}
	return id
}
