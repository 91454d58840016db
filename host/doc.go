// SPDX-License-Identifier: Apache-2.0

// Package host puts PCN onto a real host: it registers congestion controls, attaches notification
// and reaction points to interfaces, and leaves all of it pinned in a BPF file system, from where
// later calls, also of other processes, read it, change it in place and take it away.
//
// What is pinned is the only state: [Host.Up] makes it what a [Config] says, and [Host.Down]
// removes it. Both are transactions: what fails half-way is undone. Both may be killed at any
// point; the next call finishes or removes what that left.
package host
