// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/table"
)

func newReport() *cobra.Command {
	var (
		out     string
		force   bool
		figures figureFlags
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
  pcn report runs/hol --figures paper/figures --format pdf
  pcn report runs/sweep-hol-burst --figures paper/figures --format pdf --width column`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			if figures.to != "" {
				figures.force = force
				return figures.write(cmd, dirs)
			}
			for _, flag := range []string{"format", "width"} {
				if cmd.Flags().Changed(flag) {
					return usageError{fmt.Errorf("--%s is for --figures, which names a folder",
						flag)}
				}
			}
			if i := slices.IndexFunc(dirs, isSweep); i >= 0 {
				return usageError{fmt.Errorf("%s is a sweep's: pcn sweep has left its %s; for "+
					"its figures as files, add --figures FOLDER", dirs[i], launch.ReportFile)}
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
	c.Flags().StringVar(&figures.to, "figures", "",
		"folder to write the figures into, not a report")
	c.Flags().StringVar(&figures.width, "width", "page",
		"width of the figures: page (5.4 inches), or column (3.33 inches) of a paper with two")
	c.Flags().StringVar(&figures.format, "format", string(report.Formats()[0]),
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

// figureFlags say which figures to write, and how.
type figureFlags struct {
	to, format, width string
	force             bool
}

// write writes the figures of the runs and sweeps in these folders.
func (f figureFlags) write(cmd *cobra.Command, dirs []string) error {
	format, err := report.ParseFormat(f.format)
	if err != nil {
		return usageError{fmt.Errorf("--format: %w", err)}
	}
	if f.width != "page" && f.width != "column" {
		return usageError{fmt.Errorf("--width %s: want page or column", f.width)}
	}
	figures, err := figuresIn(dirs)
	if err != nil {
		return err
	}
	if f.width == "column" {
		for _, figure := range figures {
			figure.Fit()
		}
	}
	paths, err := launch.WriteFigures(f.to, figures, format, f.force)
	if errors.Is(err, fs.ErrExist) {
		return usageError{fmt.Errorf("%w: choose another folder, or overwrite it with --force",
			err)}
	}
	for _, path := range paths {
		fmt.Fprintln(cmd.OutOrStdout(), path)
	}
	return err
}

// isSweep reports whether a folder is that of a sweep's results.
func isSweep(dir string) bool {
	_, err := os.Stat(filepath.Join(dir, report.SweepFile))
	return err == nil
}

// figuresIn returns the figures of each folder's report: of a sweep, or of runs.
func figuresIn(dirs []string) ([]report.Figure, error) {
	var figures []report.Figure
	var runs []string
	for _, dir := range dirs {
		if !isSweep(dir) {
			runs = append(runs, dir)
			continue
		}
		s, err := report.ReadSweep(dir)
		if err != nil {
			return nil, err
		}
		of := s.Figures()
		if len(of) == 0 {
			return nil, fmt.Errorf("the report of %s has maps, which are tables, in place of "+
				"figures: draw its %s", dir, table.File)
		}
		figures = append(figures, of...)
	}
	if len(runs) == 0 {
		return figures, nil
	}
	groups, err := launch.ReadRuns(runs)
	if err != nil {
		return nil, err
	}
	for _, g := range groups {
		of, err := report.Figures(g)
		if err != nil {
			return nil, err
		}
		figures = append(figures, of...)
	}
	return figures, nil
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
