// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// forbidden are packages that would make what has nothing to do with a run change its bytes, and
// the microVM boot longer. What is below them is forbidden too.
var forbidden = []string{
	"github.com/charmbracelet",
	"github.com/prometheus/client_golang",
	"github.com/schollz/progressbar",
	"github.com/spf13",
	"github.com/u-root",
	"golang.org/x/term",
	"gonum.org",
	"html/template",
	"net/http",
	"testing",

	"github.com/pcn-linux/pcn/cmd/pcn",
	"github.com/pcn-linux/pcn/docs",
	"github.com/pcn-linux/pcn/host",
	"github.com/pcn-linux/pcn/netns-lab/experiments",
	"github.com/pcn-linux/pcn/internal/launch",
	"github.com/pcn-linux/pcn/internal/report",
	"github.com/pcn-linux/pcn/internal/sweep",
	"github.com/pcn-linux/pcn/netns-lab/sweeps",
}

func isIn(pkg, parent string) bool { return pkg == parent || strings.HasPrefix(pkg, parent+"/") }

// dependencies returns what a program links.
func dependencies(t *testing.T, program string) []string {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", program)
	cmd.Env = append(os.Environ(), "GOOS=linux", "GOARCH=amd64", "CGO_ENABLED=0")
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	qt.Assert(t, qt.IsNil(err))
	return strings.Fields(string(out))
}

func TestLinksOnlyWhatARunNeeds(t *testing.T) {
	packages := dependencies(t, ".")
	qt.Assert(t, qt.SliceContains(packages, "github.com/cilium/ebpf"))
	for _, pkg := range packages {
		for _, parent := range forbidden {
			qt.Check(t, qt.IsFalse(isIn(pkg, parent)), qt.Commentf("pcn-guest links %s", pkg))
		}
	}
}

// Neither program that is shipped links the tests' packages.
func TestCommandLinksNoTests(t *testing.T) {
	for _, pkg := range dependencies(t, "../pcn") {
		qt.Check(t, qt.IsFalse(isIn(pkg, "testing")), qt.Commentf("pcn links %s", pkg))
	}
}

// overlay makes go build see a file with something added. Its result is a flag.
func overlay(t *testing.T, path, added string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	qt.Assert(t, qt.IsNil(err))
	text, err := os.ReadFile(path)
	qt.Assert(t, qt.IsNil(err))
	changed := filepath.Join(t.TempDir(), "changed")
	qt.Assert(t, qt.IsNil(os.WriteFile(changed, append(text, added...), 0o644)))
	replace := map[string]map[string]string{"Replace": {path: changed}}
	list, err := json.Marshal(replace)
	qt.Assert(t, qt.IsNil(err))
	file := filepath.Join(t.TempDir(), "overlay.json")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, list, 0o644)))
	return "-overlay=" + file
}

// hash returns that of the file which the command, with a file's name after it, writes.
func hash(t *testing.T, dir string, command ...string) [sha256.Size]byte {
	t.Helper()
	file := filepath.Join(t.TempDir(), "program")
	for i, arg := range command {
		if arg == "FILE" {
			command[i] = file
		}
	}
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	data, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	return sha256.Sum256(data)
}

// A changed document is another pcn with the same guest; a changed algorithm is another guest.
func TestOnlyWhatARunNeedsChangesTheGuest(t *testing.T) {
	if testing.Short() {
		t.Skip("builds each program twice")
	}
	guest := func(flags ...string) [sha256.Size]byte {
		return hash(t, "../..", append([]string{"scripts/build-guest.sh", "FILE"}, flags...)...)
	}
	pcn := func(flags ...string) [sha256.Size]byte {
		command := []string{"go", "build", "-trimpath", "-buildvcs=false", "-o", "FILE"}
		return hash(t, "../pcn", append(append(command, flags...), ".")...)
	}
	document := overlay(t, "../../docs/architecture.md", "\nOne line more.\n")
	same := guest()
	qt.Check(t, qt.IsTrue(guest(document) == same))
	qt.Check(t, qt.IsFalse(pcn(document) == pcn()))

	code := overlay(t, "main.go", "\nfunc init() { println(1) }\n")
	qt.Check(t, qt.IsFalse(guest(code) == same))
}

// The bytes depend on nothing of the folder they are built in, nor on the user's settings of go.
func TestSameBytesAnywhere(t *testing.T) {
	if testing.Short() {
		t.Skip("copies the sources, and builds them")
	}
	here := hash(t, "../..", "scripts/build-guest.sh", "FILE")
	elsewhere := filepath.Join(t.TempDir(), "else", "where")
	list := exec.Command("git", "-C", "../..", "ls-files", "-z", "-co", "--exclude-standard")
	files, err := list.Output()
	if err != nil {
		t.Skip("this is no git checkout")
	}
	for name := range bytes.SplitSeq(bytes.TrimRight(files, "\x00"), []byte{0}) {
		data, err := os.ReadFile(filepath.Join("../..", string(name)))
		if os.IsNotExist(err) {
			continue // removed, and not committed yet
		}
		qt.Assert(t, qt.IsNil(err))
		to := filepath.Join(elsewhere, string(name))
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(to), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(to, data, 0o755)))
	}
	t.Setenv("GOFLAGS", "-tags=other")
	t.Setenv("GOARCH", "arm64")
	t.Setenv("GOAMD64", "v3")
	t.Setenv("CGO_ENABLED", "1")
	there := hash(t, elsewhere, "scripts/build-guest.sh", "FILE")
	qt.Check(t, qt.IsTrue(there == here))
}
