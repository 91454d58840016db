// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/suite"
)

// testSuite is a suite of one experiment with two runs, the second of which no link's rate changes.
func testSuite(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text, _, _ := strings.Cut(bisectExperiment, "expect:")
	text = strings.Replace(text, "{name: F, from: H0, to: H1}",
		"{name: F, from: H0, to: H1, start: 0us, start_jitter: 10us}", 1) + `cases:
  - {name: open}
  - {name: limited, set: {flows.F.limit_rate: 10Gbps, flows.F.initial_rate: 10Gbps}}
metrics:
  - {name: rate, metric: mean_rate, flows: [F], from: 50us, to: 100us}
`
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "one.yaml"), []byte(text), 0o644)))
	return dir
}

// runSuite runs a suite on a kernel whose links have a rate.
func runSuite(
	t *testing.T, dir, rate, against, out string, options ...func(*suiteRun),
) (string, error) {
	t.Helper()
	var text bytes.Buffer
	r := suiteRun{kernel: rate, against: against, out: out, seeds: "1..6", w: &text,
		progress: io.Discard, newEngine: func(rate string) (launch.Engine, error) {
			return rateEngine{launch.NewSimulator(), rate}, nil
		}}
	for _, o := range options {
		o(&r)
	}
	err := r.run(t.Context(), dir)
	return text.String(), err
}

// Of two runs that have changed, the suite ends at the first. Of two schemes it runs the wanted.
func TestSuiteInPart(t *testing.T) {
	dir, out := testSuite(t), t.TempDir()
	file := filepath.Join(dir, "one.yaml")
	text, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	both := strings.NewReplacer("schemes: [pcn]", "schemes: [pcn, dcqcn]",
		"flows.F.limit_rate: 10Gbps, flows.F.initial_rate: 10Gbps", "duration: 110us",
	).Replace(string(text))
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(both), 0o644)))
	reference := filepath.Join(out, "reference")
	_, err = runSuite(t, dir, "40Gbps", "", reference)
	qt.Assert(t, qt.IsNil(err))

	runs := func(out string) (names, allSeeds []string) {
		r, err := suite.Read(out)
		qt.Assert(t, qt.IsNil(err))
		for _, run := range r.Runs {
			names = append(names, run.Name())
			if len(run.Seeds) == 6 {
				allSeeds = append(allSeeds, run.Name())
			}
		}
		return names, allSeeds
	}
	part := filepath.Join(out, "part")
	pcn := func(r *suiteRun) { r.algo = []string{"pcn"} }
	printed, err := runSuite(t, dir, "9Gbps", reference, part, pcn)
	qt.Check(t, qt.Equals(err, error(exitWith(exitExpect))))
	qt.Check(t, qt.StringContains(printed, "the same bytes: 0 of 2 runs"))
	names, changed := runs(part)
	qt.Check(t, qt.DeepEquals(names, []string{"one-flow/open/pcn", "one-flow/limited/pcn"}))
	qt.Check(t, qt.DeepEquals(changed, names))

	fast := filepath.Join(out, "fast")
	printed, err = runSuite(t, dir, "9Gbps", reference, fast, pcn,
		func(r *suiteRun) { r.failFast = true })
	qt.Check(t, qt.Equals(err, error(exitWith(exitExpect))))
	qt.Check(t, qt.StringContains(printed, "CHANGED: 1 metrics, 1 can't be told"))
	names, changed = runs(fast)
	qt.Check(t, qt.HasLen(names, 2))
	qt.Check(t, qt.DeepEquals(changed, names[:1]))

	fails := func(want string, option func(*suiteRun)) {
		t.Helper()
		_, err := runSuite(t, dir, "40Gbps", "", filepath.Join(out, "failed"), option)
		qt.Check(t, qt.ErrorMatches(err, want))
	}
	fails(`suite .* has no run of scheme "bbx": want some of pcn, dcqcn`,
		func(r *suiteRun) { r.algo = []string{"pcn", "bbx"} })
	fails(`--fail-fast: want --against, .*`, func(r *suiteRun) { r.failFast = true })
}

