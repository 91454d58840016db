// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

func TestEdit(t *testing.T) {
	const text = "static int a = 1;\nstatic int b = 1;\n"
	for _, test := range []struct{ at, want, fails string }{
		{at: `int a = (\d)`, want: "static long a = 12;\nstatic int b = 1;\n"},
		{at: `= (\d);`, want: text, fails: `"= .*" matches 2 times: want once.*`},
		{at: `int c = (\d)`, want: text, fails: `.* matches 0 times: want once.*`},
	} {
		tree := t.TempDir()
		path := filepath.Join(tree, "c.c")
		qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(text), 0o644)))
		err := edit{file: "c.c", at: test.at, with: "long a = ${1}2"}.apply(tree)
		if test.fails == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, test.fails))
		}
		got, err := os.ReadFile(path)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(string(got), test.want))
	}
}

// A kernel from elsewhere replaces old ones of other recipes, and what a killed call left. What is
// no kernel of this recipe changes nothing.
func TestInstall(t *testing.T) {
	cache, elsewhere := t.TempDir(), filepath.Join(t.TempDir(), "linux")
	write := func(path, text string) {
		t.Helper()
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(path), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(text), 0o644)))
	}
	entries := func() (names []string) {
		t.Helper()
		list, err := os.ReadDir(folder(cache))
		qt.Assert(t, qt.IsNil(err))
		for _, e := range list {
			names = append(names, e.Name())
		}
		return names
	}
	const old, other = "7.2.1-pcn-000000000000", "7.3.4-pcn-000000000000"
	for _, release := range []string{old, other} {
		write(filepath.Join(folder(cache), release, imageFile), "\x7fELF")
	}
	monthAgo := time.Now().Add(-keptFor - time.Minute)
	qt.Assert(t, qt.IsNil(os.Chtimes(filepath.Join(folder(cache), old), monthAgo, monthAgo)))
	write(filepath.Join(folder(cache), ".setup-1", "x"), "")
	for _, text := range []string{"", "\x7fELF", banner(), "\x7fELF" + banner()[:20]} {
		write(elsewhere, text)
		qt.Check(t, qt.ErrorMatches(Install(cache, elsewhere),
			`.*linux is not the kernel that this version of pcn needs: want a program .*`))
		qt.Check(t, qt.DeepEquals(entries(), []string{old, other}))
	}
	found, err := Find(cache)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(found))

	write(elsewhere, "\x7fELF "+banner())
	qt.Assert(t, qt.IsNil(Install(cache, elsewhere)))
	qt.Check(t, qt.DeepEquals(entries(), []string{other, filepath.Base(dir(cache))}))
	found, err = Find(cache)
	qt.Check(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(found))

	write(Image(cache), "cut short")
	_, err = Find(cache)
	qt.Check(t, qt.ErrorMatches(err, `.*is not the kernel that this version of pcn needs.*`))
}

// What a build needs and the machine lacks is named with the command that installs it.
func TestMissing(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	qt.Check(t, qt.ErrorMatches(Missing(), `to build the kernel this machine lacks gcc, make, .*: `+
		`on Debian, run as root: apt-get install --no-install-recommends gcc make .* dwarves .*`))
}

// An option that Linux does not have under this name, or that lacks what it needs, is an error.
func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	have, want := filepath.Join(dir, ".config"), filepath.Join(dir, "config")
	qt.Assert(t, qt.IsNil(os.WriteFile(have, []byte("#\nCONFIG_A=y\nCONFIG_HZ=1000\n"), 0o644)))
	for text, fails := range map[string]string{
		"# a comment\nCONFIG_A=y\n# CONFIG_B is not set\n": "",
		"CONFIG_HZ=100\n":         "configure Linux: CONFIG_HZ=100 did not take effect",
		"# CONFIG_A is not set\n": "configure Linux: CONFIG_A cannot be switched off",
	} {
		qt.Assert(t, qt.IsNil(os.WriteFile(want, []byte(text), 0o644)))
		err := checkConfig(have, want)
		if fails == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, fails))
		}
	}
}
