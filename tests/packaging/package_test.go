// SPDX-License-Identifier: Apache-2.0

package packaging

import (
	"compress/gzip"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/tests/packaging/debtest"
)

const (
	version = "0.1.0+test"
	arch    = "amd64"
)

// deb is the package under test, which TestMain builds.
var deb string

func TestMain(m *testing.M) {
	if guest.Inside() {
		guest.Main(func([]string) int { return m.Run() })
	}
	code, err := run(m)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	os.Exit(code)
}

func run(m *testing.M) (int, error) {
	if _, err := exec.LookPath("dpkg-deb"); err != nil {
		return m.Run(), nil // the tests skip
	}
	dir, err := os.MkdirTemp("", "pcn-deb-")
	if err != nil {
		return 1, err
	}
	defer os.RemoveAll(dir)
	if deb, err = debtest.Build(dir, version); err != nil {
		return 1, err
	}
	return m.Run(), nil
}

func requireDeb(t *testing.T) {
	t.Helper()
	if deb == "" {
		t.Skip("no dpkg-deb here: no package is built")
	}
}

// command runs a program of this machine and returns what it printed.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s %v\n%s", name, args, out))
	return string(out)
}

// unpacked is the folder of the package's files and DEBIAN.
func unpacked(t *testing.T) string {
	t.Helper()
	requireDeb(t)
	return debtest.Unpack(t, deb)
}

// Everything is where the system looks for it, readable, and owned by root.
func TestContents(t *testing.T) {
	dir := unpacked(t)
	for _, name := range []string{
		"etc/pcn/host.yaml",
		"lib/systemd/system/pcn-host.service",
		"lib/systemd/system/pcn-metrics.service",
		"usr/bin/pcn",
		"usr/lib/x86_64-linux-gnu/wireshark/plugins/pcn.lua",
		"usr/share/bash-completion/completions/pcn",
		"usr/share/doc/pcn/changelog.gz",
		"usr/share/doc/pcn/copyright",
		"usr/share/doc/pcn/examples/alerts.yaml",
		"usr/share/doc/pcn/examples/grafana.json",
		"usr/share/doc/pcn/host-measurements.md",
		"usr/share/doc/pcn/host.md",
		"usr/share/fish/vendor_completions.d/pcn.fish",
		"usr/share/man/man1/pcn-host-up.1.gz",
		"usr/share/man/man1/pcn.1.gz",
		"usr/share/zsh/vendor-completions/_pcn",
	} {
		info, err := os.Stat(filepath.Join(dir, name))
		if qt.Check(t, qt.IsNil(err)) {
			qt.Check(t, qt.IsTrue(info.Size() > 0), qt.Commentf("%s is empty", name))
		}
	}
	for line := range strings.Lines(command(t, "dpkg-deb", "-c", deb)) {
		fields := strings.Fields(line)
		qt.Check(t, qt.Equals(fields[1], "root/root"), qt.Commentf("%s", line))
		want := "-rw-r--r--"
		switch {
		case strings.HasSuffix(line, "/usr/bin/pcn\n"):
			want = "-rwxr-xr-x"
		case strings.HasPrefix(line, "d"):
			want = "drwxr-xr-x"
		}
		qt.Check(t, qt.Equals(fields[0], want), qt.Commentf("%s", line))
	}
	qt.Check(t, qt.Equals(read(t, filepath.Join(dir, "DEBIAN/conffiles")), "/etc/pcn/host.yaml\n"))
}

