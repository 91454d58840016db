// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

func newRerun() *cobra.Command {
	var out string
	var asJSON bool
	c := &cobra.Command{
		Use:   "rerun RUN",
		Short: "Repeat the runs in a result folder, and check that they are the same",
		Long: fmt.Sprintf(`Run each run of a result folder again from its manifest: the same
experiment, seed, dilation, guest program, kernel and QEMU. Prints "same", or where the values of
the old run and the new one differ, as pcn diff does. If this machine lacks the guest program, the
kernel or the QEMU of a run, it says which, and runs nothing. A simulated run needs this program
only: if another version wrote it, it says so.

Exits with %d if runs differ.`, exitDiffer),
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return rerun(cmd, args[0], out, asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON, as pcn diff does")
	c.Flags().StringVar(&out, "out", "", "folder for the new results (default: they are not kept)")
	return c
}

func rerun(cmd *cobra.Command, dir, out string, asJSON bool) error {
	names, runs, err := runsByName(dir)
	if err != nil {
		return err
	}
	engines := map[string]launch.Engine{} // each kernel's hashes its image once
	for _, name := range names {
		if err := addEngine(engines, runs[name].Manifest); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	for _, name := range names {
		if tool := runs[name].Manifest.Tool; tool != launch.Tool() {
			fmt.Fprintf(cmd.ErrOrStderr(), "pcn: %s is of %s, and this is %s: results may differ\n",
				name, tool, launch.Tool())
		}
	}
	found := newDifferences(cmd.OutOrStdout(), asJSON)
	for _, name := range names {
		engine := engines[machineOf(runs[name].Manifest)]
		again, err := runAgain(cmd.Context(), engine, runs[name], printWaiting(cmd))
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if out != "" {
			err := launch.SaveIn(filepath.Join(out, again.Manifest.Label()), again)
			if err != nil {
				return err
			}
		}
		found.add(name, result.Diff(runs[name], again))
	}
	return found.finish()
}

// machineOf returns what distinguishes the engines of runs: the name, and of a microVM the kernel.
func machineOf(m result.Manifest) string { return string(m.RanOn()) + " " + m.Kernel }

// addEngine adds the engine that a run had, or fails with what is missing.
func addEngine(engines map[string]launch.Engine, m result.Manifest) error {
	if !m.Deterministic {
		return errors.New("it can't be repeated: it was not in a microVM that counts " +
			"instructions (without --native and --real-time)")
	}
	if engines[machineOf(m)] != nil {
		return nil
	}
	if m.RanOn() != experiment.EngineKernel {
		var err error
		engines[machineOf(m)], err = engineFlags{}.openOne(m.RanOn())
		return err
	}
	kernel, err := kernelOf(m)
	if err != nil {
		return err
	}
	engine, err := launch.NewMicroVMs(kernel, false)
	if err != nil {
		return err
	}
	missing, err := engine.Missing(m)
	if err != nil {
		return err
	}
	if len(missing) > 0 {
		return fmt.Errorf("it can't be repeated, as it had another machine: %s. Build pcn at "+
			"the commit of that run, and install that kernel and QEMU", strings.Join(missing, "; "))
	}
	engines[machineOf(m)] = engine
	return nil
}

// kernelOf returns the name of a run's kernel: of one that a user built, or else its release.
func kernelOf(m result.Manifest) (string, error) {
	all, err := ownKernels()
	if err != nil {
		return "", err
	}
	for _, k := range all {
		if k.SHA256 == m.KernelSHA256 {
			return k.Name, nil
		}
	}
	return m.Kernel, nil
}

func runAgain(
	ctx context.Context, engine launch.Engine, old *result.Run, waiting func(),
) (*result.Run, error) {
	j, err := launch.Again(old)
	if err != nil {
		return nil, err
	}
	pool, err := launch.NewPool(engine, waiting)
	if err != nil {
		return nil, err
	}
	run, err := pool.Run(ctx, j, func(float64) {})
	if err != nil {
		return nil, err
	}
	// what was tried before is no part of this run
	run.Manifest.DilationsTried = old.Manifest.DilationsTried
	return run, nil
}
