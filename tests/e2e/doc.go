// SPDX-License-Identifier: Apache-2.0

// Package e2e tests the pcn program from the outside, as its users run it.
//
// Tests whose microVMs only run deterministic experiments are parallel: another microVM beside them
// changes no result, and a test of one microVM leaves no CPU idle. Those that measure time are not.
package e2e
