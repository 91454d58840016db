// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/workload"
)

// workloadArgs are those of a small workload, and more or others.
func workloadArgs(more ...string) []string {
	return append([]string{"workload", "--cdf", "fb-hadoop", "--from", "H0..H3", "--to", "H0,R1",
		"--rate", "10Gbps", "--duration", "2ms"}, more...)
}

// TestWorkload: what is written is a trace that an experiment runs.
func TestWorkload(t *testing.T) {
	out, code, err := pcn(t, workloadArgs("--incast", "2..3", "--load", "0.5", "--classes",
		"1KB,1MB", "--seed", "3")...)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(code, 0))
	flows, _, err := workload.ParseTrace(out)
	qt.Assert(t, qt.IsNil(err))
	sizes, err := workload.NamedCDF("fb-hadoop")
	qt.Assert(t, qt.IsNil(err))
	want, err := workload.Spec{
		Sizes: sizes, Senders: []string{"H0", "H1", "H2", "H3"}, Receivers: []string{"H0", "R1"},
		Load: 0.5, RateBps: 10e9,
		MinIncast: 2, MaxIncast: 3, ToNs: 2e6, ClassBytes: []uint64{1e3, 1e6}, Seed: 3,
	}.Generate()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(flows, want))

	dir := t.TempDir()
	file := filepath.Join(dir, "e.yaml")
	text := "name: e\ntopology: {kind: fig1}\nschemes: [pcn]\nduration: 2ms\ntrace: {file: trace.csv}\n"
	out, _, err = pcn(t, workloadArgs()...)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "trace.csv"), []byte(out), 0o644)))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
	e, err := experiment.Load(file)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(len(e.Flows), strings.Count(out, "\n")-1))
	qt.Check(t, qt.IsTrue(len(e.Flows) > 0))
}

func TestWorkloadOfAFile(t *testing.T) {
	file := filepath.Join(t.TempDir(), "mine.txt")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("999 0\n1000 1\n"), 0o644)))
	out, _, err := pcn(t, workloadArgs("--cdf", file)...)
	qt.Assert(t, qt.IsNil(err))
	flows, _, err := workload.ParseTrace(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(flows) > 100))
	for _, f := range flows {
		qt.Check(t, qt.IsTrue(f.SizeBytes == 999 || f.SizeBytes == 1000))
	}
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("999 0\n1000 2\n"), 0o644)))
	_, _, err = pcn(t, workloadArgs("--cdf", file)...)
	qt.Check(t, qt.ErrorMatches(err, `.*/mine.txt:2: the last share is 2: want 1 or 100`))
}

func TestWorkloadUsage(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--cdf", "hadoop"}, `unknown distribution of flow sizes "hadoop" .*`},
		{[]string{"--cdf", "./none.txt"},
			`read the distribution of flow sizes: open ./none.txt: .*`},
		{[]string{"--from", "H3..H0"}, `--from: "H3..H0" is not a range of nodes .*`},
		{[]string{"--to", "-"}, `--to: "-" is not a node name .*`},
		{[]string{"--rate", "10"}, `--rate: "10": unit is missing .*`},
		{[]string{"--duration", "1"}, `--duration: "1": unit is missing .*`},
		{[]string{"--incast", "a..2"}, `--incast: "a..2" is not a number of hosts .*`},
		{[]string{"--incast", "5"},
			`generate flows: 3 hosts can send to H0: want 5 for the incast`},
		{[]string{"--classes", "1"}, `--classes: "1": unit is missing .*`},
		{[]string{"--load", "0"}, `generate flows: invalid load 0: want above 0 and at most 100`},
	} {
		_, _, err := pcn(t, workloadArgs(c.args...)...)
		qt.Check(t, qt.ErrorAs(err, new(usageError)), qt.Commentf("%s", c.args))
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
	_, _, err := pcn(t, "workload")
	qt.Check(t, qt.ErrorAs(err, new(usageError)))
}
