// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sync/errgroup"

	"pcn/loader"
	lab "pcn/netns-lab"
	"pcn/netns-lab/experiment"
	"pcn/netns-lab/report"
	"pcn/netns-lab/result"
)

// Tool is the program's name and version, as manifests have it.
const Tool = "pcn 0.1"

// Files of a result folder, beside those of package result.
const (
	ReportFile  = "report.html"
	CaptureFile = "pfc.pcapng"
)

// Options say what to run, and where.
type Options struct {
	Experiment *experiment.Experiment
	Out        string // folder of the results; must not exist, or be empty
	Native     bool   // on this kernel, not in microVMs
	RealTime   bool   // microVMs by the clock (KVM) where that works: faster, not reproducible
	// Progress is told, from several goroutines, how far each scheme is: 0 to 1.
	Progress func(scheme string, done float64)
}

// Run runs all schemes of the experiment and leaves Out/SCHEME with the files of each, and Out/report.html. What
// has ended is kept if another scheme fails.
func Run(ctx context.Context, o Options) ([]*result.Run, error) {
	if err := prepare(o.Out); err != nil {
		return nil, err
	}
	if o.Progress == nil {
		o.Progress = func(string, float64) {}
	}
	runs := make([]*result.Run, len(o.Experiment.Schemes))
	engine := runInVMs
	if o.Native {
		engine = runNatively
	}
	if err := engine(ctx, o, runs); err != nil {
		return nil, err
	}
	return runs, WriteReport(filepath.Join(o.Out, ReportFile), o.Experiment, runs)
}

// prepare makes the folder, and refuses to mix results with what is there.
func prepare(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("look into the result folder: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("result folder %s is not empty: choose another with --out, or remove it", out)
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return fmt.Errorf("make the result folder: %w", err)
	}
	return nil
}

// runNatively runs the schemes one after the other: they share the kernel.
func runNatively(ctx context.Context, o Options, runs []*result.Run) error {
	for _, have := range []func() error{loader.HaveBTF, loader.HaveQdisc, loader.HaveTCPStructOps, loader.HaveTCX, loader.HavePermission} {
		if err := have(); err != nil {
			return err
		}
	}
	for i, scheme := range o.Experiment.Schemes {
		began := time.Now()
		run, err := lab.Run(ctx, o.Experiment, scheme, func(done, total int64) {
			o.Progress(scheme, float64(done)/float64(total))
		})
		if err != nil {
			return err
		}
		run.Manifest.Wall = wall(began, time.Since(began), 0)
		run.Manifest.Tool = Tool
		if err := save(run, filepath.Join(o.Out, scheme)); err != nil {
			return err
		}
		runs[i] = run
	}
	return nil
}

// runInVMs runs as many schemes at a time as there are CPUs.
func runInVMs(ctx context.Context, o Options, runs []*result.Run) error {
	engine, err := newEngine(o.RealTime)
	if err != nil {
		return err
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(len(engine.cpus))
	for i, scheme := range o.Experiment.Schemes {
		g.Go(func() error {
			run, err := engine.run(ctx, o.Experiment, scheme, func(done float64) { o.Progress(scheme, done) })
			if err != nil {
				return fmt.Errorf("scheme %s: %w", scheme, err)
			}
			runs[i] = run
			return save(run, filepath.Join(o.Out, scheme))
		})
	}
	return g.Wait()
}

func wall(began time.Time, total, boot time.Duration) result.Wall {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown"
	}
	return result.Wall{StartedAt: began.UTC(), TotalS: total.Seconds(), BootS: boot.Seconds(), Host: host}
}

// save writes a run's files and its capture.
func save(run *result.Run, dir string) error {
	if err := run.Write(dir); err != nil {
		return err
	}
	return WriteCapture(filepath.Join(dir, CaptureFile), run)
}

// WriteReport draws the runs of an experiment into one file.
func WriteReport(path string, e *experiment.Experiment, runs []*result.Run) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("write report: %w", err)
	}
	if err := errors.Join(report.Write(f, e, runs), f.Close()); err != nil {
		return fmt.Errorf("write report %s: %w", path, err)
	}
	return nil
}
