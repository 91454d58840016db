// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"
)

// KernelObjects returns what of BPF the kernel has now, such as "program 7", also what other
// processes loaded. No two ever have the same ID. What was closed just before may still be in it:
// see [Eventually].
func KernelObjects(t testing.TB) (objects []string) {
	t.Helper()
	for id := next(t, ebpf.ProgramGetNextID, 0); id != 0; id = next(t, ebpf.ProgramGetNextID, id) {
		objects = append(objects, fmt.Sprint("program ", id))
	}
	for id := next(t, ebpf.MapGetNextID, 0); id != 0; id = next(t, ebpf.MapGetNextID, id) {
		objects = append(objects, fmt.Sprint("map ", id))
	}
	var ids []link.ID
	var err error
	made := func() bool { // EAGAIN: another process is making one of them
		ids, err = links()
		return !errors.Is(err, unix.EAGAIN)
	}
	InTime(Patience, made)
	if err != nil {
		t.Fatal("list links:", err)
	}
	for _, id := range ids {
		objects = append(objects, fmt.Sprint("link ", id))
	}
	return objects
}

func links() (ids []link.ID, err error) {
	var it link.Iterator
	defer it.Close()
	for it.Next() {
		ids = append(ids, it.ID)
	}
	return ids, it.Err()
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
