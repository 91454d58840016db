// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// TestRerun: a run comes out the same again, on its kernel; and one of another machine is refused.
func TestRerun(t *testing.T) {
	t.Parallel()
	file, out := filepath.Join(t.TempDir(), "net.yaml"), filepath.Join(t.TempDir(), "out")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(tinyNet), 0o600)))
	_, stderr, code := run(t, "run", file, "--seed", "5", "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	stdout, stderr, code := run(t, "rerun", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	qt.Check(t, qt.Equals(stdout, "net pcn: same\n"))

	r, err := result.Read(filepath.Join(out, "pcn"))
	qt.Assert(t, qt.IsNil(err))
	manifest := filepath.Join(out, "pcn", "manifest.json")
	text := strings.Replace(string(read(t, manifest)), r.Manifest.KernelSHA256,
		strings.Repeat("0", 64), 1)
	qt.Assert(t, qt.IsNil(os.WriteFile(manifest, []byte(text), 0o600)))
	_, stderr, code = run(t, "rerun", out)
	qt.Check(t, qt.Equals(code, 1))
	qt.Check(t, qt.Matches(stderr, `(?s).*can't be repeated, as it had another machine: `+
		`kernel image 0{64}: here it is `+r.Manifest.KernelSHA256+`\. Build pcn.*`))

	_, stderr, code = run(t, "run", file, "--kernel", "5.4", "--out", filepath.Join(out, "none"))
	qt.Check(t, qt.Equals(code, 1))
	qt.Check(t, qt.Matches(stderr, `(?s).*no microVM kernel 5\.4 in .*`+
		regexp.QuoteMeta("run pcn setup")+`.*`))
}
