// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// hugePage is the size of a huge page of amd64, and of arm64 with pages of 4 KB.
const hugePage = 2 << 20

// makeHuge is make for much memory, for which it asks the kernel for huge pages: a large network
// touches more pages than a CPU knows the places of. It is a wish, so an error is none.
func makeHuge[T any](n, capacity int) []T {
	one := unsafe.Sizeof(*new(T))
	if uintptr(capacity)*one < hugePage/2 {
		return make([]T, n, capacity)
	}
	pages := (uintptr(capacity)*one + hugePage - 1) / hugePage
	all := make([]T, int(((pages+1)*hugePage+one-1)/one))
	address := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
	skip := -address % hugePage
	begin := unsafe.Add(unsafe.Pointer(unsafe.SliceData(all)), skip)
	_ = unix.Madvise(unsafe.Slice((*byte)(begin), pages*hugePage), unix.MADV_HUGEPAGE)
	first := int((skip + one - 1) / one)
	return all[first : first+n : first+capacity]
}
