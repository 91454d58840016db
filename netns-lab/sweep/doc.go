// SPDX-License-Identifier: Apache-2.0

// Package sweep runs an experiment once for each combination of scheme, parameters and seed. Such a
// run is a cell. Cells run in deterministic microVMs, on this machine or as a Slurm job array, and
// a finished cell is never run again. Means over the seeds have confidence intervals.
package sweep
