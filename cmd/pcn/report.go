// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/report"
)

func newReport() *cobra.Command {
	var (
		out, figures, format string
		force                bool
	)
	c := &cobra.Command{
		Use:   "report DIR...",
		Short: "Write the report of any runs, side by side, or their figures as files",
		Long: fmt.Sprintf(`Write the HTML report of result folders: of one run (runs/NAME/pcn),
of all runs of an experiment (runs/NAME), or of several experiments (runs). The report of one folder
goes into it, as %s; for several folders, --out names the file.

If the file exists, pcn asks on a terminal, and refuses elsewhere. --force overwrites it.

With --figures, write the report's figures as files into a folder instead, one file each. The
formats svg, pdf and png are pictures; csv has each figure's values, all of them.`,
			launch.ReportFile),
		Example: `  pcn report runs/hol
  pcn report runs/linux runs/simulated --out runs/both.html
  pcn report runs/hol --figures paper/figures --format pdf`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if figures != "" {
				return writeFigures(cmd, dirs, figures, format, force)
			}
			if cmd.Flags().Changed("format") {
				return usageError{errors.New("--format is for --figures, which names a folder")}
			}
			switch {
			case out != "":
			case len(dirs) == 1:
				out = filepath.Join(dirs[0], launch.ReportFile)
			default:
				return usageError{fmt.Errorf("%d folders: name the report's file with --out, "+
					"such as --out %s", len(dirs), launch.ReportFile)}
			}
			groups, err := launch.ReadRuns(dirs)
			if err != nil {
				return err
			}
			if !force {
				if err := askOverwrite(cmd, out); err != nil {
					return err
				}
			}
			if err := launch.WriteReport(out, groups); err != nil {
				return err
			}
			code := summarise(cmd.OutOrStdout(), groups)
			fmt.Fprintf(cmd.OutOrStdout(), "\nReport: %s\n", out)
			return exitWith(code)
		},
	}
	c.Flags().StringVar(&out, "out", "",
		"file to write (default: "+launch.ReportFile+" in the folder, if there is one)")
	c.Flags().StringVar(&figures, "figures", "", "folder to write the figures into, not a report")
	c.Flags().StringVar(&format, "format", string(report.Formats()[0]),
		"format of the figures: "+formatNames())
	c.Flags().BoolVar(&force, "force", false, "overwrite files that exist")
	return c
}

// formatNames returns the formats of figures, separated by commas.
func formatNames() string {
	var names []string
	for _, f := range report.Formats() {
		names = append(names, string(f))
	}
	return strings.Join(names, ", ")
}

// writeFigures writes the figures of the runs in these folders.
func writeFigures(cmd *cobra.Command, dirs []string, to, name string, force bool) error {
	format, err := report.ParseFormat(name)
	if err != nil {
		return usageError{fmt.Errorf("--format: %w", err)}
	}
	groups, err := launch.ReadRuns(dirs)
	if err != nil {
		return err
	}
	paths, err := launch.WriteFigures(to, groups, format, force)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("%w: choose another folder, or overwrite it with --force",
			err)}
	}
	for _, path := range paths {
		fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
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
	if agreed, _ := ask(cmd, path+" exists. Overwrite it? [y/N] ", false); !agreed {
		return refused
	}
	return nil
}
