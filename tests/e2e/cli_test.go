// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm"
	"github.com/pcn-linux/pcn/internal/vm/debian"
	"github.com/pcn-linux/pcn/loader"
)

func TestUsage(t *testing.T) {
	full := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(full, "x"), nil, 0o600)))
	bad := filepath.Join(t.TempDir(), "bad.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(bad, []byte("name: x\ntopology: {kind: fig1, dely: 5us}\n"), 0o600)))

	for _, c := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"run"}, 2, `(?s).*name an experiment: a name of pcn list.*Try: pcn --help.*`},
		{[]string{"fly"}, 2, `(?s).*unknown command "fly".*`},
		{[]string{"run", "hol", "--wing"}, 2, `(?s).*unknown flag: --wing.*`},
		{[]string{"run", "hol", "--duration", "15"}, 2, `(?s).*--duration: .*`},
		{[]string{"run", "hol", "--algo", "cubik"}, 2, `(?s).*"cubik".*cubic.*`},
		{[]string{"run", "nothing"}, 2, `(?s).*no experiment is named "nothing".*hol.*`},
		{[]string{"run", bad}, 1, `(?s).*bad\.yaml:2:\d+: .*dely.*delay.*`},
		{[]string{"run", "hol", "--out", full}, 1, `(?s).*is not empty: choose another with --out.*`},
		{[]string{"report", full}, 1, `(?s).*holds no run.*`},
	} {
		_, stderr, code := run(t, c.args...)
		qt.Check(t, qt.Equals(code, c.code), qt.Commentf("pcn %q: %s", c.args, stderr))
		qt.Check(t, qt.Matches(stderr, c.want), qt.Commentf("pcn %q", c.args))
	}
}

func TestNativeSaysWhatIsMissing(t *testing.T) {
	if err := loader.HaveQdisc(); err == nil {
		return // this kernel has it all: nothing to refuse
	}
	out := filepath.Join(t.TempDir(), "out")
	_, stderr, code := run(t, "run", "hol", "--native", "--out", out)
	qt.Assert(t, qt.Equals(code, 1))
	qt.Assert(t, qt.Matches(stderr, `(?s).*lacks CONFIG_NET_SCH_BPF \(6\.16\+\): run without --native to use the microVM.*`))
}

func TestList(t *testing.T) {
	stdout, _, code := run(t, "list")
	qt.Assert(t, qt.Equals(code, 0))
	qt.Assert(t, qt.Matches(stdout, `(?s)NAME.*\nhol .*pfc,qcn,dcqcn,timely,pcn.*hol-shared-buffer.*`))
}

func TestDoctor(t *testing.T) {
	stdout, _, code := run(t, "doctor")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stdout))
	qt.Assert(t, qt.Matches(stdout, `(?s).*ok +microVM +microVM kernel.*ok +--kernel +QEMU.*`))

	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("PATH", t.TempDir())
	stdout, _, _ = run(t, "doctor")
	qt.Assert(t, qt.Matches(stdout, `(?s).*missing +microVM +microVM kernel.*fix: pcn setup.*missing +--kernel +QEMU.*`))
	_, stderr, code := run(t, "run", "hol", "--out", filepath.Join(t.TempDir(), "out"))
	qt.Assert(t, qt.Equals(code, 1))
	qt.Assert(t, qt.Matches(stderr, `(?s).*run pcn setup.*`))
}

// What set-up has put into the cache is verified, and boots.
func TestSetUp(t *testing.T) {
	if _, err := vm.FindKernel(debian.Tested().Version); err != nil {
		t.Skipf("scripts/setup.sh could not have the tested kernel: %v", err)
	}
	const boots = `microVM: boots in [0-9.]+ s\n`
	stdout, stderr, code := run(t, "setup", "--qemu")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.Matches(stdout, `kernel: \S+ is in \S+, verified\nQEMU: .*\n`+boots))
	stdout, stderr, code = run(t, "setup")
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.Matches(stdout, `kernel: \S+-pcn is in \S+\n`+boots))
}