// The changelog is Debian's: dpkg-parsechangelog reads it, and its latest entry is of this version.
func TestChangelog(t *testing.T) {
	dir := unpacked(t)
	if _, err := exec.LookPath("dpkg-parsechangelog"); err != nil {
		t.Skip("no dpkg-parsechangelog here (package dpkg-dev)")
	}
	f, err := os.Open(filepath.Join(dir, "usr/share/doc/pcn/changelog.gz"))
	qt.Assert(t, qt.IsNil(err))
	defer f.Close()
	r, err := gzip.NewReader(f)
	qt.Assert(t, qt.IsNil(err))
	text, err := io.ReadAll(r)
	qt.Assert(t, qt.IsNil(err))
	file := filepath.Join(t.TempDir(), "changelog")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, text, 0o644)))
	parse := func(args ...string) string {
		return strings.TrimSpace(command(t, "dpkg-parsechangelog", append(args, "-l", file)...))
	}
	qt.Check(t, qt.Equals(parse("-S", "Version"), version))
	qt.Check(t, qt.Equals(parse("-S", "Version", "-o1", "-n1"), "0.1.0"))
	qt.Check(t, qt.StringContains(parse("--all"), "A Debian package."))
	qt.Check(t, qt.Not(qt.StringContains(parse("--all"), "dpkg-parsechangelog: warning")))
}

// The copyright file names each module that is linked into the program.
func TestCopyright(t *testing.T) {
	dir := unpacked(t)
	text := read(t, filepath.Join(dir, "usr/share/doc/pcn/copyright"))
	linked := 0
	for line := range strings.Lines(command(t, "go", "version", "-m", dir+"/usr/bin/pcn")) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[0] == "dep" {
			linked++
			qt.Check(t, qt.StringContains(text, "\nFiles: "+fields[1]+"/*\n"))
		}
	}
	qt.Check(t, qt.IsTrue(linked > 3), qt.Commentf("%d", linked))
	fieldOrPart := regexp.MustCompile(`^([A-Z][A-Za-z-]+:.*| .*\S|)$`)
	for line := range strings.SplitSeq(text, "\n") {
		qt.Check(t, qt.IsTrue(fieldOrPart.MatchString(line)),
			qt.Commentf("neither a field nor a part of one: %q", line))
	}
}

func TestLintian(t *testing.T) {
	requireDeb(t)
	if _, err := exec.LookPath("lintian"); err != nil {
		t.Skip("lintian is not installed: run scripts/setup.sh --dev")
	}
	out, err := exec.CommandContext(t.Context(), "lintian", "--tag-display-limit", "0",
		"--fail-on", "error,warning", "--allow-root", deb).CombinedOutput()
	qt.Check(t, qt.IsNil(err), qt.Commentf("%s", out))
}

// systemd accepts the units. It looks for their programs, so it sees the package as its root.
func TestUnits(t *testing.T) {
	dir := unpacked(t)
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("no systemd-analyze here")
	}
	for _, unit := range []string{"pcn-host.service", "pcn-metrics.service"} {
		text := read(t, filepath.Join(dir, "lib/systemd/system", unit))
		// it verifies what is where the unit says
		file := filepath.Join(t.TempDir(), unit)
		text = strings.ReplaceAll(text, "/usr/bin/pcn", dir+"/usr/bin/pcn")
		text = regexp.MustCompile(`(?m)^Documentation=man:.*$`).ReplaceAllString(text, "")
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o644)))
		out := strings.Split(command(t, "systemd-analyze", "verify", file), "\n")
		// it may also complain of other units of this machine
		other := func(line string) bool { return !strings.Contains(line, "pcn") }
		out = slices.DeleteFunc(out, other)
		qt.Check(t, qt.HasLen(out, 0))
	}
}

// Wireshark loads the dissector from where the package puts it.
func TestDissectorFolder(t *testing.T) {
	requireDeb(t)
	if _, err := exec.LookPath("tshark"); err != nil {
		t.Skip("no tshark here")
	}
	folders := command(t, "tshark", "-G", "folders")
	qt.Check(t, qt.Matches(folders,
		`(?s).*Global Lua Plugins:\s+/usr/lib/x86_64-linux-gnu/wireshark/plugins\n.*`))
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	qt.Assert(t, qt.IsNil(err))
	return string(text)
}
