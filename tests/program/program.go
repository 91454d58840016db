// SPDX-License-Identifier: Apache-2.0

// Package program builds pcn for tests, and runs it.
package program

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// Build builds pcn and its guest as the Makefile does, beside the file, so that no test depends on
// an earlier make build. Sources may be replaced: paths below the repository's folder, by files.
// The working directory is that of a package in tests.
func Build(file string, replaced map[string]string) error {
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
	files[filepath.Join(root, "internal/launch/guest/pcn-guest")] = guest
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

// Run runs a build of pcn to its end and returns its output and exit code.
func Run(t testing.TB, file string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	cmd := exec.Command(file, args...)
	cmd.Stdout, cmd.Stderr = &out, &errs
	err := cmd.Run()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatalf("run pcn %q: %v", args, err)
	}
	return out.String(), errs.String(), cmd.ProcessState.ExitCode()
}
