// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/tests/program"
)

// exitExpect is what pcn run exits with if a bound is not met.
const exitExpect = 3

// exitShort is what it exits with if a run is too short to be judged.
const exitShort = 6

// judged reports whether runs took place, whatever their bounds say: short ones may not meet all.
func judged(code int) bool { return code == 0 || code == exitExpect || code == exitShort }

// pcn is the program under test, built once.
var pcn string

func TestMain(m *testing.M) { os.Exit(build(m)) }

func build(m *testing.M) int {
	if os.Getenv(insideEnv) != "" {
		return m.Run() // it is built
	}
	if err := oneMoreAtATime(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
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

// oneMoreAtATime lets one more test run at a time than there are CPUs, unless the command line says
// how many. A test sometimes waits: TestSlurm does most of the time. pcn itself lets no more
// microVMs run than there are CPUs.
func oneMoreAtATime() error {
	flag.Parse()
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if given {
		return nil
	}
	return flag.Set("test.parallel", strconv.Itoa(runtime.GOMAXPROCS(0)+1))
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
