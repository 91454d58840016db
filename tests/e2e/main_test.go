// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/tests/program"
)

// exitExpect is what pcn run exits with if a bound is not met.
const exitExpect = 3

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
	if err := program.Build(pcn, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// run runs pcn to its end and returns its output and exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return program.Run(t, pcn, args...)
}

func read(t *testing.T, path ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(path...))
	qt.Assert(t, qt.IsNil(err))
	return b
}
