// SPDX-License-Identifier: Apache-2.0

// Package sweep runs an experiment in many cells, schemes x parameters x seeds, each in a deterministic microVM, here or
// as a Slurm job array. A cell that is finished is never run again. Values over seeds come with confidence intervals.
package sweep
