// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

func newDiff() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "diff A B",
		Short: "Check whether two runs are the same, and show where they first differ",
		Long: fmt.Sprintf(`Compare two result folders: two runs, or two folders with runs of the
same experiments, cases and schemes, pair by pair. Prints "same", or the values of A / B where
they differ. First come guest program, kernel, QEMU, experiment file and scheme object, by their
hashes or versions; then other settings; then the first event in time, and the first flow and
port. The cost of a run, such as its CPU time, is not compared.

Exits with %d if runs differ.`, exitDiffer),
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, dirs []string) error {
			pairs, err := pairRuns(dirs[0], dirs[1])
			if err != nil {
				return err
			}
			found := newDifferences(cmd.OutOrStdout(), asJSON)
			for _, p := range pairs {
				found.add(p.name, result.Diff(p.a, p.b))
			}
			return found.finish()
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// differences prints the differences of pairs of runs: each at once, or all as JSON in the end.
type differences struct {
	w      io.Writer
	asJSON bool
	all    []jsonout.Diff
	code   int
}

func newDifferences(w io.Writer, asJSON bool) *differences {
	return &differences{w: w, asJSON: asJSON, all: []jsonout.Diff{}}
}

// add takes the differences of a pair.
func (d *differences) add(name string, of []result.Difference) {
	if len(of) > 0 {
		d.code = exitDiffer
	}
	if d.asJSON {
		d.all = append(d.all, jsonout.DiffOf(name, of))
		return
	}
	if len(of) == 0 {
		fmt.Fprintf(d.w, "%s: same\n", name)
		return
	}
	fmt.Fprintf(d.w, "%s: different\n", name)
	for _, x := range of {
		fmt.Fprintf(d.w, "  %s\n", x)
	}
}

// finish returns the exit code.
func (d *differences) finish() error {
	if d.asJSON {
		if err := printJSON(d.w, d.all); err != nil {
			return err
		}
	}
	return exitWith(d.code)
}

type runPair struct {
	name string
	a, b *result.Run
}

// pairRuns pairs the runs of two folders by name. If each folder has one run, these are a pair
// whatever their names.
func pairRuns(dirA, dirB string) ([]runPair, error) {
	namesA, a, err := runsByName(dirA)
	if err != nil {
		return nil, err
	}
	namesB, b, err := runsByName(dirB)
	if err != nil {
		return nil, err
	}
	if len(a) == 1 && len(b) == 1 {
		return []runPair{{namesA[0], a[namesA[0]], b[namesB[0]]}}, nil
	}
	var pairs []runPair
	for _, name := range namesA {
		if b[name] == nil {
			return nil, fmt.Errorf("%s has no run %s, but %s has one", dirB, name, dirA)
		}
		pairs = append(pairs, runPair{name, a[name], b[name]})
	}
	for _, name := range namesB {
		if a[name] == nil {
			return nil, fmt.Errorf("%s has no run %s, but %s has one", dirA, name, dirB)
		}
	}
	return pairs, nil
}

// runsByName reads the runs of a folder; names has their names in order.
func runsByName(dir string) (names []string, runs map[string]*result.Run, err error) {
	groups, err := launch.ReadRuns([]string{dir})
	if err != nil {
		return nil, nil, err
	}
	runs = map[string]*result.Run{}
	for _, g := range groups {
		for _, r := range g.Runs {
			name := r.Manifest.Experiment + " " + r.Manifest.Label()
			if runs[name] != nil {
				return nil, nil,
					fmt.Errorf("%s has two runs named %q: give the folder of one of them",
						dir, name)
			}
			names = append(names, name)
			runs[name] = r
		}
	}
	return names, runs, nil
}
