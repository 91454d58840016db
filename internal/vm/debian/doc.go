// SPDX-License-Identifier: Apache-2.0

// Package debian puts Debian's kernels into the cache from which microVMs boot. It fetches the
// packages of the kernel that was tested, verifies them, and unpacks the boot image and the modules
// that experiments may use. It needs neither apt nor dpkg nor root, so it works on any system.
//
// A kernel of the cache is a folder with the version as its name. It appears and changes as a
// whole: whoever is killed on the way leaves nothing that looks like a kernel.
package debian
