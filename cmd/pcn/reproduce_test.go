// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestReproduceArguments(t *testing.T) {
	for _, args := range [][]string{
		{"reproduce", "pcn-fig99"},
		{"reproduce", "pcn-fig10", "--on", "pbs"},
		{"reproduce", "pcn-fig10", "--pack", "-1"},
		{"reproduce", "pcn-fig10", "--seeds", "3..1"},
		{"reproduce", "pcn-fig10", "--engine", "slurm"},
		{"reproduce", "pcn-fig10", "--set", "pcn.window=periodic"},
	} {
		qt.Check(t, qt.Equals(run(context.Background(), args), exitUsage), qt.Commentf("%q", args))
	}
}

const ownCatalogue = `paper: own
title: A paper of one's own
figures:
  - name: fig
    title: One flow
    experiment: increase-law
    cost: 100ms
    sim: {seeds: 1..6}
    quick: {seeds: 1..5, set: {duration: 2.6ms}}
    draw: true
    claims:
      - {what: fast, quote: fast, paper: fast, rule: ours, scheme: pcn, metric: port_rate,
         ports: [S0->S1], max: 1Gbps}
      - {what: slow, quote: slow, paper: slow, rule: ours, scheme: pcn, metric: rate_after_cnps,
         flows: [F0], cnps: 15, min: 30Gbps}
`

// A catalogue of one's own runs in the simulation, and again without running anything.
func TestReproduce(t *testing.T) {
	dir := t.TempDir()
	file, out := filepath.Join(dir, "own.yaml"), filepath.Join(dir, "out")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(ownCatalogue), 0o644)))
	reproduce := func(more ...string) string {
		args := append([]string{"reproduce", file, "--engine", "sim", "--out", out}, more...)
		qt.Assert(t, qt.Equals(run(t.Context(), args), exitExpect))
		table, err := os.ReadFile(filepath.Join(out, "table.md"))
		qt.Assert(t, qt.IsNil(err))
		return string(table)
	}
	first := reproduce()
	qt.Check(t, qt.StringContains(first, "1 of 2 claims are met, 1 are not."))
	qt.Check(t, qt.StringContains(first, "n = 6"))
	qt.Check(t, qt.Equals(reproduce("--finished"), first))
	page, err := os.ReadFile(filepath.Join(out, "report.html"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(page), "One flow"))
	qt.Check(t, qt.Equals(strings.Count(string(page), "<figure data-live="), 2),
		qt.Commentf("two curves"))

	out = filepath.Join(dir, "quick")
	quick := reproduce("--quick")
	qt.Check(t, qt.StringContains(quick, "`pcn reproduce own-fig --engine sim --quick`"))
	qt.Check(t, qt.Equals(reproduce("--finished"), quick), qt.Commentf("the full run is not there"))
}
