// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"

	"golang.org/x/sync/errgroup"

	"github.com/pcn-linux/pcn/internal/flock"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// Options configure a Runner.
type Options struct {
	Sweep  *Sweep
	Engine launch.Engine
	Out    string // folder of the results; finished cells in it are kept
	// Only has the IDs of the cells to run; nil means all.
	Only []string
	// Parallel is the number of cells that run at a time; 0 means one for each CPU.
	Parallel int
	// Progress is called from several goroutines with the part of a cell that is done, 0 to 1.
	Progress func(cell string, done float64)
	// Waiting is called once if microVMs of other processes use all CPUs. It may be nil.
	Waiting func()
}

// Files and folders of a sweep's results.
const (
	cellsDir    = "cells"
	lockFile    = ".lock"
	cellsFile   = "sweep.csv"
	summaryFile = "summary.csv"
	ReportFile  = launch.ReportFile
)

// CellDir returns the folder of a cell in a folder of results.
func CellDir(out, id string) string { return filepath.Join(out, cellsDir, id) }

// Runner runs the cells of a sweep.
type Runner struct {
	o     Options
	pool  *launch.Pool
	store store
	cells []Cell
}

// NewRunner returns a runner of the sweep's cells. Their IDs depend on this machine's pcn, kernel
// and QEMU.
func NewRunner(o Options) (*Runner, error) {
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	pool, err := launch.NewPool(o.Engine, o.Waiting)
	if err != nil {
		return nil, err
	}
	cells, err := o.Sweep.Cells(o.Engine.Fingerprint)
	if err != nil {
		return nil, err
	}
	r := &Runner{o: o, pool: pool, store: store{filepath.Join(o.Out, cellsDir)}, cells: cells}
	return r, r.keepOnly()
}

// keepOnly removes all cells that are not in Options.Only.
func (r *Runner) keepOnly() error {
	if r.o.Only == nil {
		return nil
	}
	for _, id := range r.o.Only {
		if !slices.ContainsFunc(r.cells, func(c Cell) bool { return c.ID == id }) {
			return fmt.Errorf("the sweep has no cell %s (hint: the file, pcn or the kernel has "+
				"changed since the job was submitted: run pcn sweep again)", id)
		}
	}
	r.cells = slices.DeleteFunc(r.cells, func(c Cell) bool {
		return !slices.Contains(r.o.Only, c.ID)
	})
	return nil
}

// Cells returns the cells of the sweep, or those in Options.Only.
func (r *Runner) Cells() []Cell { return r.cells }

// Lock keeps other sweeps out of the folder until it is released.
func (r *Runner) Lock() (*flock.Lock, error) {
	if err := os.MkdirAll(r.store.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of results: %w", err)
	}
	lock, err := flock.Try(filepath.Join(r.o.Out, lockFile))
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("another pcn sweep is running in %s (hint: wait for it, or choose "+
			"another folder with --out)", r.o.Out)
	}
	return lock, err
}

// Clean removes half-written cells. No other sweep in the folder, and no task of one, may be
// running.
func (r *Runner) Clean() error { return r.store.clean() }

// Unfinished returns the cells that are not finished. It reports the finished ones to Progress.
func (r *Runner) Unfinished() ([]Cell, error) {
	finished, todo, err := r.sorted()
	if err != nil {
		return nil, err
	}
	for _, c := range finished {
		r.o.Progress(c.ID, 1)
	}
	return todo, nil
}

// Finished returns the IDs of the finished cells.
func (r *Runner) Finished() ([]string, error) {
	finished, _, err := r.sorted()
	var ids []string
	for _, c := range finished {
		ids = append(ids, c.ID)
	}
	return ids, err
}

// sorted returns the cells that are finished, and those that are not.
func (r *Runner) sorted() (finished, todo []Cell, err error) {
	for _, c := range r.cells {
		isFinished, err := r.store.finished(c.ID)
		switch {
		case err != nil:
			return nil, nil, err
		case isFinished:
			finished = append(finished, c)
		default:
			todo = append(todo, c)
		}
	}
	return finished, todo, nil
}

// maxFailures is the number of failed cells after which no further cell is started.
const maxFailures = 3

// Run runs the unfinished cells on this machine. It goes on after a failed cell, up to maxFailures.
func (r *Runner) Run(ctx context.Context) error {
	todo, err := r.Unfinished()
	if err != nil {
		return err
	}
	var mu sync.Mutex
	var failures []error
	var g errgroup.Group
	g.SetLimit(cmp.Or(r.o.Parallel, r.pool.Size()))
	for _, c := range todo {
		g.Go(func() error {
			mu.Lock()
			stop := ctx.Err() != nil || len(failures) >= maxFailures
			mu.Unlock()
			if stop {
				return nil
			}
			if err := r.run(ctx, c); err != nil {
				mu.Lock()
				defer mu.Unlock()
				failures = append(failures, fmt.Errorf("cell %s: %w", c.ID, err))
			}
			return nil
		})
	}
	_ = g.Wait() // no function returns an error: they are in failures
	if ctx.Err() != nil {
		return fmt.Errorf("sweep stopped: %w", ctx.Err())
	}
	return errors.Join(failures...)
}

func (r *Runner) run(ctx context.Context, c Cell) error {
	run, err := r.pool.Run(ctx, c.job, func(done float64) { r.o.Progress(c.ID, done) })
	if err != nil {
		return err
	}
	if err := r.store.put(c.ID, func(dir string) error { return r.save(dir, run) }); err != nil {
		return err
	}
	r.o.Progress(c.ID, 1)
	return nil
}

// save writes what the sweep keeps of a run.
func (r *Runner) save(dir string, run *result.Run) error {
	if r.o.Sweep.Keep == KeepAll {
		return launch.SaveIn(dir, run)
	}
	rest := &result.Run{Manifest: run.Manifest, Experiment: run.Experiment}
	if err := rest.Write(dir); err != nil {
		return err
	}
	return writeValues(dir, r.o.Sweep.Metrics, r.values(run))
}

// values measures a run.
func (r *Runner) values(run *result.Run) []Value {
	var values []Value
	for _, m := range r.o.Sweep.Metrics {
		q, err := run.MeasureOne(m.Measure, m.Over)
		values = append(values, Value{q, err})
	}
	return values
}
