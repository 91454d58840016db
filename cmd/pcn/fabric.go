// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/fabric"
)

func newFabric() *cobra.Command {
	c := &cobra.Command{
		Use:   "fabric",
		Short: "Check the network of an experiment before it runs",
	}
	c.AddCommand(newFabricCheck())
	return c
}

func newFabricCheck() *cobra.Command {
	var asJSON bool
	var caseName string
	c := &cobra.Command{
		Use:   "check EXPERIMENT",
		Short: "Find deadlocks, missing headroom and thresholds in the wrong order",
		Long: `Check routes, buffers and thresholds of an experiment's network, without running it:
circles of buffers that may wait for each other, also when one or two links between switches
fail; room for what arrives after a PAUSE; marking before PAUSE and drops; and oversubscription.
Each finding has the key and its line, what would be right, and what to run to see it.

A mistake loses packets, stops the network or makes a setting useless; a risk depends on
failures or on the traffic. Exits with 3 if there is a mistake.`,
		Example: `  pcn fabric check my.yaml
  pcn fabric check hol --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := loadExperiment(cmd.Context(), args[0], nil)
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("case") {
				if e, err = e.Case(caseName); err != nil {
					return usageError{err}
				}
			}
			r, err := fabric.Check(e)
			if err != nil {
				return err
			}
			for i, f := range r.Findings {
				r.Findings[i].Show = strings.ReplaceAll(f.Show, "FILE", args[0])
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), r)
			} else {
				err = printFindings(cmd.OutOrStdout(), args[0], r)
			}
			if err != nil {
				return err
			}
			for _, f := range r.Findings {
				if f.Severity == fabric.Mistake {
					return exitCode(exitExpect)
				}
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&caseName, "case", "", "check this case (default: the file without any)")
	return c
}

func printFindings(w io.Writer, file string, r *fabric.Result) error {
	for _, f := range r.Findings {
		fmt.Fprintf(w, "%s:%d: %s: %s\n    %s\n    %s\n    to see it: %s\n", file, f.Line,
			f.Severity, f.Key, f.Message, f.Hint, f.Show)
	}
	if r.Checked < r.Pairs {
		fmt.Fprintf(w, "checked %d of %d failures of two links\n", r.Checked, r.Pairs)
	}
	_, err := fmt.Fprintf(w, "%d findings\n", len(r.Findings))
	return err
}
