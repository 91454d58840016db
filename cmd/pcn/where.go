// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/pflag"

	"github.com/pcn-linux/pcn/internal/sweep"
)

// Where many runs run.
const (
	onLocal = "local"
	onSlurm = "slurm"
)

// whereFlags say where many runs run.
type whereFlags struct {
	on     string
	sbatch []string
	pack   int
}

func (f *whereFlags) add(flags *pflag.FlagSet) {
	flags.StringVar(&f.on, "on", onLocal, "where to run: local, or slurm for job arrays")
	flags.StringArrayVar(&f.sbatch, "sbatch", nil,
		"argument for sbatch, such as --partition=short; may be repeated")
	flags.IntVar(&f.pack, "pack", 0, "runs in each task of a job array; 0 means up to 8")
}

// check fails for values that mean nothing.
func (f whereFlags) check() error {
	if f.on != onLocal && f.on != onSlurm {
		return usageError{fmt.Errorf("unknown --on %q: want %s or %s", f.on, onLocal, onSlurm)}
	}
	if f.pack < 0 {
		return usageError{fmt.Errorf("invalid --pack %d: want 0 or more", f.pack)}
	}
	return nil
}

// slurm returns how job arrays are submitted, and says so on stderr. File and engine are left out.
func (f whereFlags) slurm(stderr io.Writer) sweep.Slurm {
	printJob := func(job string, tasks int) {
		if tasks == 0 {
			fmt.Fprintf(stderr, "pcn: waiting for job %s, which is in the queue already\n", job)
			return
		}
		fmt.Fprintf(stderr, "pcn: submitted job %s of %d tasks\n", job, tasks)
	}
	return sweep.Slurm{Pack: f.pack, Args: f.sbatch, Submitted: printJob}
}
