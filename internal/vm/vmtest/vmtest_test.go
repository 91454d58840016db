// SPDX-License-Identifier: Apache-2.0

package vmtest

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// insideEnv makes this test binary run TestInGuest in a microVM, instead of its tests.
const insideEnv = "PCN_VMTEST_INSIDE"

func TestMain(m *testing.M) {
	if guest.Inside() || os.Getenv(insideEnv) != "" {
		os.Exit(RunTests(m, Extra{}))
	}
	os.Exit(m.Run())
}

func TestGuestFlags(t *testing.T) {
	qt.Check(t, qt.DeepEquals(
		guestFlags([]string{
			"-test.v=test2json", "-test.testlogfile=/x", "-test.run=^A$/b=c",
			"-test.gocoverdir=/y", "-test.outputdir=/z", "arg",
		}),
		[]string{"-test.v=test2json", "-test.run=^A$/b=c", "arg"}))
}

// The second microVM runs what needs it, of what was chosen.
func TestWantedOf(t *testing.T) {
	for _, test := range []struct {
		flags, tests, want []string // want is nil: there is nothing to run
	}{
		{nil, []string{"TestA", "TestB"}, []string{"-test.run=^(TestA|TestB)$"}},
		{nil, nil, nil},
		{[]string{"-test.run=A/b"}, []string{"TestA"}, []string{"-test.run=A/b"}},
		{[]string{"-test.v", "-test.run=^TestC$"}, []string{"TestA", "TestB"}, nil},
		{[]string{"-test.run="}, []string{"TestA"}, []string{"-test.run="}},
	} {
		flags, wanted := wantedOf(test.flags, test.tests)
		qt.Check(t, qt.Equals(wanted, test.want != nil), qt.Commentf("%q", test.flags))
		if wanted {
			qt.Check(t, qt.DeepEquals(flags, test.want))
		}
	}
}

func TestTestdata(t *testing.T) {
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(dir, "testdata/deep"), 0o755)))
	for name, text := range map[string]string{"testdata/deep/a": "1", "other": "2"} {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644)))
	}
	files, err := testdata(dir)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(files, 2))
	qt.Check(t, qt.Equals(files[1].Path, dir+"/testdata/deep/a"))
	qt.Check(t, qt.Equals(string(files[1].Data), "1"))

	files, err = testdata(t.TempDir())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(files, 1)) // only what makes the working directory
}

// RunTests takes a test binary with its flags, testdata and working directory into the guest, and
// its exit code back.
func TestRunTests(t *testing.T) {
	runTests := func(pattern string) (string, error) {
		cmd := exec.CommandContext(t.Context(), os.Args[0],
			"-test.run="+pattern, "-test.v", "-test.testlogfile=/no/such/dir/log")
		cmd.Env = append(os.Environ(), insideEnv+"=1")
		out, err := cmd.CombinedOutput()
		return string(out), err
	}
	out, err := runTests("^TestInGuest$/^passes$")
	qt.Check(t, qt.IsNil(err), qt.Commentf("%s", out))
	qt.Check(t, qt.StringContains(out, "--- PASS: TestInGuest/passes"))
	out, err = runTests("^TestInGuest$/^fails$")
	qt.Check(t, qt.ErrorMatches(err, "exit status 1"))
	qt.Check(t, qt.StringContains(out, "--- FAIL: TestInGuest/fails"))
}

// TestInGuest is what TestRunTests runs in the guest.
func TestInGuest(t *testing.T) {
	if !guest.Inside() {
		t.Skip("runs in the microVM of TestRunTests")
	}
	t.Run("passes", func(t *testing.T) {
		qt.Check(t, qt.Equals(os.Getuid(), 0))
		text, err := os.ReadFile("testdata/hello.txt")
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(string(text), "hello\n"))
	})
	t.Run("fails", func(t *testing.T) { t.Error("on purpose") })
}
