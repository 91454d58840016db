// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"crypto/sha256"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// digestsEnv names the file that TestDigests writes.
const digestsEnv = "SIM_DIGESTS"

// digested are runs whose bytes are compared: every control, both kinds of flow control, losses.
var digested = []struct{ experiment, scheme string }{
	{"hol", "pcn"}, {"hol", "dcqcn"}, {"hol", "qcn"}, {"hol", "timely"}, {"hol", "pfc"},
	{"tcd-single", "pfc"}, {"ldcp-steady", "ldcp"}, {"ldcp-steady", "pcn_dctcp"},
	{"clos-w2", "pcn"}, {"hpcc", "hpcc"}, {"hpcc-dctcp", "dctcp_rate"},
}

// digests returns a line for each file of these runs: its hash and name.
func digests(t *testing.T) string {
	t.Helper()
	var text string
	for _, d := range digested {
		e, err := experiments.Load(d.experiment)
		qt.Assert(t, qt.IsNil(err))
		e = shorten(t, e)
		if names := e.CaseNames(); len(names) > 0 {
			e, err = e.Case(names[len(names)-1])
			qt.Assert(t, qt.IsNil(err))
		}
		dir := t.TempDir()
		qt.Assert(t, qt.IsNil(simulate(t, e, d.scheme).Write(dir)))
		files, err := os.ReadDir(dir)
		qt.Assert(t, qt.IsNil(err))
		for _, f := range files {
			data, err := os.ReadFile(filepath.Join(dir, f.Name()))
			qt.Assert(t, qt.IsNil(err))
			text += fmt.Sprintf("%x %s/%s/%s\n",
				sha256.Sum256(data), d.experiment, d.scheme, f.Name())
		}
	}
	return text
}

// TestDigests writes the digests for TestARM64.
func TestDigests(t *testing.T) {
	path := os.Getenv(digestsEnv)
	if path == "" {
		t.Skip("TestARM64 runs it, on an emulated machine")
	}
	writeFile(t, path, digests(t))
}

// TestARM64: a program for arm64, which QEMU runs, writes the same bytes as this one.
func TestARM64(t *testing.T) {
	if testing.Short() {
		t.Skip("QEMU takes a minute")
	}
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("there is no qemu-aarch64-static: make setup-dev installs it")
	}
	dir := t.TempDir()
	program, out := filepath.Join(dir, "sim.test"), filepath.Join(dir, "digests")
	build := exec.CommandContext(t.Context(), "go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "GOARCH=arm64", "CGO_ENABLED=0")
	text, err := build.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	emulated := exec.CommandContext(t.Context(), qemu, program, "-test.run=^TestDigests$")
	emulated.Env = append(os.Environ(), digestsEnv+"="+out)
	text, err = emulated.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	got, err := os.ReadFile(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(got), digests(t)))
}
