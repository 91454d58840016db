// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/result"
)

// A run of it is judged from 6 ms on: H0's flow is never at 7 Gbit/s for good, which is known 4 ms
// and the time for which it should stay there after the start.
const judgedLate = `
name: late
topology: {kind: star, hosts: 2, rate: 10Gbps}
schemes: [pfc]
engine: sim
warmup: 0ms
duration: 10ms
flows: [{name: f, from: H0..H1, to: R0, start: 0ms}]
expect:
  - {what: to 5 ms, metric: mean_rate, flows: [f], to: 5ms, min: 4.9Gbps}
  - {what: from 5 ms, metric: mean_rate, flows: [f], from: 5ms, min: 4.9Gbps}
compare:
  - {what: soon, metric: recovery_time, flows: [f], target: 7Gbps, hold: 1ms,
    bounds: {pfc: {max: 4ms}}}
metrics:
  - {name: rate, metric: mean_rate, flows: [f], from: 1ms, over: min}
  - {name: util, metric: utilisation, ports: [S0->R0], from: 1ms}
`

// What a run was too short for says which duration would do, and has an exit status of its own. As
// soon as one value is known and not met, that counts.
func TestTooShort(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "late.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(judgedLate), 0o600)))
	for duration, want := range map[string]struct {
		code int
		rows []string
	}{
		"3ms": {exitShort, []string{
			`too short +to 5 ms +.*: too short: --duration 5ms`,
			`too short +from 5 ms +.*: too short: --duration 10ms`,
			`too short +pfc +.*: too short: --duration 5ms`,
		}},
		"4ms": {exitExpect, []string{
			`too short +from 5 ms +.*: too short: --duration 10ms`,
			`NOT MET +pfc +.* not reached within the remaining 4ms of the run +`,
		}},
		"6ms": {exitExpect, []string{`ok +to 5 ms`, `ok +from 5 ms`, `NOT MET +pfc`}},
	} {
		out, code, err := pcn(t, "run", file, "--duration", duration, "--out",
			filepath.Join(dir, duration))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(code, want.code), qt.Commentf("%s", duration))
		for _, row := range want.rows {
			qt.Check(t, qt.IsTrue(regexp.MustCompile(`(?m)^`+row).MatchString(out)),
				qt.Commentf("%s: %s\n%s", duration, row, out))
		}
	}
	out, code, err := pcn(t, "run", file, "--duration", "3ms", "--seeds", "1..3", "--out",
		filepath.Join(dir, "seeds"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, exitShort))
	qt.Check(t, qt.Equals(strings.Count(out, "\ntoo short  "), 3), qt.Commentf("%s", out))
	qt.Check(t, qt.IsFalse(strings.Contains(out, "NOT MET")), qt.Commentf("%s", out))
	o := outcomesIn(t, filepath.Join(dir, "3ms"))
	qt.Check(t, qt.Equals(*o.Expectations[1].NeedsNs, 10_000_000))
	qt.Check(t, qt.Equals(*o.Comparisons[0].Values[0].NeedsNs, 5_000_000))
	o = outcomesIn(t, filepath.Join(dir, "6ms"))
	qt.Check(t, qt.IsNil(o.Expectations[1].NeedsNs))
	qt.Check(t, qt.IsNil(o.Comparisons[0].Values[0].NeedsNs))
}

func outcomesIn(t *testing.T, dir string) (o jsonout.Outcomes) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(dir, jsonout.ExpectationsFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(json.Unmarshal(text, &o)))
	return o
}

// Metrics without bounds are printed and written; two flows share the link.
func TestMetricsArePrinted(t *testing.T) {
	dir := t.TempDir()
	file, runs := filepath.Join(dir, "late.yaml"), filepath.Join(dir, "runs")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(judgedLate), 0o600)))
	out, _, _ := pcn(t, "run", file, "--duration", "6ms", "--out", runs)
	qt.Check(t, qt.Matches(out, `(?s).*\nmetric +value\nrate +5Gbps\nutil +100%\n.*`),
		qt.Commentf("%s", out))
	m := outcomesIn(t, runs).Metrics
	qt.Assert(t, qt.HasLen(m, 2))
	qt.Check(t, qt.Equals(m[0].Name, "rate"))
	qt.Check(t, qt.Equals(m[0].Measured.Unit, "bps"))
	qt.Check(t, qt.Equals(float64(m[1].Measured.Value), 1))
}

// A simulated run is repeated by the simulator, wherever it is; one that another version made is
// named.
func TestRerunOfSimulation(t *testing.T) {
	dir := t.TempDir()
	file, runs := filepath.Join(dir, "late.yaml"), filepath.Join(dir, "runs")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(judgedLate), 0o600)))
	_, code, err := pcn(t, "run", file, "--duration", "6ms", "--out", runs)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(code, exitExpect))
	out, code, err := pcn(t, "rerun", runs)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, 0))
	qt.Check(t, qt.Equals(out, "late pfc: same\n"))

	old, err := result.Read(filepath.Join(runs, "pfc"))
	qt.Assert(t, qt.IsNil(err))
	old.Manifest.Tool = "pcn 0.0.1"
	older := filepath.Join(dir, "older")
	qt.Assert(t, qt.IsNil(old.Write(older)))
	root, stderr := newRoot(), new(bytes.Buffer)
	root.SetArgs([]string{"rerun", older})
	root.SetOut(io.Discard)
	root.SetErr(stderr)
	// the tool is the difference
	qt.Check(t, qt.Equals(root.ExecuteContext(t.Context()), error(exitCode(exitDiffer))))
	qt.Check(t, qt.StringContains(stderr.String(), "is of pcn 0.0.1, and this is pcn "))
}
