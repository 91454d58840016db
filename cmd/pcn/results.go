// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/launch"
)

func newResults() *cobra.Command {
	var (
		asCSV, asParquet bool
		out              string
	)
	c := &cobra.Command{
		Use:   "results DIR...",
		Short: "Print every measured value of runs, seeds and sweeps as one table",
		Long: `Print the values of result folders as one table, a row for each value: of pcn run,
with one seed or several, and of pcn sweep. Folders may contain those of several runs;
all must be finished.

` + "docs/results.md describes the columns. pandas and R read the table in a line.",
		Example: `  pcn results runs/hol > hol.csv
  pcn results runs/hol --parquet --out hol.parquet
  pcn results runs --csv --out all.csv`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			t, err := launch.ReadTables(dirs)
			if err != nil {
				return err
			}
			write := t.WriteCSV
			if asParquet {
				write = t.WriteParquet
				if out == "" && isTerminal(cmd.OutOrStdout()) {
					return usageError{errors.New("a table in Parquet is no text: " +
						"name one with --out, " +
						"such as --out results.parquet")}
				}
			}
			if out == "" {
				return write(cmd.OutOrStdout())
			}
			var buf bytes.Buffer
			if err := write(&buf); err != nil {
				return err
			}
			return writeNew(out, buf.String())
		},
	}
	c.Flags().BoolVar(&asCSV, "csv", false, "as CSV, which is the default")
	c.Flags().BoolVar(&asParquet, "parquet", false, "as Parquet, with the types of the columns")
	c.Flags().StringVar(&out, "out", "", "file to write (default: standard output)")
	c.MarkFlagsMutuallyExclusive("csv", "parquet")
	return c
}
