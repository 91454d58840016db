// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/pcn-linux/pcn/netns-lab/launch"
)

func newReport() *cobra.Command {
	var (
		out   string
		force bool
	)
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the report of any runs, side by side",
		Long: `Write the HTML report of result folders: of one run (runs/NAME/pcn), of all runs of
an experiment (runs/NAME), or of several experiments (runs).

If the file exists, pcn asks on a terminal, and refuses elsewhere. --force overwrites it.`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if !force {
				if err := askOverwrite(cmd, out); err != nil {
					return err
				}
			}
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
	c.Flags().BoolVar(&force, "force", false, "overwrite the file if it exists")
	return c
}

// askOverwrite fails if the file exists, unless the user of a terminal agrees to overwrite it.
func askOverwrite(cmd *cobra.Command, path string) error {
	if _, err := os.Lstat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return fmt.Errorf("look for the report: %w", err)
	}
	refused := usageError{fmt.Errorf(
		"%s exists: choose another file with --out, or overwrite it with --force", path)}
	in, isFile := cmd.InOrStdin().(*os.File)
	if !isFile || !term.IsTerminal(int(in.Fd())) {
		return refused
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "%s exists. Overwrite it? [y/N] ", path)
	answer, err := bufio.NewReader(in).ReadString('\n')
	if err != nil || strings.ToLower(strings.TrimSpace(answer)) != "y" {
		return refused
	}
	return nil
}
