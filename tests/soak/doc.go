// SPDX-License-Identifier: Apache-2.0

// Command soak runs pcn host for hours on hosts that are network namespaces. Clients come and go
// over paths that lose, mark, reorder and flap, while hosts are upgraded and killed. It checks that
// nothing leaks, no flow gets stuck and no counter is wrong: see docs/soak.md.
package main
