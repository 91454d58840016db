// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/tests/packaging/debtest"
)

const released = "9.9.9"

// checkout returns a Git repository with the files of this one as they are now, and a changelog
// that has the section of a release.
func checkout(t *testing.T) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "pcn")
	qt.Assert(t, qt.IsNil(os.MkdirAll(dir, 0o755)))
	root, err := filepath.Abs("../..")
	qt.Assert(t, qt.IsNil(err))
	files, err := exec.CommandContext(t.Context(), "git", "-C", root, "ls-files", "-z",
		"--cached", "--others", "--exclude-standard", "--deduplicate").Output()
	qt.Assert(t, qt.IsNil(err))
	pack := exec.CommandContext(t.Context(), "bash", "-c", "set -o pipefail; "+
		`tar -C "$1" --null -T - --ignore-failed-read -c | tar -C "$2" -x`, "bash", root, dir)
	pack.Stdin = bytes.NewReader(files)
	out, err := pack.CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	change(t, dir, func(text string) string {
		return strings.Replace(text, "## Unreleased\n",
			"## Unreleased\n\n## "+released+" - 2026-11-30\n", 1)
	})
	command(t, "git", "-C", dir, "init", "-q")
	commitAll(t, dir)
	return dir
}

// change writes the changelog anew.
func change(t *testing.T, dir string, edit func(string) string) {
	t.Helper()
	file := filepath.Join(dir, "CHANGELOG.md")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(edit(read(t, file))), 0o644)))
}

func commitAll(t *testing.T, dir string) {
	t.Helper()
	command(t, "git", "-C", dir, "add", "-A")
	command(t, "git", "-C", dir, "-c", "user.name=x", "-c", "user.email=x@example.org",
		"commit", "-q", "-m", "x")
}

// release makes a release of the repository, and returns its folder.
func release(t *testing.T, dir string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "release")
	got := command(t, filepath.Join(dir, "scripts/release.sh"), released, out,
		debtest.Compression, debtest.Level)
	qt.Check(t, qt.StringContains(got, "release: pcn "+released+" is in "+out+"\n"))
	return out
}

// A release has the program for each system, packages, and their hashes. Another folder gives the
// same bytes. The program of arm64 computes the same results as the one of amd64.
func TestRelease(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds for four systems, twice")
	}
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		t.Skip("no dpkg-deb here: no package is built")
	}
	dir := checkout(t)
	out := release(t, dir)
	names := []string{
		"SHA256SUMS",
		"pcn-9.9.9-darwin-amd64.tar.gz", "pcn-9.9.9-darwin-arm64.tar.gz",
		"pcn-9.9.9-kernel-linux-amd64.tar.gz",
		"pcn-9.9.9-linux-amd64.tar.gz", "pcn-9.9.9-linux-arm64.tar.gz",
		"pcn_9.9.9_amd64.deb", "pcn_9.9.9_arm64.deb",
	}
	if runtime.GOOS+runtime.GOARCH != "linuxamd64" {
		names = slices.DeleteFunc(names,
			func(name string) bool { return strings.Contains(name, "kernel") })
	}
	entries, err := os.ReadDir(out)
	qt.Assert(t, qt.IsNil(err))
	var have []string
	for _, e := range entries {
		have = append(have, e.Name())
	}
	qt.Assert(t, qt.DeepEquals(have, names))
	sums := read(t, filepath.Join(out, "SHA256SUMS"))
	for _, name := range names[1:] {
		qt.Check(t, qt.Matches(sums, `(?s).*[0-9a-f]{64}  `+regexp.QuoteMeta(name)+`\n.*`))
	}
	command(t, "bash", "-c", `cd "$1" && sha256sum --quiet -c SHA256SUMS`, "bash", out)

	moved := filepath.Join(t.TempDir(), "elsewhere")
	qt.Assert(t, qt.IsNil(os.Rename(dir, moved)))
	again := release(t, moved)
	qt.Check(t, qt.Equals(read(t, filepath.Join(again, "SHA256SUMS")), sums))

	commit := strings.TrimSpace(command(t, "git", "-C", moved, "rev-parse", "--short=12", "HEAD"))
	for target, kind := range map[string]string{
		"linux-amd64": "ELF 64-bit.*x86-64.*statically linked",
		"linux-arm64": "ELF 64-bit.*aarch64.*statically linked",
		// what can't run here is at least of the right kind
		"darwin-amd64": "Mach-O 64-bit x86_64 executable",
		"darwin-arm64": "Mach-O 64-bit arm64 executable",
	} {
		name := "pcn-9.9.9-" + target
		command(t, "tar", "-C", out, "-xzf", filepath.Join(out, name+".tar.gz"))
		for _, file := range []string{"pcn", "LICENSE", "README.md", "CHANGELOG.md", "copyright"} {
			_, err := os.Stat(filepath.Join(out, name, file))
			qt.Check(t, qt.IsNil(err))
		}
		if _, err := exec.LookPath("file"); err == nil {
			qt.Check(t, qt.Matches(command(t, "file", "-b", filepath.Join(out, name, "pcn")),
				kind+`(?s).*`))
		}
	}
	if runtime.GOARCH != "amd64" {
		t.Skip("the programs of Linux run on amd64, and on QEMU there")
	}
	amd64 := []string{filepath.Join(out, "pcn-9.9.9-linux-amd64", "pcn")}
	checkProgram(t, amd64, commit)
	checkKernel(t, out, amd64[0])
	qemu, err := exec.LookPath("qemu-aarch64-static")
	if err != nil {
		t.Skip("there is no qemu-aarch64-static: make setup-dev installs it")
	}
	arm64 := []string{qemu, filepath.Join(out, "pcn-9.9.9-linux-arm64", "pcn")}
	checkProgram(t, arm64, commit)
	qt.Check(t, qt.DeepEquals(simulate(t, arm64), simulate(t, amd64)))
}

