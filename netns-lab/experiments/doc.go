// SPDX-License-Identifier: Apache-2.0

// Package experiments holds the experiments that come with the program: those of
// the papers, in the papers' own units, one YAML file each.
package experiments
