// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/flock"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/table"
	"github.com/pcn-linux/pcn/version"
)

// Tool returns the program's name and version, as manifests have it.
func Tool() string { return "pcn " + version.Number() }

// Files of a result folder, beside those of package result.
const (
	ReportFile  = "report.html"
	captureFile = "pfc.pcapng"
)

// Options holds what to run, and where to write results.
type Options struct {
	Experiment *experiment.Experiment
	Engine     Engine
	Out        string // folder of the results; must not exist, or be empty
	// Packets has the simulator write what happens to each packet into each result's folder.
	Packets bool
	// Checkpoints has the simulator write them, and go on from those in Out, which may be the
	// folder of an interrupted run.
	Checkpoints bool
	// Progress receives how far each run, CASE/SCHEME or SCHEME, is: 0 to 1. Several goroutines
	// call it. It may be nil.
	Progress func(run string, done float64)
	// Waiting is called once if runs wait because microVMs of other processes use all CPUs. It may
	// be nil.
	Waiting func()
}

// Jobs returns the runs of an experiment: each case, and each scheme in it.
func Jobs(e *experiment.Experiment) ([]job.Job, error) {
	var all []job.Job
	for _, name := range e.CaseNames() {
		c, err := e.Case(name)
		if err != nil {
			return nil, err
		}
		for _, scheme := range c.Schemes {
			all = append(all, job.Job{Experiment: c, Scheme: scheme})
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("no case of experiment %s is run with %s",
			e.Name, strings.Join(e.Schemes, ", "))
	}
	return all, nil
}

// Count returns the number of runs of an experiment; 0 if one of its cases can't run.
func Count(e *experiment.Experiment) int {
	all, err := Jobs(e)
	if err != nil {
		return 0
	}
	return len(all)
}

// Run runs all schemes in all cases of the experiment. It leaves the files of each in
// Out/CASE/SCHEME, or Out/SCHEME if there are no cases, and Out/report.html and
// Out/expectations.json. If a run fails, it keeps the results of those that have ended.
func Run(ctx context.Context, o Options) ([]*result.Run, error) {
	todo, err := Jobs(o.Experiment)
	if err != nil {
		return nil, err
	}
	release, err := claim(o.Out, o.Checkpoints)
	if err != nil {
		return nil, err
	}
	defer release()
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	saved, err := checkpointsOf(o, todo)
	if err != nil {
		return nil, err
	}
	runs, err := runAll(ctx, o, todo, saved)
	if err != nil {
		return nil, err
	}
	err = writeOutcomes(o.Out, report.Group{Experiment: o.Experiment, Runs: runs})
	if err != nil {
		return nil, err
	}
	return runs, saved.remove()
}

// writeOutcomes writes what all runs of an experiment came to into their folder: for people and for
// programs.
func writeOutcomes(dir string, g report.Group) error {
	seeds := judged(g)
	data, err := json.MarshalIndent(outcomesOf(g, seeds), "", "  ")
	if err != nil {
		return fmt.Errorf("encode the expectations: %w", err)
	}
	path := filepath.Join(dir, jsonout.ExpectationsFile)
	if err := os.WriteFile(path, append(data, '\n'), 0o644); err != nil {
		return fmt.Errorf("write the expectations: %w", err)
	}
	if err := table.Of(g.Experiment, seeds).WriteFile(dir); err != nil {
		return err
	}
	return WriteReport(filepath.Join(dir, ReportFile), []report.Group{g})
}

// OutcomesOf describes what the runs of a group came to.
func OutcomesOf(g report.Group) jsonout.Outcomes { return outcomesOf(g, judged(g)) }

func outcomesOf(g report.Group, seeds []result.Judged) jsonout.Outcomes {
	if len(g.Seeds) > 0 {
		return jsonout.OutcomesOfSeeds(g.Experiment.Name, g.Seeds)
	}
	return jsonout.OutcomesOf(g.Experiment.Name, seeds[0])
}

// judged returns what the runs of a group came to with each seed, on each engine.
func judged(g report.Group) (seeds []result.Judged) {
	if len(g.Seeds) == 0 {
		return []result.Judged{result.Judge(g.Experiment, g.Runs)}
	}
	for _, s := range g.Seeds {
		seeds = append(seeds, s.Seeds...)
	}
	return seeds
}

// runAll runs as many jobs at a time as the engine can, and saves each result.
func runAll(
	ctx context.Context, o Options, todo []job.Job, saved *checkpoints,
) ([]*result.Run, error) {
	pool, err := NewPool(o.Engine, o.Waiting)
	if err != nil {
		return nil, err
	}
	runs := make([]*result.Run, len(todo))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(pool.Size())
	for i, j := range todo {
		g.Go(func() error {
			if ctx.Err() != nil {
				return ctx.Err() // another run failed before this one began
			}
			if o.Packets {
				j.PacketsIn = filepath.Join(o.Out, j.Label())
			}
			var err error
			if runs[i], err = saved.ended(j); err != nil || runs[i] != nil {
				o.Progress(j.Label(), 1)
				return err
			}
			j.Checkpoint = saved.path(j)
			run, err := pool.Run(ctx, j, func(done float64) { o.Progress(j.Label(), done) })
			if err != nil {
				return fmt.Errorf("run %s: %w", j.Label(), err)
			}
			runs[i] = run
			if err := save(run, o.Out); err != nil {
				return err
			}
			return saved.end(j)
		})
	}
	return runs, g.Wait()
}

// claim makes the folder, and keeps other processes from writing into it too until release is
// called. Release removes the folder if nothing was written: a failed start leaves no folder. With
// resume, it may be that of an interrupted run.
func claim(out string, resume bool) (release func(), err error) {
	if err := prepare(out, resume); err != nil {
		return nil, err
	}
	lock, err := flock.Try(out)
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("another pcn writes into result folder %s: "+
			"choose another with --out", out)
	}
	if err != nil {
		lock = nil // some network file systems have no locks of folders: run without
	}
	release = func() {
		os.Remove(out) // fails if there are results, which is right
		if lock != nil {
			lock.Release()
		}
	}
	// Another may have written, and ended, before the lock was taken.
	if err := prepare(out, resume); err != nil {
		release()
		return nil, err
	}
	return release, nil
}

