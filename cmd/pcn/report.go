// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/launch"
)

func newReport() *cobra.Command {
	var out string
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the report of any runs, side by side",
		Long: `Write the HTML report of result folders: of one run (runs/NAME/pcn), of all runs of
an experiment (runs/NAME), or of several experiments (runs).`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			groups, err := launch.ReadRuns(dirs)
			if err != nil {
				return err
			}
			if err := launch.WriteReport(out, groups); err != nil {
				return err
			}
			code := summarise(cmd.OutOrStdout(), groups)
			fmt.Fprintf(cmd.OutOrStdout(), "\nReport: %s\n", out)
			return exitWith(code)
		},
	}
	c.Flags().StringVar(&out, "out", launch.ReportFile, "file to write")
	return c
}
