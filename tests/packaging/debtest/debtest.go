// SPDX-License-Identifier: Apache-2.0

// Package debtest builds the Debian package for tests.
package debtest

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// Compression and Level are how tests compress what users get smaller: it took half of their time.
const (
	Compression = "gzip"
	Level       = "1"
)

// Build builds the package of a version for amd64 into a folder, with the repository at ../.. of
// the caller's, and returns its path.
func Build(dir, version string) (string, error) {
	const arch = "amd64"
	cmd := exec.Command("../../scripts/build-deb.sh", version, arch, dir, Compression,
		Level)
	cmd.Stderr = os.Stderr
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build the package: %w", err)
	}
	return filepath.Join(dir, "pcn_"+version+"_"+arch+".deb"), nil
}

// Unpack unpacks a package: its files and the folder DEBIAN.
func Unpack(t testing.TB, deb string) (dir string) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "root")
	run(t, "dpkg-deb", "-R", deb, dir)
	return dir
}

// Repack packs an unpacked package as another version, not compressed, and returns its path.
func Repack(t testing.TB, dir, as string) string {
	t.Helper()
	control := filepath.Join(dir, "DEBIAN/control")
	text, err := os.ReadFile(control)
	qt.Assert(t, qt.IsNil(err))
	lines := strings.Split(string(text), "\n")
	for i, line := range lines {
		if strings.HasPrefix(line, "Version: ") {
			lines[i] = "Version: " + as
		}
	}
	qt.Assert(t, qt.IsNil(os.WriteFile(control, []byte(strings.Join(lines, "\n")), 0o644)))
	out := filepath.Join(t.TempDir(), "pcn.deb")
	run(t, "dpkg-deb", "--root-owner-group", "-Znone", "-b", dir, out)
	return out
}

func run(t testing.TB, name string, args ...string) {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s %v\n%s", name, args, out))
}
