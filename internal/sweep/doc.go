// SPDX-License-Identifier: Apache-2.0

// Package sweep runs an experiment once for each combination of scheme, parameters and seed. Such a
// run is a cell. Cells run on one engine, in deterministic microVMs or as simulations, on this
// machine or as a Slurm job array. A finished cell is never run again. Means over the seeds have
// confidence intervals.
package sweep
