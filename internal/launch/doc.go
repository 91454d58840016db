// SPDX-License-Identifier: Apache-2.0

// Package launch runs experiments. An [Engine] runs one job, a [Pool] assigns CPUs to jobs, and
// [Run] runs all jobs of an experiment and writes result folders, captures and the report.
package launch
