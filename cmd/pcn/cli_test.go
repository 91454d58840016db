// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func TestMisspeltNamesAreUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"rnu"}, `unknown command "rnu" \(hint: did you mean "run"\?\)`},
		{[]string{"run", "hool"}, `no experiment is named "hool" \(hint: did you mean "hol"\?.*`},
	} {
		_, _, err := pcn(t, c.args...)
		qt.Check(t, qt.ErrorMatches(err, c.want))
		qt.Check(t, qt.Equals(run(t.Context(), c.args), exitUsage))
	}
}

func TestListAsJSON(t *testing.T) {
	out, code, err := pcn(t, "list", "--json")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, 0))
	var all []map[string]any
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &all)))
	qt.Assert(t, qt.HasLen(all, len(experiments.Names())))
	for _, key := range []string{"name", "title", "cases", "schemes"} {
		qt.Check(t, qt.IsNotNil(all[0][key]), qt.Commentf("%s", key))
	}
}

func TestValidate(t *testing.T) {
	good, bad := filepath.Join(t.TempDir(), "good.yaml"), filepath.Join(t.TempDir(), "bad.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(good, []byte(small), 0o600)))
	qt.Assert(t, qt.IsNil(os.WriteFile(bad, []byte("nmae: x\n"+small), 0o600)))

	out, code, err := pcn(t, "validate", good)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, 0))
	qt.Check(t, qt.Equals(out, good+": ok\n"))

	out, code, err = pcn(t, "validate", "--json", good, bad)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(code, exitError))
	var found []mistake
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &found)))
	qt.Check(t, qt.DeepEquals(found, []mistake{
		{bad, 1, 1, `unknown key "nmae"`, `did you mean "name"?`},
	}))
}

func TestReportDoesNotOverwrite(t *testing.T) {
	dir := t.TempDir()
	fig2(t, parse(t, small), filepath.Join(dir, "runs"), asIs)
	out := filepath.Join(dir, "report.html")
	qt.Assert(t, qt.IsNil(os.WriteFile(out, []byte("mine"), 0o600)))
	_, _, err := pcn(t, "report", filepath.Join(dir, "runs"), "--out", out)
	qt.Check(t, qt.ErrorMatches(err, `.*report.html exists: .* --out, .* --force`))
	kept, err := os.ReadFile(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(kept), "mine"))
	_, _, err = pcn(t, "report", filepath.Join(dir, "runs"), "--out", out, "--force")
	qt.Check(t, qt.IsNil(err))
}

// The report of one folder goes into it; several need a name.
func TestReportGoesIntoTheFolder(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	fig2(t, parse(t, small), dir, asIs)
	_, _, err := pcn(t, "report", dir)
	qt.Assert(t, qt.IsNil(err))
	_, err = os.Stat(filepath.Join(dir, "report.html"))
	qt.Check(t, qt.IsNil(err))
	_, _, err = pcn(t, "report", dir, dir)
	qt.Check(t, qt.ErrorMatches(err, `2 folders: name the report's file with --out, .*`))
	qt.Check(t, qt.ErrorAs(err, new(usageError)))
}

func TestReportFigures(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "runs")
	fig2(t, parse(t, small), dir, asIs)
	to := filepath.Join(t.TempDir(), "new", "figures")
	out, _, err := pcn(t, "report", dir, "--figures", to, "--format", "csv")
	qt.Assert(t, qt.IsNil(err))
	files, err := filepath.Glob(filepath.Join(to, "*.csv"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(out, strings.Join(files, "\n")+"\n"))
	_, _, err = pcn(t, "report", dir, "--figures", to, "--format", "csv")
	qt.Check(t, qt.ErrorMatches(err, `.*file exists: .* --force`))
	_, _, err = pcn(t, "report", dir, "--figures", to, "--format", "csv", "--force")
	qt.Check(t, qt.IsNil(err))
	_, _, err = pcn(t, "report", dir, "--figures", to, "--format", "gif")
	qt.Check(t, qt.ErrorMatches(err, `--format: unknown format "gif": want svg, pdf, csv, png`))
	_, _, err = pcn(t, "report", dir, "--format", "pdf")
	qt.Check(t, qt.ErrorMatches(err, `--format is for --figures, .*`))
}

func TestCompletion(t *testing.T) {
	names, _ := completeExperiment(nil, nil, "")
	qt.Check(t, qt.IsTrue(slices.Contains(names, "hol")))
	e, err := experiments.Load("qcn-buffers")
	qt.Assert(t, qt.IsNil(err))
	cases, _ := completeCase(nil, []string{"qcn-buffers"}, "")
	qt.Check(t, qt.DeepEquals(cases, e.CaseNames()))
}

// What shells ask for is wired to the commands.
func TestCompletionOfSweepsAndInterfaces(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"sweep", ""}, "hol-burst\n"},
		{[]string{"sweep", "hol-burst", "--on", ""}, "slurm\n"},
		{[]string{"host", "up", "--on", ""}, "lo\n"},
		{[]string{"run", "hol", "--algo", ""}, "timely\n"},
	} {
		out, _, err := pcn(t, append([]string{"__complete"}, c.args...)...)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.StringContains(out, c.want), qt.Commentf("%q", c.args))
	}
}
