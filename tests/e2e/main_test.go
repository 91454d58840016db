// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"

	"github.com/go-quicktest/qt"
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
	if err := buildPCN(pcn, nil); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	return m.Run()
}

// buildPCN builds pcn and its guest as the Makefile does, beside the file, so that no test depends
// on an earlier make build. Sources may be replaced: paths below the repository's folder, by files.
func buildPCN(file string, replaced map[string]string) error {
	root, err := filepath.Abs("../..")
	if err != nil {
		return err
	}
	guest := file + "-guest"
	files := map[string]string{}
	for path, by := range replaced {
		files[filepath.Join(root, path)] = by
	}
	flags, err := overlay(file+"-guest.json", files)
	if err != nil {
		return err
	}
	build := exec.Command(filepath.Join(root, "scripts/build-guest.sh"), guest, flags)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pcn-guest: %w\n%s", err, out)
	}
	files[filepath.Join(root, "netns-lab/launch/guest/pcn-guest")] = guest
	if flags, err = overlay(file+".json", files); err != nil {
		return err
	}
	build = exec.Command(filepath.Join(root, "scripts/build.sh"), file,
		runtime.GOOS+"/"+runtime.GOARCH, flags)
	if out, err := build.CombinedOutput(); err != nil {
		return fmt.Errorf("build pcn: %w\n%s", err, out)
	}
	return nil
}

// overlay writes a list of replaced files, and returns go build's flag for it.
func overlay(file string, replaced map[string]string) (flag string, err error) {
	list, err := json.Marshal(map[string]any{"Replace": replaced})
	if err != nil {
		return "", err
	}
	return "-overlay=" + file, os.WriteFile(file, list, 0o644)
}

// run runs pcn to its end and returns its output and exit code.
func run(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	return runProgram(t, pcn, args...)
}

// runProgram runs one build of pcn, as run does.
func runProgram(t *testing.T, program string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.CommandContext(context.Background(), program, args...)
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
