// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

// pcn is the program under test, built once.
var pcn string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	if os.Getenv(insideEnv) != "" {
		return m.Run() // it is built
	}
	dir, err := os.MkdirTemp("", "pcn-e2e-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	pcn = filepath.Join(dir, "pcn")
	// as the Makefile does: the program is its own guest, so its bytes decide a run's
	cmd := exec.Command("go", "build", "-trimpath", "-buildvcs=false", "-ldflags", "-s -w", "-o", pcn, "github.com/pcn-linux/pcn/cmd/pcn")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		fmt.Fprintf(os.Stderr, "build pcn: %v\n%s", err, out)
		return 1
	}
	return m.Run()
}

// run runs pcn to its end and returns its output and exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(context.Background(), pcn, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run pcn %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	qt.Assert(t, qt.IsNil(err))
	return b
}
