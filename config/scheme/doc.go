// SPDX-License-Identifier: Apache-2.0

// Package scheme says what congestion-control schemes there are, what each needs of a network, and
// which parameters it has.
//
// Nothing of that is written here: it stands in the C source of each control (bpf/cc, bpf/algo) as
// annotations, which this package reads from the BTF of the compiled object. See bpf/algo/param.h
// and bpf/include/scheme.h. Sets of parameters with their sources are in presets.
package scheme

//go:generate ../../scripts/compile-controls.sh
//go:generate go run ./document ../../docs/schemes.md
