// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
)

// openTestRegistry claims the machine until the test ends.
func openTestRegistry(t *testing.T) *registry {
	t.Helper()
	r, err := openRegistry()
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { r.lock.Release() })
	return r
}

// makeNamespace makes one that a lab does not know of.
func makeNamespace(t *testing.T, name string) {
	t.Helper()
	n, err := newNamespace(name)
	qt.Assert(t, qt.IsNil(err))
	n.nl.Close()
	n.requests.Close()
	qt.Assert(t, qt.IsNil(n.handle.Close()))
	t.Cleanup(func() { _ = netns.DeleteNamed(name) })
}

func exists(t *testing.T, path string) bool {
	t.Helper()
	_, err := os.Lstat(path)
	if !errors.Is(err, fs.ErrNotExist) {
		qt.Assert(t, qt.IsNil(err))
	}
	return err == nil
}

func namespaceExists(t *testing.T, name string) bool {
	t.Helper()
	return exists(t, filepath.Join(netnsDir, name))
}

// TestKilledLabIsCleanedUp: a lab is killed after it has made some of its namespaces, and in the
// middle of one.
func TestKilledLabIsCleanedUp(t *testing.T) {
	killed := openTestRegistry(t)
	makeNamespace(t, "foreign")
	qt.Assert(t, qt.IsNil(killed.claim([]string{"A", "B", "C", "D"})))
	makeNamespace(t, "A")
	makeNamespace(t, "B")
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(netnsDir, "C"), nil, 0o444))) // nothing mounted on it yet
	qt.Assert(t, qt.IsNil(killed.lock.Release()))                                  // all that a killed process gives back

	r := openTestRegistry(t)
	for name, want := range map[string]bool{"A": false, "B": false, "C": false, "D": false, "foreign": true} {
		qt.Check(t, qt.Equals(namespaceExists(t, name), want), qt.Commentf(name))
	}
	qt.Check(t, qt.IsFalse(exists(t, r.list)))
	qt.Check(t, qt.IsNil(r.claim([]string{"A"})))
	qt.Check(t, qt.IsNil(r.clean()))
}

// TestForeignNamespacesAreRefused, and neither touched now nor by the next lab.
func TestForeignNamespacesAreRefused(t *testing.T) {
	makeNamespace(t, "S1")
	r := openTestRegistry(t)
	qt.Check(t, qt.ErrorMatches(r.claim([]string{"S0", "S1"}),
		`network namespace S1 exists and is not a lab's: remove it \(ip netns del S1\), or rename the node`))
	qt.Check(t, qt.IsFalse(exists(t, r.list)))
	qt.Assert(t, qt.IsNil(r.clean()))
	qt.Assert(t, qt.IsNil(r.unlock()))
	openTestRegistry(t)
	qt.Check(t, qt.IsTrue(namespaceExists(t, "S1")))
}

func TestTwoLabsAreRefused(t *testing.T) {
	r := openTestRegistry(t)
	_, err := openRegistry()
	qt.Check(t, qt.ErrorMatches(err, `another lab runs on this kernel: wait until it ends \(fuser /run/pcn/lab.lock shows it\)`))
	qt.Assert(t, qt.IsNil(r.unlock()))
	openTestRegistry(t)
}

// TestUncleanableIsSaid: what can't be removed is named, and the machine is given back.
func TestUncleanableIsSaid(t *testing.T) {
	r := openTestRegistry(t)
	dir := filepath.Join(netnsDir, "E")
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(dir, "full"), 0o755)))
	t.Cleanup(func() { os.RemoveAll(dir) })
	qt.Assert(t, qt.IsNil(os.WriteFile(r.list, []byte("E\n"), 0o600)))
	qt.Assert(t, qt.IsNil(r.unlock()))
	for range 2 { // also the second time: the lock is free, the list is kept
		_, err := openRegistry()
		qt.Check(t, qt.ErrorMatches(err, `remove what an earlier lab left: delete network namespace E: remove /run/netns/E: directory not empty`))
	}
	qt.Assert(t, qt.IsNil(os.RemoveAll(dir)))
	openTestRegistry(t)
}

// TestKilledLabsSettings: what a killed lab had changed of the machine is as it was again, also if
// it was killed in between.
func TestKilledLabsSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "setting")
	other := filepath.Join(t.TempDir(), "other")
	for _, f := range []string{file, other} {
		qt.Assert(t, qt.IsNil(os.WriteFile(f, []byte("1\t2\n"), 0o644)))
	}
	setting := func() string {
		b, err := os.ReadFile(file)
		qt.Assert(t, qt.IsNil(err))
		return string(b)
	}
	killed := openTestRegistry(t)
	qt.Assert(t, qt.IsNil(killed.change(file, "3 4")))
	qt.Assert(t, qt.IsNil(killed.change(file, "5 6"))) // what it was is still what it was first
	qt.Assert(t, qt.IsNil(killed.change(other, "7")))
	qt.Assert(t, qt.IsNil(killed.restore(other)))
	qt.Assert(t, qt.IsNil(os.WriteFile(other, []byte("the user's"), 0o644)))
	qt.Check(t, qt.Equals(setting(), "5 6"))
	qt.Assert(t, qt.IsNil(killed.lock.Release()))

	r := openTestRegistry(t)
	qt.Check(t, qt.Equals(setting(), "1\t2\n"))
	left, err := os.ReadFile(other)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(left), "the user's"))
	qt.Check(t, qt.IsFalse(exists(t, r.settings)))
	qt.Check(t, qt.ErrorIs(r.change(filepath.Join(t.TempDir(), "none"), "1"), fs.ErrNotExist))
	qt.Check(t, qt.IsFalse(exists(t, r.settings)))

	qt.Assert(t, qt.IsNil(os.WriteFile(r.settings, []byte("{"), 0o600)))
	qt.Assert(t, qt.IsNil(r.unlock()))
	_, err = openRegistry()
	qt.Check(t, qt.ErrorMatches(err, `remove what an earlier lab left: /run/pcn/lab.settings: unexpected end of JSON input: remove it if no lab runs`))
	qt.Assert(t, qt.IsNil(os.Remove(r.settings)))
}
