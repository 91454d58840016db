// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

func TestSweepArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"sweep"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--on", "pbs"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--engine", "slurm"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--pack", "-1"}, exitUsage},
		{[]string{"sweep", "no-such-sweep"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--cells", filepath.Join(t.TempDir(), "none"), "--pack",
			"1"}, exitError},
	} {
		qt.Check(t, qt.Equals(run(context.Background(), c.args), c.want), qt.Commentf("%q", c.args))
	}
}

// idleEngine stands for microVMs: it tells jobs apart by their seed, and runs none.
type idleEngine struct{}

func (idleEngine) Exclusive() bool { return false }

func (idleEngine) Fingerprint(j job.Job) (string, error) {
	return fmt.Sprintf("%016x", j.Experiment.Seed), nil
}

func (idleEngine) Run(context.Context, job.Job, int, func(float64)) (*result.Run, error) {
	return nil, errors.New("a dry run runs nothing")
}

// A dry run lists every run and leaves nothing.
func TestSweepDryRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	c := newSweep(func(engineFlags, experiment.Engine) (launch.Engine, error) {
		return idleEngine{}, nil
	})
	var text bytes.Buffer
	c.SetOut(&text)
	c.SetArgs([]string{"hol-burst", "--dry-run", "--out", out})
	qt.Assert(t, qt.IsNil(c.Execute()))
	qt.Check(t, qt.StringContains(text.String(), "12 runs, 12 to do"))
	left, err := filepath.Glob(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(left, 0))
}
