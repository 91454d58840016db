// SPDX-License-Identifier: Apache-2.0

// Package uml builds User Mode Linux from Debian's source of Linux: the kernel as a program, with
// x86's compiler of BPF, and a clock that stands still while its CPU works. No line of Linux stands
// here: folder linux has what is added, and edits what is changed.
package uml
