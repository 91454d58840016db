// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/vm/debian"
)

// Kernels are found, listed and removed by their names; one whose build did not end is none.
func TestOwnKernels(t *testing.T) {
	cache := t.TempDir()
	all, err := Owns(cache)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(all, 0))

	for _, name := range []string{"mine", "begun"} {
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(ownDir(cache, name), treeDir), 0o755)))
	}
	image := filepath.Join(ownDir(cache, "mine"), ".linux")
	qt.Assert(t, qt.IsNil(os.WriteFile(image, []byte("kernel"), 0o755)))
	k := Own{Name: "mine", Version: "7.3.4", Source: "/src", Commit: "abc+changes"}
	qt.Assert(t, qt.IsNil(k.publish(ownDir(cache, "mine"), image)))

	found, err := FindOwn(cache, "mine")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(found, k))
	qt.Check(t, qt.Equals(found.Release(), "7.3.4-pcn"))
	all, err = Owns(cache)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(all, []Own{k}))

	for _, name := range []string{"begun", "other", "", "..", "../own/mine"} {
		_, err := FindOwn(cache, name)
		qt.Check(t, qt.ErrorIs(err, os.ErrNotExist), qt.Commentf("%q", name))
	}
	qt.Check(t, qt.IsNil(RemoveOwn(cache, "begun")))
	qt.Check(t, qt.IsNil(RemoveOwn(cache, "mine")))
	qt.Check(t, qt.ErrorIs(RemoveOwn(cache, "mine"), os.ErrNotExist))
	qt.Check(t, qt.ErrorMatches(RemoveOwn(cache, "../own"),
		`invalid kernel name "../own": want .*`))
}

func TestOpenSourceErrors(t *testing.T) {
	dir := t.TempDir()
	text := filepath.Join(dir, "linux.txt")
	broken := filepath.Join(dir, "linux.tar.xz")
	for _, file := range []string{text, broken, filepath.Join(dir, "linux.deb")} {
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte("x"), 0o644)))
	}
	for name, fails := range map[string]string{
		text:                             `.*linux\.txt is no archive that can be read: want .*`,
		broken:                           `unpack Linux: (?s).*`,
		filepath.Join(dir, "linux.deb"):  `.*not a Debian package.*`,
		filepath.Join(dir, "linux-next"): `no Linux at .*: want a folder, an archive .*`,
		"mainline":                       `no Linux at mainline: want a folder, an archive .*`,
	} {
		_, _, err := OpenSource(t.Context(), debian.Fetcher{}, name, t.TempDir())
		qt.Check(t, qt.ErrorMatches(err, fails), qt.Commentf("%s", name))
	}
}

// A new name begins with a copy of the tree of a kernel of its version, or its series, and recipe,
// with the times of its files, by which make goes. A tree that is there stays as it is.
func TestStartFrom(t *testing.T) {
	cache := t.TempDir()
	at := time.Unix(1e9, 0)
	for name, version := range map[string]string{"old": "7.2.12", "new": "7.3.4"} {
		dir := ownDir(cache, name)
		file := filepath.Join(dir, treeDir, "a.o")
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(file), 0o755)))
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(version), 0o644)))
		qt.Assert(t, qt.IsNil(os.Chtimes(file, at, at)))
		image := filepath.Join(dir, ".linux")
		qt.Assert(t, qt.IsNil(os.WriteFile(image, []byte("kernel"), 0o755)))
		k := Own{Name: name, Version: version}
		qt.Assert(t, qt.IsNil(k.publish(dir, image)))
	}
	for _, tc := range []struct{ name, version, want string }{
		{"mine", "7.3.4", "7.3.4"},
		{"older", "7.2.12", "7.2.12"},
		{"newer", "7.3.5", "7.3.4"},
		{"rc", "7.2.0-rc7", "7.2.12"},
		{"other", "7.4.0", ""},
		{"mine", "7.2.12", "7.3.4"},
	} {
		tree := filepath.Join(ownDir(cache, tc.name), treeDir)
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(tree), 0o755)))
		k := Own{Name: tc.name, Version: tc.version}
		qt.Assert(t, qt.IsNil(startFrom(t.Context(), cache, k, tree)))
		text, err := os.ReadFile(filepath.Join(tree, "a.o"))
		if tc.want == "" {
			qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
			continue
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(string(text), tc.want))
		info, err := os.Stat(filepath.Join(tree, "a.o"))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(info.ModTime().Equal(at)))
	}
}

// Linux without qdiscs in BPF, such as 6.12, is refused at once and by its version.
func TestTooOld(t *testing.T) {
	source := t.TempDir()
	makefile := "VERSION = 6\nPATCHLEVEL = 12\nSUBLEVEL = 117\nEXTRAVERSION =\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(source, "Makefile"), []byte(makefile), 0o644)))
	version, err := linuxVersion(source)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.ErrorMatches(checkFits(source, version),
		`linux 6\.12\.117 has no net/sched/bpf_qdisc\.c, which came with 6\.16: .*`))
	qdisc := filepath.Join(source, qdiscFile)
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(qdisc), 0o755)))
	qt.Assert(t, qt.IsNil(os.WriteFile(qdisc, nil, 0o644)))
	qt.Check(t, qt.IsNil(checkFits(source, version)))
}
