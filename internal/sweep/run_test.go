// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// fakeEngine makes up runs, one at a time, or fails.
type fakeEngine struct {
	runs int
	fail func(run int) error // nil: none fails
}

func (e *fakeEngine) Run(
	_ context.Context, j job.Job, _ int, progress func(float64),
) (*result.Run, error) {
	e.runs++
	if e.fail != nil {
		if err := e.fail(e.runs); err != nil {
			return nil, err
		}
	}
	progress(0.5)
	return resulttest.Fig2(j.Experiment, j.Scheme), nil
}

func (*fakeEngine) Exclusive() bool { return true }

func (*fakeEngine) Fingerprint(j job.Job) (string, error) { return fingerprint(j) }

// newRunner returns a runner of the sweep small, which has 24 cells, and what it reported of each.
func newRunner(t *testing.T, e *fakeEngine, out string) (*Runner, map[string]float64) {
	t.Helper()
	done := map[string]float64{}
	r, err := NewRunner(Options{Sweep: mustParse(t, small, net), Engine: e, Out: out,
		Progress: func(cell string, share float64) { done[cell] = share }})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(r.Cells(), 24))
	return r, done
}

// A sweep runs each cell once. Run again, it runs those that are not finished.
func TestRun(t *testing.T) {
	e, out := new(fakeEngine), t.TempDir()
	r, done := newRunner(t, e, out)
	qt.Assert(t, qt.IsNil(r.Run(t.Context())))
	qt.Check(t, qt.Equals(e.runs, 24))
	finished, err := r.Finished()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(finished, 24))
	for _, c := range r.Cells() {
		qt.Check(t, qt.Equals(done[c.ID], 1))
	}
	for _, c := range r.Cells()[5:7] {
		qt.Assert(t, qt.IsNil(os.RemoveAll(CellDir(out, c.ID))))
	}
	r, done = newRunner(t, e, out)
	qt.Assert(t, qt.IsNil(r.Run(t.Context())))
	qt.Check(t, qt.Equals(e.runs, 26))
	qt.Check(t, qt.HasLen(done, 24))
}

// After three failures no cell is started, and the error names those that failed.
func TestRunFails(t *testing.T) {
	e := &fakeEngine{fail: func(run int) error {
		if run%2 == 0 {
			return fmt.Errorf("run %d is broken", run)
		}
		return nil
	}}
	r, _ := newRunner(t, e, t.TempDir())
	err := r.Run(t.Context())
	qt.Check(t, qt.Equals(e.runs, 6))
	want := ""
	for _, run := range []int{2, 4, 6} {
		want += fmt.Sprintf("cell %s: run %d is broken\n", r.Cells()[run-1].ID, run)
	}
	qt.Check(t, qt.ErrorMatches(err, strings.TrimSpace(want)))
}

func TestRunStopped(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	e := &fakeEngine{fail: func(run int) error {
		if run == 4 {
			stop()
		}
		return nil
	}}
	r, _ := newRunner(t, e, t.TempDir())
	err := r.Run(ctx)
	qt.Check(t, qt.ErrorIs(err, context.Canceled))
	qt.Check(t, qt.ErrorMatches(err, "sweep stopped: .*"))
	qt.Check(t, qt.Equals(e.runs, 4))
}

// fakeSlurm puts commands of Slurm first in the path: squeue says that no job is there, sbatch
// keeps its words and script in the folder, and then does what more says.
func fakeSlurm(t *testing.T, more string) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, script := range map[string]string{
		"squeue": "",
		"sbatch": "echo \"$@\" > '" + dir + "/words'; cat > '" + dir + "/script'\n" + more,
	} {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name),
			[]byte("#!/bin/sh\n"+script+"\n"), 0o755)))
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	return dir
}

// The job of a sweep on Slurm has a list of the cells that are not finished, and a task for each
// pack of them.
func TestRunOnSlurm(t *testing.T) {
	dir, out := fakeSlurm(t, "echo '77;cluster'"), t.TempDir()
	r, _ := newRunner(t, new(fakeEngine), out)
	put := func(cells []Cell) {
		for _, c := range cells {
			qt.Assert(t, qt.IsNil(r.run(t.Context(), c)))
		}
	}
	put(r.Cells()[:3])
	var submitted []string
	s := Slurm{File: "s.yaml", Pack: 4, Args: []string{"--partition", "x"},
		Submitted: func(job string, tasks int) {
			submitted = append(submitted, fmt.Sprint(job, " ", tasks))
		}}
	err := r.RunOnSlurm(t.Context(), s)
	qt.Check(t, qt.ErrorMatches(err, "job 77 has ended, but 21 of 24 cells are not finished: .*"))
	qt.Check(t, qt.DeepEquals(submitted, []string{"77 6"}))

	words, err := os.ReadFile(filepath.Join(dir, "words"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(string(words), "(?s).* --array 0-5 .* --partition x\n"))
	lists, err := filepath.Glob(filepath.Join(out, slurmDir, "*.cells"))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(lists, 1))
	var listed []string
	for task := range 6 {
		ids, err := TaskCells(lists[0], task, 4)
		qt.Assert(t, qt.IsNil(err))
		listed = append(listed, ids...)
	}
	qt.Assert(t, qt.HasLen(listed, 21))
	for i, c := range r.Cells()[3:] {
		qt.Check(t, qt.Equals(listed[i], c.ID))
	}

	put(r.Cells()[3:]) // nothing is left to submit
	qt.Check(t, qt.IsNil(r.RunOnSlurm(t.Context(), s)))
	qt.Check(t, qt.HasLen(submitted, 1))
}

func TestRunOnSlurmFails(t *testing.T) {
	fakeSlurm(t, "echo 'no such partition' >&2; exit 1")
	r, _ := newRunner(t, new(fakeEngine), t.TempDir())
	err := r.RunOnSlurm(t.Context(), Slurm{File: "s.yaml"})
	qt.Check(t, qt.ErrorMatches(err, "sbatch: exit status 1: no such partition"))
	t.Setenv("PATH", t.TempDir())
	err = r.RunOnSlurm(t.Context(), Slurm{File: "s.yaml"})
	qt.Check(t, qt.ErrorMatches(err, "squeue is not installed: run pcn sweep on .*"))
}
