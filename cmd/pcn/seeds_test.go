// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// Comparisons are judged over several seeds as expectations are: one that fails decides the exit
// code.
func TestSeedsAreCompared(t *testing.T) {
	for _, tc := range []struct {
		bound, row string
		code       int
	}{
		{"max", "ok  pcn", 0},
		{"min", "NOT MET  pcn", exitExpect},
	} {
		dir := t.TempDir()
		file := filepath.Join(dir, "small.yaml")
		text := small + "compare: [{what: until F0 has a rate, metric: recovery_time, " +
			"flows: [F0], target: 1Gbps, bounds: {pcn: {" + tc.bound + ": 10ms}}}]\n"
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
		out, code, err := pcn(t, "run", file, "--engine", "sim", "--seeds", "1..3",
			"--duration", "3ms", "--out", filepath.Join(dir, "out"))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(code, tc.code), qt.Commentf("%s", out))
		qt.Check(t, qt.StringContains(out, "until F0 has a rate\n"))
		qt.Check(t, qt.StringContains(out, "median [95% interval]"))
		qt.Check(t, qt.StringContains(out, tc.row))
	}
}

// An expectation that is not met keeps no run from being repeated, and is told.
func TestTwice(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "small.yaml")
	text := small + "expect: [{what: never, metric: lost_packets, min: 1000000}]\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	out, code, err := pcn(t, "run", file, "--engine", "sim", "--duration", "3ms", "--twice",
		"--out", filepath.Join(dir, "out"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, exitExpect), qt.Commentf("%s", out))
	qt.Check(t, qt.Matches(out, "(?s).*\nAgain:\n.*: same\n"))
}
