// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

const bisectExperiment = `name: one-flow
title: One flow
engine: kernel
topology: {kind: star, hosts: 2, rate: 40Gbps}
schemes: [pcn]
warmup: 0us
duration: 100us
sample: 10us
flows: [{name: F, from: H0, to: H1}]
expect: [{what: rate, metric: mean_rate, flows: [F], from: 50us, to: 100us, min: 30Gbps}]
`

// valueTree is a git tree with a commit for each value of its file "value", oldest first.
func valueTree(t *testing.T, values ...string) string {
	t.Helper()
	tree := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		args = append([]string{"-C", tree, "-c", "user.name=a", "-c", "user.email=a@b.c"}, args...)
		out, err := exec.Command("git", args...).CombinedOutput()
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	}
	git("init", "-q")
	for i, v := range values {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(tree, "value"), []byte(v), 0o644)))
		git("add", ".")
		git("commit", "-q", "--allow-empty", "-m", fmt.Sprintf("commit %d", i))
	}
	return tree
}

// rateEngine simulates a network whose links have a rate.
type rateEngine struct {
	launch.Engine
	rate string
}

func (e rateEngine) Run(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	var set yaml.Node
	if err := yaml.Unmarshal([]byte("topology.rate: "+e.rate), &set); err != nil {
		return nil, err
	}
	x, err := j.Experiment.With(experiment.Changes{Set: []*yaml.Node{set.Content[0]}})
	if err != nil {
		return nil, err
	}
	asked := j.Experiment
	j.Experiment = x
	run, err := e.Engine.Run(ctx, j, cpu, progress)
	if err == nil { // the kernel differed, not the experiment
		run.Experiment, run.Manifest.ExperimentSHA256 = asked.Source(), asked.Hash()
	}
	return run, err
}

// bisectValues bisects a tree in which each commit's links have the rate of its value.
func bisectValues(t *testing.T, values ...string) (printed string, builds int, err error) {
	t.Helper()
	return bisectBy(t, false, bisectExperiment, values...)
}

// bisectBy bisects such a tree, by the bounds of an experiment or by bytes.
func bisectBy(
	t *testing.T, byBytes bool, text string, values ...string,
) (printed string, builds int, err error) {
	t.Helper()
	tree, dir := valueTree(t, values...), t.TempDir()
	file := filepath.Join(dir, "one-flow.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
	t.Setenv("XDG_CACHE_HOME", filepath.Join(dir, "cache"))
	var says bytes.Buffer
	var rate string
	b := bisection{
		tree: tree, good: fmt.Sprintf("HEAD~%d", len(values)-1), bad: "HEAD", expect: file,
		out: filepath.Join(dir, "out"), mostSeeds: 12, w: &says, progress: &says,
		bytes: byBytes,
		build: func(_ context.Context, source, _ string) error {
			builds++
			value, err := os.ReadFile(filepath.Join(source, "value"))
			if rate = string(value); rate == "broken" {
				return errors.New("it does not compile")
			}
			return err
		},
		newEngine: func(string) (launch.Engine, error) {
			return rateEngine{launch.NewSimulator(), rate}, nil
		},
	}
	err = b.run(t.Context())
	return says.String(), builds, err
}

// The first commit that does not meet the bound is found, though others change results, too.
func TestBisect(t *testing.T) {
	printed, builds, err := bisectValues(t,
		"40Gbps", "40Gbps", "39Gbps", "39Gbps", "broken", "38Gbps", "20Gbps", "20Gbps", "10Gbps")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(builds <= 7), qt.Commentf("%d", builds))
	_, last, _ := strings.Cut(printed, "first bad commit: ")
	qt.Check(t, qt.Matches(last, `[0-9a-f]+ commit 6\n`), qt.Commentf("%s", printed))
	qt.Check(t, qt.Matches(printed, `(?s).* can't tell: it does not compile\n.*`))
	qt.Check(t, qt.Matches(printed,
		`(?s).* good: rate 3[0-9.]+Gbps.*\(at least 30Gbps\), 6 seeds.*`))
}

// A commit with the bytes of an end is not run with more seeds. Where those before the bad one
// can't be told, all are named.
func TestBisectCantTell(t *testing.T) {
	printed, _, err := bisectValues(t, "40Gbps", "40Gbps", "broken", "broken", "20Gbps")
	qt.Check(t, qt.ErrorMatches(err, `the others can't be told: .*`))
	qt.Check(t, qt.Matches(printed, `(?s).* good: the same bytes as the good end\n.*`))
	qt.Check(t, qt.Matches(printed,
		`(?s).*one of these:\n\S+ commit 2\n\S+ commit 3\n\S+ commit 4\n`))
}

// By bytes the first commit is found that changes anything, though no bound is left, and none is
// needed.
func TestBisectBytes(t *testing.T) {
	text, _, _ := strings.Cut(bisectExperiment, "expect:")
	printed, builds, err := bisectBy(t, true, text,
		"40Gbps", "40Gbps", "40Gbps", "39Gbps", "39Gbps", "38Gbps", "20Gbps")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(builds <= 5), qt.Commentf("%d", builds))
	_, last, _ := strings.Cut(printed, "first bad commit: ")
	qt.Check(t, qt.Matches(last, `[0-9a-f]+ commit 3\n`), qt.Commentf("%s", printed))
	qt.Check(t, qt.StringContains(printed, "bad: other bytes than the good end's\n"))

	_, _, err = bisectBy(t, true, text, "40Gbps", "40Gbps")
	qt.Check(t, qt.ErrorMatches(err, `\S+ is good, not bad: .*`))
}

func TestBisectWrongEnds(t *testing.T) {
	_, _, err := bisectValues(t, "40Gbps", "39Gbps")
	qt.Check(t, qt.ErrorMatches(err, `\S+ is good, not bad: choose other commits, or bounds .*`))
	_, _, err = bisectValues(t, "20Gbps", "10Gbps")
	qt.Check(t, qt.ErrorMatches(err, `\S+ is bad, not good: .*`))
}

func TestBisectErrors(t *testing.T) {
	tree, dir := valueTree(t, "1", "2"), t.TempDir()
	file := filepath.Join(dir, "one-flow.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(bisectExperiment), 0o644)))
	none := filepath.Join(dir, "none.yaml")
	text, _, _ := strings.Cut(bisectExperiment, "expect:")
	qt.Assert(t, qt.IsNil(os.WriteFile(none, []byte(text), 0o644)))
	for _, test := range []struct {
		tree, good, bad, expect, out string
		seeds                        int
		fails                        string
	}{
		{tree: tree, good: "HEAD~1", bad: "HEAD", expect: none, fails: `.* expects nothing: .*`},
		{tree: tree, good: "HEAD~7", bad: "HEAD", expect: file, fails: `git rev-parse in .*`},
		{tree: tree, good: "HEAD", bad: "HEAD~1", expect: file, fails: `no commit of .* leads .*`},
		{tree: dir, good: "a", bad: "b", expect: file, fails: `git rev-parse in .*`},
		{tree: tree, good: "HEAD~1", bad: "HEAD", expect: file, seeds: 5, fails: `--seeds 5: .*`},
		{tree: tree, good: "HEAD~1", bad: "HEAD", expect: file, out: dir,
			fails: `.* is not empty: .*`},
	} {
		b := bisection{tree: test.tree, good: test.good, bad: test.bad, expect: test.expect,
			out: test.out, mostSeeds: cmp.Or(test.seeds, 12)}
		qt.Check(t, qt.ErrorMatches(b.run(t.Context()), test.fails))
	}
}