// checkProgram checks that a program says which version it is.
func checkProgram(t *testing.T, pcn []string, commit string) {
	t.Helper()
	text := command(t, pcn[0], slices.Concat(pcn[1:], []string{"--version"})...)
	qt.Check(t, qt.Matches(text, "pcn 9.9.9, commit "+commit+", guest [0-9a-f]{12}\n"))
}

// checkKernel checks that a machine without a compiler can install the release's kernel.
func checkKernel(t *testing.T, out, pcn string) {
	t.Helper()
	name := "pcn-9.9.9-kernel-linux-amd64"
	command(t, "tar", "-C", out, "-xzf", filepath.Join(out, name+".tar.gz"))
	for _, file := range []string{"README", "GPL-2", "source.yaml", "edits.go", "added/jit.c"} {
		qt.Check(t, qt.IsTrue(len(read(t, filepath.Join(out, name, file))) > 0))
	}
	setup := exec.CommandContext(t.Context(), pcn, "setup", "--kernel-file",
		filepath.Join(out, name, "linux"))
	setup.Env = []string{"HOME=" + t.TempDir()} // and no PATH
	got, err := setup.CombinedOutput()
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.Matches(string(got), `kernel: .*\nmicroVM: boots in .*\n`))
}

// simulate runs an experiment with a program, and returns its files. Times of the wall clock, which
// differ between runs, are left out.
func simulate(t *testing.T, pcn []string) map[string]string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "run")
	command(t, pcn[0], slices.Concat(pcn[1:], []string{"run", "hol", "--engine", "sim",
		"--algo", "pfc,pcn", "--duration", "19ms", "--out", dir})...)
	wall := regexp.MustCompile(`"(started_at|total_s)": .*`)
	files := map[string]string{}
	for _, folder := range []string{"", "pcn", "pfc"} {
		entries, err := os.ReadDir(filepath.Join(dir, folder))
		qt.Assert(t, qt.IsNil(err))
		for _, e := range entries {
			if name := filepath.Join(folder, e.Name()); !e.IsDir() {
				files[name] = wall.ReplaceAllString(read(t, filepath.Join(dir, name)), "")
			}
		}
	}
	qt.Check(t, qt.StringContains(files["pcn/manifest.json"], `"tool": "pcn 9.9.9"`))
	qt.Check(t, qt.IsTrue(len(files["report.html"]) > 0))
	return files
}

// What is not ready to be released is refused, before anything is built.
func TestReleaseRefuses(t *testing.T) {
	dir := checkout(t)
	refuse := func(want string, args ...string) {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), filepath.Join(dir, "scripts/release.sh"),
			args...).CombinedOutput()
		qt.Check(t, qt.IsNotNil(err))
		qt.Check(t, qt.Matches(string(out), want+"\n"))
	}
	refuse("release: usage: .*")
	refuse("release: invalid version v9.9.9: want three numbers, such as 1.2.0", "v9.9.9")
	refuse(`release: CHANGELOG.md is of version 9.9.9: want a section "## 9.9.8 - DATE" .*`,
		"9.9.8")
	refuse("release: "+regexp.QuoteMeta(dir)+" exists: remove it", released, dir)
	change(t, dir, func(text string) string {
		return strings.Replace(text, "## Unreleased\n", "## Unreleased\n\n- Something.\n", 1)
	})
	refuse(`release: CHANGELOG.md is of version 9.9.9\+unreleased: want .*`, released)
	change(t, dir, func(text string) string {
		return strings.Replace(text, "\n- Something.\n", "\n\n", 1)
	})
	refuse("release: there are changes that are not committed: commit them", released)
	change(t, dir, func(string) string { return "# Changelog\n\n## Unreleased\n" })
	refuse(`version: CHANGELOG.md has no line .*`, released)
}
