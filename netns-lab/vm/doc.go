// SPDX-License-Identifier: Apache-2.0

// Package vm runs this very program inside a microVM: QEMU, a stock Debian kernel, and an initramfs whose /init is
// the program itself. It needs no root, no image and no network.
//
// By default the machine counts instructions instead of time: two runs of the same input are the same to the
// nanosecond, however loaded the host is. [Run] is the host's side, [GuestMain] the guest's, and [RunTests] takes a
// test binary through both.
package vm
