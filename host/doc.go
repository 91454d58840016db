// SPDX-License-Identifier: Apache-2.0

// Package host runs PCN on a real host. It registers congestion controls, attaches notification and
// reaction points to interfaces, and pins all of it in a BPF file system. Later calls, also of
// other processes, read, change and remove it there.
//
// The pins are the only state: [Host.Up] makes them what a [Config] asks for, and [Host.Down]
// removes them. Both are transactions: what fails half-way is undone. If one is killed, the next
// call finishes or removes the rest.
package host