// A kernel that does the same is known by its bytes, with one seed. One that does not is judged by
// metrics, with all seeds.
func TestSuite(t *testing.T) {
	dir, out := testSuite(t), t.TempDir()
	of := func(name string) string { return filepath.Join(out, name) }
	printed, err := runSuite(t, dir, "40Gbps", "", of("reference"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(printed, `2 runs with 6 seeds on Linux .*\n`))

	for _, test := range []struct {
		rate string
		code int
		want string
	}{
		{"40Gbps", 0, `(?s).*the same bytes: 2 of 2 runs, 2 of 2 flows\nSAME\n`},
		{"39.999Gbps", exitDiffer, `(?s).*\nWITHIN: .*`},
		{"39.9Gbps", exitDiffer, `(?s).*\nCAN'T TELL: .*`},
		{"38Gbps", exitExpect, `(?s).*open/pcn: 0 of 1 flows the same, 6 seeds\n` +
			`  first: at .*\n  rate  CHANGED  38.* reference 40.*\nCHANGED: 1 metrics.*`},
	} {
		printed, err := runSuite(t, dir, test.rate, of("reference"), of(test.rate))
		var code exitCode
		errors.As(err, &code)
		qt.Check(t, qt.Equals(int(code), test.code), qt.Commentf("%s %v", test.rate, err))
		qt.Check(t, qt.Matches(printed, test.want), qt.Commentf("%s", printed))
	}
	same, err := suite.Read(of("40Gbps"))
	qt.Assert(t, qt.IsNil(err))
	for _, run := range same.Runs {
		qt.Check(t, qt.HasLen(run.Seeds, 1))
	}

	var page bytes.Buffer
	c := newSuitePage()
	c.SetOut(&page)
	c.SetArgs([]string{of("reference"), of("40Gbps"), of("38Gbps")})
	qt.Assert(t, qt.IsNil(c.ExecuteContext(t.Context())))
	for _, line := range []string{
		"| control | 40Gbps | 38Gbps |\n",
		"| pcn | the same bytes, 2 of 2 runs | ",
		"\n## What differs on 38Gbps\n",
		"| one-flow/open/pcn | rate | changed | ",
		"\n| one-flow | rate |\n",
	} {
		qt.Check(t, qt.StringContains(page.String(), line))
	}
}

func TestSuiteErrors(t *testing.T) {
	empty := t.TempDir()
	for dir, fails := range map[string]string{
		"tpc": `no suite is named "tpc": want one of tcp, or a folder, such as ./mine`,
		empty: `suite .* has no experiments: want a folder with experiments, \*\.yaml`,
	} {
		_, err := runSuite(t, dir, "40Gbps", "", filepath.Join(t.TempDir(), "out"))
		qt.Check(t, qt.ErrorMatches(err, fails))
	}
	suiteDir := testSuite(t)
	_, err := runSuite(t, suiteDir, "40Gbps", empty, filepath.Join(t.TempDir(), "out"))
	qt.Check(t, qt.ErrorMatches(err, `.* has no suite.json: want the folder of results .*`))
	_, err = runSuite(t, suiteDir, "40Gbps", "", suiteDir)
	qt.Check(t, qt.ErrorMatches(err, `.* is not empty: remove it, or name another .*`))
	file := filepath.Join(suiteDir, "one.yaml")
	text, readErr := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(readErr))
	without, _, _ := strings.Cut(string(text), "metrics:")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(without), 0o644)))
	_, err = runSuite(t, suiteDir, "40Gbps", "", filepath.Join(t.TempDir(), "out"))
	qt.Check(t, qt.ErrorMatches(err, `experiment one-flow measures nothing: give it metrics`))
}
