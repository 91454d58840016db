// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// Each of these holds a paper's equation or figure against packets; its bounds decide the exit code.
// Most are simulated: 0.2 s of CPU, in place of 5 to 40 s for the same programs on Linux.
// TestEnginesAgree holds the two engines against each other, and more experiments against papers.
func TestExperiments(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		args  []string
		unmet string // the one check that chance decides: docs/reproduction.md
	}{
		// on Linux, as ports wait there before they decide, so that its queue is longer
		{"Appendix A", []string{"appendix-a"}, "one loop brings the total rate to C (Proposition 1)"},
		{"Fig. 5", []string{"rate-principle", "--case", "f1-9g", "--engine", "sim"}, ""},
		{"Flows under TCD", []string{"tcd-fct", "--engine", "sim"}, ""},
		{"LDCP's fast start", []string{"ldcp-faststart", "--case", "idle,loaded", "--algo", "ldcp",
			"--engine", "sim"}, ""},
		// a bound is 10% above the shortest time there can be: Linux must be on time
		{"LDCP's fast start on Linux", []string{"ldcp-faststart", "--case", "idle",
			"--algo", "ldcp"}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			out := filepath.Join(t.TempDir(), "out")
			stdout, stderr, code := run(t, append(append([]string{"run"}, test.args...), "--out", out)...)
			var unmet []string
			for line := range strings.Lines(stdout) {
				if what, ok := strings.CutPrefix(line, "NOT MET"); ok && (test.unmet == "" || !strings.Contains(what, test.unmet)) {
					unmet = append(unmet, line)
				}
			}
			qt.Check(t, qt.IsTrue(code == 0 || test.unmet != "" && code == exitExpect), qt.Commentf("exit code %d: %s%s", code, stdout, stderr))
			qt.Check(t, qt.HasLen(unmet, 0), qt.Commentf("%s%s", stdout, stderr))
			qt.Check(t, qt.Matches(stdout, `(?s).*\nok .*`))
		})
	}
}

// TestEveryScheme: the schemes that no other test here runs on Linux do so on the paper's fabric,
// are valid, and one page shows them all. TestShortRun of package kernel runs them and others in
// one microVM.
func TestEveryScheme(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "out")
	schemes := []string{"qcn", "timely", "cubic"}
	stdout, stderr, code := run(t, "run", "hol", "--duration", "1ms", "--algo", strings.Join(schemes, ","), "--out", out)
	qt.Assert(t, qt.Equals(code, exitExpect), qt.Commentf("%s%s", stdout, stderr))
	page := string(read(t, out, "report.html"))
	for _, scheme := range schemes {
		r, err := result.Read(filepath.Join(out, scheme))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(r.Manifest.Verdict, result.Valid), qt.Commentf("%s: %s", scheme, r.Manifest.Reasons))
		qt.Check(t, qt.StringContains(page, strings.ToUpper(scheme)))
	}
	stdout, stderr, code = run(t, "compare", out)
	qt.Check(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	qt.Check(t, qt.StringContains(stdout, "F0 and F1 together lose throughput for"))
}
