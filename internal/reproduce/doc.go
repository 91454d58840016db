// SPDX-License-Identifier: Apache-2.0

// Package reproduce holds what the papers claim, as a catalogue of figures, and judges runs by it.
// Each figure is run as a sweep: package sweep runs it, keeps what is finished and goes on with the
// rest, on this machine or a Slurm cluster.
package reproduce
