// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/jsonout"
	"github.com/pcn-linux/pcn/netns-lab/launch"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// printed runs a command that prints JSON, and decodes it strictly.
func printed[T any](t *testing.T, wantCode int, args ...string) T {
	t.Helper()
	out, code, err := pcn(t, args...)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, wantCode))
	var v T
	d := json.NewDecoder(strings.NewReader(out))
	d.DisallowUnknownFields()
	qt.Assert(t, qt.IsNil(d.Decode(&v)), qt.Commentf("%s", out))
	qt.Check(t, qt.IsFalse(d.More()))
	return v
}

func TestRunAsJSON(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "small.yaml"), filepath.Join(dir, "out")
	text := strings.Replace(small, "schemes:", `expect:
  - {what: no packet is lost, metric: lost_packets, max: 0}
  - {what: impossible, scheme: pcn, metric: lost_packets, min: 1}
schemes:`, 1)
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	o := printed[jsonout.Outcomes](t, exitExpect, "run", file, "--engine", "sim", "--json",
		"--out", out)
	qt.Check(t, qt.Equals(o.Experiment, "small"))
	qt.Check(t, qt.IsFalse(o.Pass))
	qt.Assert(t, qt.HasLen(o.Runs, 2))
	qt.Check(t, qt.Equals(o.Runs[0].Engine, "sim"))
	qt.Check(t, qt.Equals(o.Runs[0].Verdict, string(result.Valid)))
	passed := map[string]bool{}
	for _, x := range o.Expectations {
		passed[x.Scheme+" "+x.What] = x.Pass
		qt.Check(t, qt.DeepEquals(x.Measured, []jsonout.Quantity{{Value: 0, Unit: "count"}}))
	}
	qt.Check(t, qt.DeepEquals(passed, map[string]bool{
		"pfc no packet is lost": true, "pcn no packet is lost": true, "pcn impossible": false,
	}))

	data, err := os.ReadFile(filepath.Join(out, jsonout.ExpectationsFile))
	qt.Assert(t, qt.IsNil(err))
	var kept jsonout.Outcomes
	qt.Assert(t, qt.IsNil(json.Unmarshal(data, &kept)))
	qt.Check(t, qt.DeepEquals(kept, o))

	seeds := printed[jsonout.Outcomes](t, exitExpect, "run", file, "--engine", "sim", "--json",
		"--seeds", "1..2", "--out", filepath.Join(dir, "seeds"))
	qt.Check(t, qt.HasLen(seeds.Runs, 4))
	qt.Check(t, qt.HasLen(seeds.Expectations, 3))
	qt.Check(t, qt.HasLen(seeds.Expectations[0].Intervals, 1))
	qt.Assert(t, qt.HasLen(seeds.Seeds, 2))
	qt.Check(t, qt.Equals(seeds.Seeds[1].Seed, 2))
	qt.Check(t, qt.HasLen(seeds.Seeds[1].Expectations, 3))
}

func TestCompareAndDiffAsJSON(t *testing.T) {
	a, b := filepath.Join(t.TempDir(), "a"), filepath.Join(t.TempDir(), "b")
	fig2(t, parse(t, small+compared), a, asIs)
	fig2(t, parse(t, small+compared), b, func(r *result.Run) {
		if r.Manifest.Scheme == "pfc" {
			r.Manifest.Seed++
		}
	})
	all := printed[[]jsonout.Compared](t, 0, "compare", a, "--json")
	qt.Assert(t, qt.HasLen(all, 1))
	qt.Check(t, qt.Equals(all[0].Baseline, "pcn"))
	loss := all[0].Comparisons[0]
	qt.Assert(t, qt.HasLen(loss.Values, 2))
	qt.Check(t, qt.DeepEquals(loss.Values[0].Measured, &jsonout.Quantity{Value: 3.3e6, Unit: "ns"}))
	qt.Check(t, qt.Equals(*loss.Values[0].Ratio, 3))
	lost := all[0].Comparisons[1]
	qt.Check(t, qt.IsNil(lost.Values[0].Ratio)) // to 0

	qt.Check(t, qt.DeepEquals(
		printed[[]jsonout.Diff](t, 0, "diff", a+"/pcn", b+"/pcn", "--json"),
		[]jsonout.Diff{{Run: "small pcn", Same: true, Differences: []jsonout.Difference{}}}))
	differ := printed[[]jsonout.Diff](t, exitDiffer, "diff", a, b, "--json")
	qt.Assert(t, qt.HasLen(differ, 2))
	qt.Check(t, qt.Equals(differ[0].Differences[0].What, "seed"))
}

func TestTopoAsJSON(t *testing.T) {
	file := filepath.Join(t.TempDir(), "fabric.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(fabricYAML), 0o600)))
	n := printed[jsonout.Topology](t, 0, "topo", file, "--case", "broken", "--json")
	qt.Check(t, qt.Equals(n.Nodes, 53))
	qt.Check(t, qt.Equals(n.Hosts, 48))
	qt.Check(t, qt.Equals(n.RoundTripNs, 24_000))
	qt.Check(t, qt.Equals(n.BisectionBps, 160e9))
	qt.Check(t, qt.DeepEquals(n.FailedLinks, []string{"L2-S1.0", "L2-S1.1"}))
	qt.Check(t, qt.Equals(*n.Tiers[1].Oversubscription, 2))
	qt.Check(t, qt.IsNil(n.Built))
}

func TestDoctorAsJSON(t *testing.T) {
	out, _, err := pcn(t, "doctor", "--json") // the exit code is this machine's
	qt.Assert(t, qt.IsNil(err))
	var all []jsonout.Check
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &all)))
	qt.Assert(t, qt.HasLen(all, len(launch.Doctor())))
	for _, c := range all {
		qt.Check(t, qt.Equals(c.OK, c.Error == ""), qt.Commentf("%s", c.What))
	}
}
