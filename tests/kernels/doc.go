// SPDX-License-Identifier: Apache-2.0

// Package kernels tests what works on which kernel: Debian's 6.1, 6.12 and backports' 7.x, each in a microVM, and with
// PCN_OWN_KERNEL=1 this machine's own, as root. docs/kernels.md shows what came out: it is checked, and written with
//
//	go test ./tests/kernels -update
//
// make kernels tries more, on each of Debian's kernels from 6.12 on; testdata/debian has what came
// out.
package kernels
