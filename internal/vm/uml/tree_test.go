// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// writeTree writes files into a new folder.
func writeTree(t *testing.T, files map[string]string) string {
	t.Helper()
	tree := t.TempDir()
	for name, text := range files {
		path := filepath.Join(tree, name)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(path), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(text), 0o644)))
	}
	return tree
}

var someEdits = []edit{{"net/a.c", `int a;`, "long a;"}}

// A second call writes only what has changed, so make compiles only that. What has gone goes, and
// what make left stays.
func TestSyncTree(t *testing.T) {
	source := writeTree(t, map[string]string{
		"net/a.c": "int a;\n", "net/b.c": "int b;\n", "gone.c": "", "sound/x.c": "unused",
	})
	qt.Assert(t, qt.IsNil(os.Symlink("net", filepath.Join(source, "link"))))
	tree := t.TempDir()
	sync := func() {
		t.Helper()
		qt.Assert(t, qt.IsNil(syncTree(t.Context(), source, tree, someEdits)))
	}
	read := func(name string) string {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(tree, name))
		qt.Assert(t, qt.IsNil(err))
		return string(text)
	}
	sync()
	qt.Check(t, qt.Equals(read("net/a.c"), "long a;\n"))
	qt.Check(t, qt.Equals(read("link/b.c"), "int b;\n"))
	_, err := os.Stat(filepath.Join(tree, "sound/x.c"))
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))

	object := filepath.Join(tree, "net/a.o")
	qt.Assert(t, qt.IsNil(os.WriteFile(object, nil, 0o644)))
	past := time.Unix(1e9, 0)
	for _, name := range []string{"net/a.c", "net/b.c"} {
		qt.Assert(t, qt.IsNil(os.Chtimes(filepath.Join(tree, name), past, past)))
	}
	b := filepath.Join(source, "net/b.c")
	qt.Assert(t, qt.IsNil(os.WriteFile(b, []byte("int c;\n"), 0o644)))
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(source, "gone.c"))))
	sync()
	qt.Check(t, qt.Equals(read("net/b.c"), "int c;\n"))
	for name, isOld := range map[string]bool{"net/a.c": true, "net/b.c": false} {
		info, err := os.Stat(filepath.Join(tree, name))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(info.ModTime().Equal(past), isOld), qt.Commentf("%s", name))
	}
	_, err = os.Stat(filepath.Join(tree, "gone.c"))
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
	_, err = os.Stat(object)
	qt.Check(t, qt.IsNil(err))
}

// In git, files that are ignored are not copied, changes that are not committed are.
func TestSyncTreeOfGit(t *testing.T) {
	source := writeTree(t, map[string]string{
		"net/a.c": "int a;\n", ".gitignore": "*.o\n", "net/a.o": "object", "removed.c": "",
	})
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@b.c", "commit", "-qm", "one"},
	} {
		out, err := exec.Command("git", append([]string{"-C", source}, args...)...).CombinedOutput()
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", out))
	}
	commit, err := gitCommit(t.Context(), source)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(regexp.MustCompile(`^[0-9a-f]{40}$`).MatchString(commit)))

	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(source, "removed.c"))))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(source, "new.c"), nil, 0o644)))
	names, err := sourceFiles(t.Context(), source)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(names, []string{".gitignore", "net/a.c", "new.c"}))
	changed, err := gitCommit(t.Context(), source)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(changed, commit+"+changes"))
}

func TestSyncTreeErrors(t *testing.T) {
	for _, test := range []struct {
		files map[string]string
		fails string
	}{
		{map[string]string{"net/b.c": ""}, `.*net/a\.c is not there: this version .*`},
		{map[string]string{"net/a.c": "char a;"}, `.*net/a\.c: "int a;" matches 0 times.*`},
		{
			map[string]string{"net/a.c": "int a;", ".config": ""},
			`.*has been configured: run make mrproper.*`,
		},
	} {
		source := writeTree(t, test.files)
		err := syncTree(t.Context(), source, t.TempDir(), someEdits)
		qt.Check(t, qt.ErrorMatches(err, test.fails))
	}
}

func TestLinuxVersion(t *testing.T) {
	const head = "# SPDX-License-Identifier: GPL-2.0\nVERSION = 7\nPATCHLEVEL = 3\nSUBLEVEL = 0\n"
	for text, want := range map[string]string{
		head + "EXTRAVERSION = -rc2\nNAME = A\n": "7.3.0-rc2",
		head + "EXTRAVERSION =\n":                "7.3.0",
		head:                                     "",
		"all:\n":                                 "",
	} {
		got, err := linuxVersion(writeTree(t, map[string]string{"Makefile": text}))
		qt.Check(t, qt.Equals(got, want))
		qt.Check(t, qt.Equals(err == nil, want != ""))
	}
	_, err := linuxVersion(t.TempDir())
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}
