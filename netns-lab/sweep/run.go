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

	"github.com/pcn-linux/pcn/netns-lab/flock"
	"github.com/pcn-linux/pcn/netns-lab/launch"
)

// Options say where a sweep is run, and who is told of it.
type Options struct {
	Sweep  *Sweep
	Engine launch.Engine
	Out    string // folder of the results; what is there of the sweep is kept
	// Only are the IDs of the cells to run; nil is all.
	Only []string
	// Parallel is how many cells to run at a time; 0 is as many as there are CPUs.
	Parallel int
	// Progress is told, from several goroutines, how far each cell is: 0 to 1.
	Progress func(cell string, done float64)
	// Waiting is told, once, that microVMs of other processes have all CPUs. It may be nil.
	Waiting func()
}

// Files and folders of a sweep's results.
const (
	cellsDir    = "cells"
	lockFile    = ".lock"
	CellsFile   = "sweep.csv"
	SummaryFile = "summary.csv"
	ReportFile  = launch.ReportFile
)

// Runner runs the cells of a sweep.
type Runner struct {
	o     Options
	pool  *launch.Pool
	store store
	cells []Cell
}

// NewRunner finds out what the cells of the sweep are on this machine.
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

// keepOnly leaves out all cells but those asked for.
func (r *Runner) keepOnly() error {
	if r.o.Only == nil {
		return nil
	}
	for _, id := range r.o.Only {
		if !slices.ContainsFunc(r.cells, func(c Cell) bool { return c.ID == id }) {
			return fmt.Errorf("the sweep has no cell %s (hint: the file, this program or the kernel has changed since the job was submitted: run pcn sweep again)", id)
		}
	}
	r.cells = slices.DeleteFunc(r.cells, func(c Cell) bool { return !slices.Contains(r.o.Only, c.ID) })
	return nil
}

// Cells are those of the sweep, or the ones that were asked for.
func (r *Runner) Cells() []Cell { return r.cells }

// Lock keeps other sweeps out of the folder until it is released.
func (r *Runner) Lock() (*flock.Lock, error) {
	if err := os.MkdirAll(r.store.dir, 0o755); err != nil {
		return nil, fmt.Errorf("create the folder of results: %w", err)
	}
	lock, err := flock.Try(filepath.Join(r.o.Out, lockFile))
	if errors.Is(err, flock.ErrHeld) {
		return nil, fmt.Errorf("another pcn sweep is at work in %s (hint: wait for it, or choose another folder with --out)", r.o.Out)
	}
	return lock, err
}

// Clean removes what was left half-written. No other sweep, nor a task of one, may be at work.
func (r *Runner) Clean() error { return r.store.clean() }

// Unfinished are the cells that are not there yet. The others count as done.
func (r *Runner) Unfinished() ([]Cell, error) {
	var todo []Cell
	for _, c := range r.cells {
		finished, err := r.store.finished(c.ID)
		if err != nil {
			return nil, err
		}
		if finished {
			r.o.Progress(c.ID, 1)
			continue
		}
		todo = append(todo, c)
	}
	return todo, nil
}

// maxFailures is after how many cells that fail no other is begun.
const maxFailures = 3

// Run runs the unfinished cells here, as many at a time as there are CPUs. One that fails does not keep the others from being
// run, unless several do.
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
	_ = g.Wait() // failures are in the list
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
	if err := r.store.put(c.ID, func(dir string) error { return launch.SaveIn(dir, run) }); err != nil {
		return err
	}
	r.o.Progress(c.ID, 1)
	return nil
}
