// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"pcn/netns-lab/launch"
)

func newReport() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Draw the report of runs again, or of several side by side",
		Long: `Draw the report of result folders: of a run (runs/NAME/pcn), or of all runs of an experiment (runs/NAME).
All must be of the same experiment.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			e, runs, err := launch.ReadRuns(dirs)
			if err != nil {
				return err
			}
			if err := launch.WriteReport(out, e, runs); err != nil {
				return err
			}
			code := summarise(cmd.OutOrStdout(), e, runs)
			fmt.Fprintf(cmd.OutOrStdout(), "\nReport: %s\n", out)
			if code != 0 {
				return exitCode(code)
			}
			return nil
		},
	}
	c.Flags().StringVar(&out, "out", launch.ReportFile, "file to write")
	return c
}