// prepare makes the folder; it fails if the folder is not empty, nor one to go on in.
func prepare(out string, resume bool) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the result folder: %w", err)
	}
	if len(entries) > 0 && interrupted(out) {
		if resume {
			return nil
		}
		return fmt.Errorf("result folder %s is of an interrupted run: go on with --checkpoint, "+
			"choose another with --out, or remove it", out)
	}
	if len(entries) > 0 {
		return fmt.Errorf("result folder %s is not empty: choose another with --out, or remove it",
			out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make the result folder: %w", err)
	}
	return nil
}

// save writes a run's files into its folder in out.
func save(run *result.Run, out string) error {
	return SaveIn(filepath.Join(out, run.Manifest.Label()), run)
}

// SaveIn writes a run's files and its capture into a folder.
func SaveIn(dir string, run *result.Run) error {
	if err := run.Write(dir); err != nil {
		return err
	}
	return writeCapture(filepath.Join(dir, captureFile), run)
}

// WriteReport writes a report of the runs. Runs of one experiment always give the same bytes; a
// report of several also shows what the runs cost.
func WriteReport(path string, groups []report.Group) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := errors.Join(draw(f, groups), f.Close()); err != nil {
		return fmt.Errorf("write report %s: %w", path, err)
	}
	return nil
}

// WriteFigures writes each figure as a file of the format, and returns the paths. It overwrites
// files only if force is true.
func WriteFigures(dir string, figures []report.Figure, format report.Format, force bool) ([]string,
	error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, fmt.Errorf("write figures: %w", err)
	}
	flags := os.O_CREATE | os.O_WRONLY | os.O_TRUNC
	if !force {
		flags |= os.O_EXCL
	}
	var paths []string
	for _, figure := range figures {
		path := filepath.Join(dir, figure.Name+"."+string(format))
		f, err := os.OpenFile(path, flags, 0o644)
		if err != nil {
			return paths, fmt.Errorf("write figures: %w", err)
		}
		if err := errors.Join(figure.Write(f, format), f.Close()); err != nil {
			return paths, fmt.Errorf("write %s: %w", path, err)
		}
		paths = append(paths, path)
	}
	return paths, nil
}

func draw(w io.Writer, groups []report.Group) error {
	if len(groups) == 1 {
		return report.Write(w, groups[0])
	}
	return report.WriteMany(w, groups)
}
