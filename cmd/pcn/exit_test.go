// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// Every command means the same with an exit code.
func TestExitCodes(t *testing.T) {
	dir := t.TempDir()
	good, bad := filepath.Join(dir, "good.yaml"), filepath.Join(dir, "bad.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(good, []byte(small), 0o600)))
	qt.Assert(t, qt.IsNil(os.WriteFile(bad, []byte("nmae: x\n"), 0o600)))
	runs, invalid := filepath.Join(dir, "runs"), filepath.Join(dir, "invalid")
	fig2(t, parse(t, small), runs, asIs)
	fig2(t, parse(t, small), invalid, func(r *result.Run) {
		r.Manifest.Verdict, r.Manifest.Reasons = result.Invalid, []string{"late"}
	})
	page := filepath.Join(dir, "report.html")
	for _, c := range []struct {
		args string
		want int
	}{
		{"--version", 0},
		{"topo " + good, 0},
		{"compare " + runs, 0},
		{"diff " + runs + " " + runs, 0},

		{"run " + bad, exitError},
		{"run " + filepath.Join(dir, "missing.yaml"), exitError},
		{"validate " + bad, exitError},
		{"compare " + dir + "/missing", exitError},
		{"diff " + runs + " " + dir + "/missing", exitError},

		{"rnu", exitUsage},
		{"run", exitUsage},
		{"run hol --no-such-flag", exitUsage},
		{"run hol --algo no-such-scheme", exitUsage},
		{"run hol --case no-such-case", exitUsage},
		{"run hol --duration soon", exitUsage},
		{"run hol --seeds 9..1", exitUsage},
		{"run hol --engine no-such-engine", exitUsage},
		{"run hol --twice --seeds 1..2", exitUsage},
		{"run hol --twice --json", exitUsage},
		{"run hol --engine fluid --threads 2", exitUsage},
		{"run hol --engine fluid --checkpoint 1m --out " + page, exitUsage},
		{"run hol --engine sim --checkpoint 1m", exitUsage},
		{"run hol --engine sim --checkpoint soon --out " + page, exitUsage},
		{"run hol --engine sim --checkpoint -1m --out " + page, exitUsage},
		{"run hol --engine sim --checkpoint 1m --seeds 1..2 --out " + page, exitUsage},
		{"run hol --engine sim --checkpoint 1m --trace packets --out " + page, exitUsage},
		{"run no-such-experiment", exitUsage},
		{"sweep no-such-sweep", exitUsage},
		{"topo no-such-experiment", exitUsage},
		{"topo hol --case no-such-case", exitUsage},
		{"compare " + runs + " --to no-such-scheme", exitUsage},
		{"docs no-such-page", exitUsage},
		{"schema no-such-kind", exitUsage},
		{"scheme show no-such-scheme", exitUsage},
		{"host no-such-command", exitUsage},
		{"host up --control pcn --config x", exitUsage},

		{"compare " + invalid, exitInvalid},
		{"report " + invalid + " --out " + page, exitInvalid},
		{"diff " + runs + " " + invalid, exitDiffer},
	} {
		qt.Check(t, qt.Equals(run(t.Context(), strings.Fields(c.args)), c.want),
			qt.Commentf("%s", c.args))
	}
}

// The document and the program say the same of exit codes.
func TestExitCodesAreDocumented(t *testing.T) {
	page, err := os.ReadFile("../../docs/ci.md")
	qt.Assert(t, qt.IsNil(err))
	for code, meaning := range exitCodes {
		qt.Check(t, qt.StringContains(string(page), fmt.Sprintf("| %d | %s |\n", code, meaning)))
		qt.Check(t, qt.StringContains(newRoot().Long, fmt.Sprintf("  %d  %s", code, meaning)))
	}
}

// A capture that can't begin leaves an earlier one alone.
func TestCaptureKeepsFile(t *testing.T) {
	out := filepath.Join(t.TempDir(), "cnps.pcapng")
	qt.Assert(t, qt.IsNil(os.WriteFile(out, []byte("earlier"), 0o600)))
	_, _, err := pcn(t, "host", "capture", "--on", "no-such0", "--out", out)
	qt.Check(t, qt.ErrorMatches(err, "interface no-such0: .*: see ip link"))
	kept, err := os.ReadFile(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(kept), "earlier"))
}

// What never ends is no file: commands say so instead of reading on.
func TestEndlessFiles(t *testing.T) {
	dir := t.TempDir()
	for _, ext := range []string{".c", ".o", ".yaml"} {
		qt.Assert(t, qt.IsNil(os.Symlink("/dev/zero", filepath.Join(dir, "mine"+ext))))
	}
	trace := filepath.Join(dir, "trace.yaml")
	text := []byte(small + "trace: {file: /dev/zero}\n")
	qt.Assert(t, qt.IsNil(os.WriteFile(trace, text, 0o600)))
	for _, args := range []string{
		"topo /dev/zero",
		"run /dev/zero",
		"sweep /dev/zero",
		"reproduce " + dir + "/mine.yaml",
		"topo " + trace,
		"workload --cdf /dev/zero --rate 1Gbps --load 0.5 --from A --to B --duration 1ms",
		"scheme compile " + dir + "/mine.c",
		"host up --config /dev/zero",
		"host status --config /dev/zero",
		"host up --line-rate 1Gbps --control " + dir + "/mine.c",
		"host up --line-rate 1Gbps --control " + dir + "/mine.o",
		"host key 0 sign --file /dev/zero",
	} {
		t.Run(args, func(t *testing.T) {
			out, _, err := pcn(t, strings.Fields(args)...)
			qt.Check(t, qt.StringContains(out+fmt.Sprint(err), " is longer than "))
		})
	}
}
