// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"
	"os"
	"path/filepath"

	"pcn/netns-lab/experiment"
	"pcn/netns-lab/result"
)

// ReadRuns reads the runs in these folders: each is a run's own, or one that holds those of several runs. They
// must all be of one experiment.
func ReadRuns(dirs []string) (*experiment.Experiment, []*result.Run, error) {
	var runs []*result.Run
	for _, dir := range dirs {
		found, err := runDirs(dir)
		if err != nil {
			return nil, nil, err
		}
		for _, d := range found {
			run, err := result.Read(d)
			if err != nil {
				return nil, nil, err
			}
			runs = append(runs, run)
		}
	}
	e, err := experimentOf(runs)
	return e, runs, err
}

// runDirs are the folders of runs in dir: itself, or those in it.
func runDirs(dir string) ([]string, error) {
	const manifest = "manifest.json"
	if _, err := os.Stat(filepath.Join(dir, manifest)); err == nil {
		return []string{dir}, nil
	}
	found, err := filepath.Glob(filepath.Join(dir, "*", manifest))
	if err != nil {
		return nil, fmt.Errorf("look for runs in %s: %w", dir, err)
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s holds no run: give the folder that `pcn run` named, or one of a scheme in it", dir)
	}
	for i := range found {
		found[i] = filepath.Dir(found[i])
	}
	return found, nil
}

// experimentOf is the experiment of the first run, as it was changed for it. The others' must be the same file.
func experimentOf(runs []*result.Run) (*experiment.Experiment, error) {
	first := runs[0].Manifest
	for _, r := range runs[1:] {
		if m := r.Manifest; m.ExperimentSHA256 != first.ExperimentSHA256 {
			return nil, fmt.Errorf("runs of different experiments can't be compared: %s (%.8s) and %s (%.8s)",
				first.Experiment, first.ExperimentSHA256, m.Experiment, m.ExperimentSHA256)
		}
	}
	e, err := experiment.Parse(first.Experiment+".yaml", runs[0].Experiment)
	if err != nil {
		return nil, err
	}
	duration := experiment.Duration(first.DurationNs)
	return e.Override(experiment.Override{Seed: &first.Seed, Duration: &duration, Dilation: &first.DilationShift})
}
