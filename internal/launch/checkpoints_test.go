// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// ends is a simulator that ends a run, as if by kill, at a bin of its series. It runs no two at a
// time.
type ends struct {
	*Simulator
	run    int32 // number of the run that ends; 0: none
	begun  atomic.Int32
	cancel context.CancelFunc
}

// Exclusive has one run go at a time.
func (s *ends) Exclusive() bool { return true }

func (s *ends) Run(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	if s.begun.Add(1) == s.run {
		bins := 0
		s.Watch(func(_ uint64, _ string, m *result.Moment) {
			if bins++; bins == 12 {
				s.cancel()
			}
		})
	}
	return s.Simulator.Run(ctx, j, cpu, progress)
}

// files returns the files of results, without what says how long runs took.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d os.DirEntry, err error) error {
		name, _ := filepath.Rel(dir, path)
		if err != nil || d.IsDir() || filepath.Base(name) == "manifest.json" ||
			name == "expectations.json" {
			all[name] = ""
			return err
		}
		data, err := os.ReadFile(path)
		all[name] = string(data)
		return err
	})
	qt.Assert(t, qt.IsNil(err))
	return all
}

// Runs that are interrupted in their second one go on in the same folder: the first is not run
// again, the second goes on within, and all files are as if nothing had happened.
func TestGoesOn(t *testing.T) {
	file := strings.Replace(simulated, "duration: 1ms", "duration: 4ms\nsample: 200us", 1)
	e := parse(t, file)
	dir := t.TempDir()
	whole, out := filepath.Join(dir, "whole"), filepath.Join(dir, "out")
	_, err := Run(t.Context(), Options{Experiment: e, Engine: NewSimulator(), Out: whole})
	qt.Assert(t, qt.IsNil(err))

	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	o := Options{
		Experiment: e, Out: out, Checkpoints: true,
		Engine: &ends{Simulator: NewSimulator(), run: 2, cancel: cancel},
	}
	_, err = Run(ctx, o)
	qt.Assert(t, qt.IsTrue(errors.Is(err, context.Canceled)), qt.Commentf("%v", err))
	saved := filepath.Join(out, checkpointsDir)
	qt.Check(t, qt.IsTrue(exists(filepath.Join(saved, "dcqcn.done"))))
	qt.Check(t, qt.IsFalse(exists(filepath.Join(saved, "dcqcn"))))
	qt.Check(t, qt.IsTrue(exists(filepath.Join(saved, "pcn"))))

	without := o
	without.Checkpoints = false
	_, err = Run(t.Context(), without)
	qt.Check(t, qt.ErrorMatches(err, ".* is of an interrupted run: go on with --checkpoint, .*"))
	other := o
	other.Engine = NewSimulator()
	other.Experiment, err = e.With(experiment.Changes{Seed: new(uint64(7))})
	qt.Assert(t, qt.IsNil(err))
	_, err = Run(t.Context(), other)
	qt.Check(t, qt.ErrorMatches(err, ".*of another (experiment|build of pcn).*"))

	again := &ends{Simulator: NewSimulator()}
	var resumed []string
	again.Resumed = func(run string, at experiment.Duration) {
		qt.Check(t, qt.IsTrue(at >= 2*experiment.Millisecond && at < 4*experiment.Millisecond))
		resumed = append(resumed, run)
	}
	o.Engine = again
	_, err = Run(t.Context(), o)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(again.begun.Load(), 1))
	qt.Check(t, qt.DeepEquals(resumed, []string{"pcn"}))
	qt.Check(t, qt.DeepEquals(files(t, out), files(t, whole)))
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
