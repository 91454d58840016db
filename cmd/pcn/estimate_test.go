// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func TestFormatAbout(t *testing.T) {
	for d, want := range map[time.Duration]string{0: "1s", 41400 * time.Millisecond: "41s",
		190 * time.Second: "3m", 3601 * time.Second: "1h00m", 134 * time.Minute: "2h10m"} {
		qt.Check(t, qt.Equals(formatAbout(d), want))
	}
}

// list says what every experiment costs.
func TestListSaysTimes(t *testing.T) {
	all := printed[[]listed](t, 0, "list", "--json")
	qt.Assert(t, qt.HasLen(all, len(experiments.Names())))
	// which only the simulator runs
	simulated := []string{"adversarial", "hpcc", "powertcp"}
	for _, e := range all {
		if slices.Contains(simulated, e.Name) {
			qt.Check(t, qt.IsNil(e.KernelS))
			continue
		}
		qt.Check(t, qt.IsTrue(*e.KernelS > 0.6), qt.Commentf("%s: %v", e.Name, e))
		qt.Check(t, qt.IsTrue(e.SimS < *e.KernelS))
	}
	out, _, err := pcn(t, "list")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(out, "hol                1      31s    3s"))
}

func TestSchemesAsJSON(t *testing.T) {
	all := printed[[]schemeJSON](t, 0, "scheme", "list", "--json")
	one := printed[schemeJSON](t, 0, "scheme", "show", "pcn", "--json")
	qt.Check(t, qt.IsTrue(len(all) > 5))
	qt.Check(t, qt.SliceContains(namesOf(all), "pcn"))
	qt.Assert(t, qt.IsTrue(len(one.Params) > 5))
	for _, p := range one.Params {
		qt.Check(t, qt.IsTrue(strings.HasPrefix(p.Key, "pcn.")))
		qt.Check(t, qt.Not(qt.Equals(p.Doc, "")))
	}
}

func namesOf(all []schemeJSON) (names []string) {
	for _, s := range all {
		names = append(names, s.Name)
	}
	return names
}

func TestReproduceAsJSON(t *testing.T) {
	figures := printed[[]figureJSON](t, 0, "reproduce", "--list", "--json")
	qt.Check(t, qt.IsTrue(len(figures) > 20))
	claims := printed[[]claimJSON](t, exitExpect, "reproduce", "pcn-fig5", "--quick", "--json",
		"--out", filepath.Join(t.TempDir(), "out"))
	verdicts := map[string]int{}
	for _, c := range claims {
		verdicts[c.Verdict]++
		qt.Assert(t, qt.HasLen(c.Results, 1))
		qt.Check(t, qt.Equals(c.Results[0].Engine, "sim"))
		qt.Check(t, qt.Equals(c.Missed != "", c.Verdict == "not met"))
	}
	qt.Check(t, qt.IsTrue(verdicts["met"] > 0 && verdicts["not met"] > 0))
}

func TestSweepAsJSON(t *testing.T) {
	dir := t.TempDir()
	experiment := filepath.Join(dir, "small.yaml")
	file := filepath.Join(dir, "sweep.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(experiment, []byte(small), 0o600)))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(`
name: few
title: Few runs
experiment: small.yaml
schemes: [pfc, pcn]
seeds: 1..2
metrics:
  - {name: lost, metric: lost_packets, bounds: {pcn: {min: 1}}}
  - {name: f0, metric: mean_rate, flows: [F0]}
`), 0o600)))
	s := printed[sweptJSON](t, exitExpect, "sweep", file, "--engine", "sim", "--json", "--out",
		filepath.Join(dir, "out"))
	qt.Check(t, qt.Equals(s.Sweep, "few"))
	qt.Check(t, qt.Equals(s.Runs, 4))
	qt.Check(t, qt.IsFalse(s.Pass))
	qt.Assert(t, qt.HasLen(s.Means, 4))
	qt.Check(t, qt.Equals(s.Means[0].Seeds, 2))
	qt.Check(t, qt.Equals(s.Means[1].Unit, "bps"))
	qt.Assert(t, qt.HasLen(s.Bounds, 1))
	qt.Check(t, qt.Equals(s.Bounds[0].Bound, "at least 1"))
	qt.Check(t, qt.HasLen(s.Not, 0))
}
