// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/table"
)

const simulated = `
name: simulated
title: Two flows share a link
engine: sim
topology: {kind: dumbbell, senders: 2, rate: 10Gbps, delay: 2us}
schemes: [dcqcn, pcn]
warmup: 0ms
duration: 1ms
flows: [{name: F, from: A0..A1, to: B0, start: 0ms}]
expect:
  - {what: the link is used, metric: utilisation, ports: [S0->S1], min: 50%}
`

// The simulator leaves the same files as other engines, and waits for no microVM.
func TestSimulator(t *testing.T) {
	e := parse(t, simulated)
	qt.Check(t, qt.Equals(e.Engine, experiment.EngineSim))
	leavesFiles(t, e, NewSimulator(), "sim")
}

// leavesFiles checks the files of a run on an engine, and that what the experiment expects is met
// by what they say.
func leavesFiles(t *testing.T, e *experiment.Experiment, engine Engine, name string) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	runs, err := Run(t.Context(), Options{Experiment: e, Engine: engine, Out: out})
	qt.Assert(t, qt.IsNil(err))
	for _, r := range runs {
		again, err := result.Read(filepath.Join(out, r.Manifest.Label()))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(again.Manifest.Engine, name))
		for _, o := range result.Evaluate(e, again) {
			qt.Check(t, qt.IsTrue(o.Pass), qt.Commentf("%s: %s", o.Scheme, o.Value()))
		}
	}
	_, err = os.Stat(filepath.Join(out, ReportFile))
	qt.Check(t, qt.IsNil(err))
}

// Jobs that differ in scheme or seed have different fingerprints.
func TestSimulatorFingerprint(t *testing.T) {
	s, e := NewSimulator(), parse(t, simulated)
	of := func(j job.Job) string {
		print, err := s.Fingerprint(j)
		qt.Assert(t, qt.IsNil(err))
		return print
	}
	other, err := e.With(experiment.Changes{Seed: new(uint64(7))})
	qt.Assert(t, qt.IsNil(err))
	pcn := of(job.Job{Experiment: e, Scheme: "pcn"})
	qt.Check(t, qt.Equals(of(job.Job{Experiment: e, Scheme: "pcn"}), pcn))
	qt.Check(t, qt.Not(qt.Equals(of(job.Job{Experiment: e, Scheme: "dcqcn"}), pcn)))
	qt.Check(t, qt.Not(qt.Equals(of(job.Job{Experiment: other, Scheme: "pcn"}), pcn)))
}

// seedsAgree holds the folder against what ran: the table has every seed, the JSON file its
// values to the digit, the report the medians, and a report of the folder is the same file.
func seedsAgree(t *testing.T, out string, g report.Group, seeds experiment.Seeds) {
	t.Helper()
	all, err := table.ReadFile(out)
	qt.Assert(t, qt.IsNil(err))
	var inTable []uint64
	values := map[uint64]float64{}
	for _, r := range all.Rows {
		if r.Kind == table.Expect && r.Scheme == "pcn" {
			inTable = append(inTable, r.Seed)
			values[r.Seed] = *r.Value
		}
	}
	qt.Check(t, qt.DeepEquals(inTable, []uint64(seeds)))
	data, err := os.ReadFile(filepath.Join(out, jsonout.ExpectationsFile))
	qt.Assert(t, qt.IsNil(err))
	var written jsonout.Outcomes
	qt.Assert(t, qt.IsNil(json.Unmarshal(data, &written)))
	qt.Assert(t, qt.HasLen(written.Seeds, len(seeds)))
	for _, s := range written.Seeds {
		for _, x := range s.Expectations {
			if x.Scheme == "pcn" {
				qt.Check(t, qt.Equals(float64(x.Measured[0].Value), values[s.Seed]))
			}
		}
	}
	page, err := os.ReadFile(filepath.Join(out, ReportFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(page), "Medians of 6 seeds"))
	for _, o := range g.Seeds[0].Outcomes() {
		qt.Check(t, qt.StringContains(string(page), o.Value()))
	}
	groups, err := ReadRuns([]string{out})
	qt.Assert(t, qt.IsNil(err))
	again := filepath.Join(t.TempDir(), "again.html")
	qt.Assert(t, qt.IsNil(WriteReport(again, groups)))
	pageAgain, err := os.ReadFile(again)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(string(pageAgain) == string(page)))
}

// Several seeds are summed up in their order, every seed's values stay, and one's files.
func TestRunSeeds(t *testing.T) {
	e := parse(t, simulated)
	seeds, err := experiment.ParseSeeds("3..7,1")
	qt.Assert(t, qt.IsNil(err))
	var texts []string
	for range 2 {
		out := filepath.Join(t.TempDir(), "out")
		g, err := RunSeeds(t.Context(),
			Options{Experiment: e, Engine: NewSimulator(), Out: out}, seeds)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.HasLen(g.Runs, 2))
		shown := g.Seeds[0].Seeds[g.Seeds[0].Typical()].Seed
		qt.Check(t, qt.Equals(g.Runs[0].Manifest.Seed, shown))
		outcomes := g.Seeds[0].Outcomes()
		qt.Assert(t, qt.HasLen(outcomes, 2))
		qt.Check(t, qt.Equals(outcomes[0].Scheme, "dcqcn"))
		qt.Check(t, qt.Equals(outcomes[0].Spreads[0].Seeds, len(seeds)))
		qt.Check(t, qt.IsTrue(outcomes[0].Pass))
		texts = append(texts, outcomes[0].Value()+outcomes[1].Value())
		seedsAgree(t, out, g, seeds)
		_, err = result.Read(filepath.Join(out, "pcn"))
		qt.Check(t, qt.IsNil(err))
	}
	qt.Check(t, qt.Equals(texts[0], texts[1]))
}
