// SPDX-License-Identifier: Apache-2.0

// Package scheme describes all congestion-control schemes: what each needs from a network, and
// which parameters it has.
//
// The descriptions are annotations in the C source of each control (bpf/cc, bpf/algo), which this
// package reads from the BTF of the compiled object: see bpf/algo/param.h and bpf/include/scheme.h.
// The folder presets has sets of parameter values with their sources.
package scheme

//go:generate ../../scripts/compile-controls.sh
//go:generate go test -run TestDescriptions -count 1 . -update
//go:generate go run ./document ../../docs/schemes.md
