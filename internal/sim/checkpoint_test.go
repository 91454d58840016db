// SPDX-License-Identifier: Apache-2.0

//go:build !js

package sim

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// resumed runs an experiment with checkpoints at the ends of some bins. It returns what that run
// gives, and what runs give that go on from each of the checkpoints.
func resumed(
	t *testing.T, e *experiment.Experiment, scheme string, threads int, at func(bin int) bool,
) (through *result.Run, again []*result.Run) {
	t.Helper()
	c := &Checkpoints{
		Path: filepath.Join(t.TempDir(), "checkpoint"), Every: time.Hour, Program: "p", Run: "r",
		Failed: func(err error) { t.Error(err) },
	}
	var kept []string
	keep := func() { // a run that goes on writes its own over it
		if _, err := os.Stat(c.Path); err == nil {
			kept = append(kept, fmt.Sprintf("%s-%d", c.Path, len(kept)))
			if err := os.Rename(c.Path, kept[len(kept)-1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	bin := 0
	o := Options{Threads: threads, Checkpoints: c, Moment: func(result.Moment) {
		keep()
		if at(bin) {
			c.last = time.Time{}
		}
		bin++
	}}
	through = runWith(t, e, scheme, o)
	keep()
	for _, path := range kept {
		ran := 0
		c := &Checkpoints{Path: path, Every: time.Hour, Program: "p", Run: "r",
			Resumed: func(int64) { ran++ }}
		again = append(again, runWith(t, e, scheme, Options{Threads: threads, Checkpoints: c}))
		if ran != 1 {
			t.Errorf("%s: the run did not go on from its checkpoint", path)
		}
	}
	return through, again
}

func runWith(t *testing.T, e *experiment.Experiment, scheme string, o Options) *result.Run {
	t.Helper()
	run, err := simulator.RunWith(t.Context(), e, scheme, func(float64) {}, o)
	if err != nil {
		t.Fatal(err)
	}
	return run
}

// All experiments that are shipped come to the same results if they are interrupted half-way, with
// one thread and with two.
func TestShippedResumed(t *testing.T) {
	for _, name := range experiments.Names() {
		e, err := experiments.Load(name)
		if err != nil {
			t.Fatal(err)
		}
		const short = 300 * experiment.Microsecond
		e.Duration = min(e.Duration, max(e.Sample, short/e.Sample*e.Sample))
		half := int((e.Warmup + e.Duration) / e.Sample / 2)
		for _, scheme := range e.Schemes {
			if s, err := e.Scheme(scheme); err != nil || s.Object == nil {
				continue // it is Linux's own
			}
			t.Run(fmt.Sprintf("%s, %s", name, scheme), func(t *testing.T) {
				want := runInParts(t, e, scheme, 1)
				for _, threads := range []int{1, 2} {
					through, again := resumed(t, e, scheme, threads,
						func(bin int) bool { return bin == half-1 || half == 0 })
					sameRuns(t, through, want)
					if len(again) != 1 {
						t.Fatalf("%d checkpoints, want 1", len(again))
					}
					sameRuns(t, again[0], want)
				}
			})
		}
	}
}

// A run can go on from all of its bins, with any number of threads.
func TestResumedAnywhere(t *testing.T) {
	for k, scheme := range []string{"pfc", "hpcc", "pcn"} {
		e := parse(t, strings.Replace(inStep, "SCHEME", scheme, 1))
		want := runInParts(t, e, scheme, 1)
		for i, threads := range []int{1, 2, 4} {
			_, again := resumed(t, e, scheme, threads,
				func(bin int) bool { return bin%3 == (i+k)%3 })
			if len(again) < 4 {
				t.Errorf("%d checkpoints", len(again))
			}
			for _, run := range again {
				sameRuns(t, run, want)
			}
		}
	}
}

// A checkpoint of something else, or one that is not whole, is refused, and the run does not begin.
func TestRefusesCheckpoints(t *testing.T) {
	e := parse(t, strings.Replace(inStep, "SCHEME", "pcn", 1))
	path := filepath.Join(t.TempDir(), "checkpoint")
	write := Checkpoints{Path: path, Program: "build 1", Run: "run 1"}
	runWith(t, e, "pcn", Options{Threads: 2, Checkpoints: &write})
	whole, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	flipped := bytes.Clone(whole)
	flipped[len(flipped)/2] ^= 1
	for _, c := range []struct {
		what         string
		data         []byte
		program, run string
		threads      int
		want         string
	}{
		{"another build", whole, "build 2", "run 1", 2, "another build of pcn wrote it"},
		{"another run", whole, "build 1", "run 2", 2, "it is of another experiment"},
		{"another division", whole, "build 1", "run 1", 3, "had 2 threads and now has 3"},
		{"one part", whole, "build 1", "run 1", 1, "had 2 threads and now has 1"},
		{"cut short", whole[:len(whole)-1], "build 1", "run 1", 2, "cut short or damaged"},
		{"half of it", whole[:len(whole)/2], "build 1", "run 1", 2, "cut short or damaged"},
		{"nothing", nil, "build 1", "run 1", 2, "cut short or damaged"},
		{"damaged", flipped, "build 1", "run 1", 2, "cut short or damaged"},
		{"text", bytes.Repeat([]byte("text\n"), 100), "build 1", "run 1", 2, "damaged"},
	} {
		t.Run(c.what, func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "checkpoint")
			if err := os.WriteFile(path, c.data, 0o644); err != nil {
				t.Fatal(err)
			}
			_, err := simulator.RunWith(t.Context(), e, "pcn",
				func(float64) { t.Error("the run begins") }, Options{Threads: c.threads,
					Checkpoints: &Checkpoints{Path: path, Program: c.program, Run: c.run}})
			if err == nil || !strings.Contains(err.Error(), c.want) ||
				!strings.Contains(err.Error(), path) {
				t.Errorf("%v, want the path and %q", err, c.want)
			}
		})
	}
}

// A run whose checkpoints can't be written says so and goes on; one that ends leaves no half file.
func TestCheckpointCantBeWritten(t *testing.T) {
	e := parse(t, strings.Replace(inStep, "SCHEME", "pcn", 1))
	failed := 0
	c := &Checkpoints{Path: filepath.Join(t.TempDir(), "missing", "checkpoint"),
		Failed: func(error) { failed++ }}
	got := runWith(t, e, "pcn", Options{Threads: 2, Checkpoints: c})
	if failed == 0 {
		t.Error("nothing was said")
	}
	sameRuns(t, got, runInParts(t, e, "pcn", 1))
	dir := t.TempDir()
	runWith(t, e, "pcn", Options{Checkpoints: &Checkpoints{Path: filepath.Join(dir, "c")}})
	if entries, err := os.ReadDir(dir); err != nil || len(entries) != 1 {
		t.Errorf("%v, %v are left", entries, err)
	}
}

// Runs with all that keeps a network in one part go on too: random numbers, failed links, waits,
// watchdogs, credits.
func TestWholeResumed(t *testing.T) {
	more := append(slices.Clone(wholes), []struct{ key, old, changed string }{
		{"switch.classes", "buffer: 2MB,", "buffer: 2MB, schedule: wrr, classes: " +
			"[{priority: 0, lossy: true, alpha: 1/4, weight: 2}],"},
		{"switch.pfc.repeat_pairs", "xon: 28KB", "xon: 28KB, repeat_pairs: true"},
		{"watchdog acts", "xon: 28KB}",
			"xon: 28KB, watchdog: {poll: 20us, detection: 40us, restoration: 40us, action: drop}}"},
		{"storm ends", "bursts:", "storms: [{hosts: H23, at: 10us, until: 200us}]\nbursts:"},
		{"link comes back", "bursts:", "links: [{at: 10us, link: L0-S0, state: down}, " +
			"{at: 210us, link: L0-S0, state: up}]\nbursts:"},
		{"gro", "seed: 1", "seed: 1\nnoise: {scheduling: 1us, gro: true}"},
	}...)
	for _, c := range more {
		t.Run(c.key, func(t *testing.T) {
			text := strings.Replace(inStep, c.old, c.changed, 1)
			if text == inStep {
				t.Fatalf("the file has no %q", c.old)
			}
			e := parse(t, strings.Replace(text, "SCHEME", "dcqcn", 1))
			want := runInParts(t, e, e.Schemes[0], 1)
			_, again := resumed(t, e, e.Schemes[0], 1,
				func(bin int) bool { return bin%5 == 2 })
			if len(again) < 2 {
				t.Errorf("%d checkpoints", len(again))
			}
			for _, run := range again {
				sameRuns(t, run, want)
			}
		})
	}
}
