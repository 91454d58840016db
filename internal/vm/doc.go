// SPDX-License-Identifier: Apache-2.0

// Package vm runs a guest program inside a microVM: QEMU, a stock Debian kernel, and an initramfs
// whose /init is that program. It needs no root, no image and no network.
//
// By default the machine counts instructions instead of time: two runs of the same input are the
// same to the nanosecond, however loaded the host is. [Run] is the host's side, package guest the
// guest's. Package vmtest runs test binaries in microVMs.
package vm
