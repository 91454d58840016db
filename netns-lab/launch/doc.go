// SPDX-License-Identifier: Apache-2.0

// Package launch runs experiments from the outside. An [Engine] does one job; a [Pool] gives jobs
// CPUs; [Run] does all jobs of an experiment, and puts result folders, captures and the report
// where the user asked.
package launch
