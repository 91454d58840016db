// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/jsonout"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/result"
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
			code := 0
			w := cmd.OutOrStdout()
			found := []jsonout.Diff{}
			for _, p := range pairs {
				differences := result.Diff(p.a, p.b)
				if asJSON {
					found = append(found, jsonout.DiffOf(p.name, differences))
					if len(differences) > 0 {
						code = exitDiffer
					}
				} else if printDifferences(w, p.name, differences) {
					code = exitDiffer
				}
			}
			if asJSON {
				if err := printJSON(w, found); err != nil {
					return err
				}
			}
			return exitWith(code)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// printDifferences prints the differences of a pair of runs, and reports whether there are any.
func printDifferences(w io.Writer, name string, differences []result.Difference) bool {
	if len(differences) == 0 {
		fmt.Fprintf(w, "%s: same\n", name)
		return false
	}
	fmt.Fprintf(w, "%s: different\n", name)
	for _, d := range differences {
		fmt.Fprintf(w, "  %s\n", d)
	}
	return true
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
