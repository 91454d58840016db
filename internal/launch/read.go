// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/table"
)

// maxDepth is how deep below a folder runs may be: EXPERIMENT/ENGINE/CASE/SCHEME.
const maxDepth = 4

// ReadRuns reads the runs in these folders and groups them by experiment file. Each folder is that
// of a run, or contains those of several. Groups are in the order of the folders, and runs of a
// group in the order of the file's cases and schemes, and of engines.
func ReadRuns(dirs []string) ([]report.Group, error) {
	var hashes []string
	runs, roots := map[string][]*result.Run{}, map[string][]string{}
	for _, dir := range dirs {
		found, err := dirsWith(manifestFile, dir, maxDepth)
		if err != nil {
			return nil, fmt.Errorf("look for runs: %w", err)
		}
		if len(found) == 0 {
			return nil,
				fmt.Errorf("%s holds no run: give the folder that `pcn run` named, or one in it",
					dir)
		}
		for _, d := range found {
			run, err := result.Read(d)
			if err != nil {
				return nil, err
			}
			hash := run.Manifest.ExperimentSHA256
			if runs[hash] == nil {
				hashes = append(hashes, hash)
			}
			runs[hash] = append(runs[hash], run)
			if root := rootOf(d, run); !slices.Contains(roots[hash], root) {
				roots[hash] = append(roots[hash], root)
			}
		}
	}
	var groups []report.Group
	for _, hash := range hashes {
		g, err := groupOf(runs[hash])
		if err != nil {
			return nil, err
		}
		for _, root := range roots[hash] {
			if err := addSeeds(&g, root); err != nil {
				return nil, err
			}
		}
		groups = append(groups, g)
	}
	return groups, nil
}

// rootOf returns the folder of results that a run's folder is in: Out of [Options].
func rootOf(dir string, run *result.Run) string {
	for range strings.SplitSeq(run.Manifest.Label(), "/") {
		dir = filepath.Dir(dir)
	}
	return dir
}

// addSeeds adds the summaries of several seeds, if the folder of results has them.
func addSeeds(g *report.Group, root string) error {
	if _, err := os.Stat(filepath.Join(root, table.File)); errors.Is(err, fs.ErrNotExist) {
		return nil // of an older version, or a run on its own
	}
	t, err := table.ReadFile(root)
	if err != nil {
		return err
	}
	e := g.Experiment
	t.Rows = slices.DeleteFunc(t.Rows, func(r table.Row) bool { // of runs that are not read
		return !slices.Contains(e.Schemes, r.Scheme) ||
			r.Case != "" && !slices.Contains(e.CaseNames(), r.Case)
	})
	for _, engine := range result.EnginesOf(g.Runs) {
		seeds, err := t.Judged(g.Experiment, engine)
		if err != nil {
			return fmt.Errorf("%s: %w", root, err)
		}
		if len(seeds) > 1 {
			g.Seeds = append(g.Seeds, &result.SeedsSummary{Seeds: seeds})
		}
	}
	return nil
}

// manifestFile is in the folder of each run.
const manifestFile = "manifest.json"

// dirsWith returns the folders with a file of this name: dir itself, or those up to depth levels
// below.
func dirsWith(name, dir string, depth int) ([]string, error) {
	if _, err := os.Stat(filepath.Join(dir, name)); err == nil {
		return []string{dir}, nil
	}
	if depth == 0 {
		return nil, nil
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, e := range entries {
		if !e.IsDir() {
			continue
		}
		found, err := dirsWith(name, filepath.Join(dir, e.Name()), depth-1)
		if err != nil {
			return nil, err
		}
		dirs = append(dirs, found...)
	}
	return dirs, nil
}

// groupOf sorts the runs of one file and returns them with their experiment. The experiment has
// just their cases and schemes, and the changes of the first run.
func groupOf(runs []*result.Run) (report.Group, error) {
	e, err := experiment.Parse(runs[0].Manifest.Experiment+".yaml", runs[0].Experiment)
	if err != nil {
		return report.Group{}, err
	}
	cases, schemes := compareByPosition(e.CaseNames()), compareByPosition(e.Schemes)
	engines := experiment.Engines()
	slices.SortStableFunc(runs, func(a, b *result.Run) int {
		return cmp.Or(cases(a.Manifest.Case, b.Manifest.Case),
			schemes(a.Manifest.Scheme, b.Manifest.Scheme),
			cmp.Compare(slices.Index(engines, a.Manifest.RanOn()),
				slices.Index(engines, b.Manifest.RanOn())))
	})
	c, err := changesOf(e, runs[0].Manifest)
	if err != nil {
		return report.Group{}, err
	}
	c.Schemes = distinctNames(runs, func(m result.Manifest) string { return m.Scheme })
	slices.SortStableFunc(c.Schemes, schemes)
	if len(e.Cases) > 0 {
		c.Cases = distinctNames(runs, func(m result.Manifest) string { return m.Case })
	}
	e, err = e.With(c)
	return report.Group{Experiment: e, Runs: runs}, err
}

// changesOf returns how a run's values differ from those of its case in the file.
func changesOf(e *experiment.Experiment, run result.Manifest) (c experiment.Changes, err error) {
	e, err = e.Case(run.Case)
	if err != nil {
		return c, err
	}
	if run.Seed != e.Seed {
		c.Seed = &run.Seed
	}
	if duration := experiment.Duration(run.DurationNs); duration != e.Duration {
		c.Duration = &duration
	}
	if run.DilationShift != e.Dilation.Shift {
		c.Dilation = &run.DilationShift
	}
	return c, nil
}

// compareByPosition compares names by their positions in a list. Others, such as a baseline that
// the file does not list, come last.
func compareByPosition(list []string) func(a, b string) int {
	place := func(name string) int {
		if i := slices.Index(list, name); i >= 0 {
			return i
		}
		return len(list)
	}
	return func(a, b string) int { return cmp.Compare(place(a), place(b)) }
}

// distinctNames returns the names in the manifests, each once, in the order of the runs.
func distinctNames(runs []*result.Run, name func(result.Manifest) string) []string {
	var names []string
	for _, r := range runs {
		if n := name(r.Manifest); !slices.Contains(names, n) {
			names = append(names, n)
		}
	}
	return names
}
