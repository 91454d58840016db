// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config/lazy"
)

// Own is a kernel that a user built from a source of their own.
type Own struct {
	Name    string // what --kernel takes
	Version string // of Linux, as the source's Makefile has it
	Source  string // what it was built from: a folder, a file, or a package's name
	Commit  string `yaml:",omitempty"` // of a folder in git, with "+changes" if it has some
	SHA256  string // of the image
	Recipe  string // of our changes, see [Recipe]
	Image   string `yaml:"-"` // its path
}

// Release returns the kernel's release, as uname -r prints it.
func (o Own) Release() string { return o.Version + localVersion }

const (
	ownFile = "kernel.yaml" // an [Own], beside the image
	treeDir = "tree"        // the sources with our changes, and what was compiled of them
)

// ownNames are the names that kernels may have: they become names of folders.
var ownNames = lazy.Regexp(`^[a-zA-Z0-9][a-zA-Z0-9._-]{0,62}$`)

// CheckOwnName fails for a name that a kernel cannot have.
func CheckOwnName(name string) error {
	if !ownNames().MatchString(name) {
		return fmt.Errorf("invalid kernel name %q: want letters, digits, ., _ and -, at most 63, "+
			"a letter or digit first", name)
	}
	return nil
}

func ownFolder(cache string) string { return filepath.Join(cache, "own") }

func ownDir(cache, name string) string { return filepath.Join(ownFolder(cache), name) }

// BuildOwn builds a kernel from a folder with Linux's source, and puts it into the cache under
// k.Name. The folder is only read. What an earlier build of that name compiled is kept where its
// source has not changed. Only one call may run at a time. It needs no root.
func BuildOwn(ctx context.Context, cache, source string, k Own, progress Progress) (Own, error) {
	if err := errors.Join(CheckOwnName(k.Name), Missing()); err != nil {
		return k, err
	}
	var err error
	if k.Version, err = linuxVersion(source); err != nil {
		return k, err
	}
	if err := checkFits(source, k.Version); err != nil {
		return k, err
	}
	dir := ownDir(cache, k.Name)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return k, fmt.Errorf("make the cache's folder: %w", err)
	}
	tree := filepath.Join(dir, treeDir)
	if err := startFrom(ctx, cache, k, tree); err != nil {
		return k, err
	}
	if err := syncTree(ctx, source, tree, edits); err != nil {
		return k, err
	}
	if err := configure(ctx, tree); err != nil {
		return k, err
	}
	if err := compile(ctx, tree, progress); err != nil {
		return k, err
	}
	stripped := filepath.Join(dir, "."+imageFile)
	if err := run(ctx, tree, "strip", "--strip-debug", "-o", stripped, imageFile); err != nil {
		return k, err
	}
	return k, k.publish(dir, stripped)
}

// startFrom gives a kernel that has no tree yet a copy of that of another of its version, or else
// of its series, such as 7.2.12 of 7.2.13, so that only what differs is compiled. Its files keep
// their times, by which make goes.
func startFrom(ctx context.Context, cache string, k Own, tree string) error {
	if _, err := os.Stat(tree); !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	others, err := Owns(cache)
	if err != nil {
		return err
	}
	i := slices.IndexFunc(others, func(o Own) bool {
		return o.Version == k.Version && o.Recipe == Recipe()
	})
	if i < 0 {
		i = slices.IndexFunc(others, func(o Own) bool {
			return series(o.Version) == series(k.Version) && o.Recipe == Recipe()
		})
	}
	if i < 0 {
		return nil
	}
	fresh := tree + ".copy"
	cp := exec.CommandContext(ctx, "cp", "-a", "--reflink=auto",
		filepath.Join(ownDir(cache, others[i].Name), treeDir), fresh)
	if err := os.RemoveAll(fresh); err != nil { // of a call that was killed
		return fmt.Errorf("remove an unfinished copy: %w", err)
	}
	if out, err := cp.CombinedOutput(); err != nil {
		err = fmt.Errorf("copy the tree of kernel %s: %w\n%s", others[i].Name, err, out)
		return errors.Join(err, os.RemoveAll(fresh))
	}
	return os.Rename(fresh, tree)
}

// series returns what versions have in common that differ by fixes only: 7.2 of 7.2.12.
func series(version string) string {
	major, rest, _ := strings.Cut(version, ".")
	minor, _, _ := strings.Cut(rest, ".")
	return major + "." + minor
}

// publish puts a new image in the place of the one before, and says what it is.
func (k *Own) publish(dir, image string) error {
	data, err := os.ReadFile(image)
	if err != nil {
		return fmt.Errorf("read the kernel: %w", err)
	}
	sum := sha256.Sum256(data)
	k.SHA256, k.Recipe = hex.EncodeToString(sum[:]), Recipe()
	k.Image = filepath.Join(dir, imageFile)
	text, err := yaml.Marshal(k)
	if err != nil {
		return fmt.Errorf("describe the kernel: %w", err)
	}
	err = errors.Join(os.WriteFile(filepath.Join(dir, ownFile), text, 0o644),
		os.Rename(image, k.Image))
	if err != nil {
		return fmt.Errorf("put the kernel into the cache: %w", err)
	}
	return nil
}

// FindOwn returns the kernel of a name. The error is [fs.ErrNotExist] if there is none.
func FindOwn(cache, name string) (Own, error) {
	var k Own
	dir := ownDir(cache, name)
	if !ownNames().MatchString(name) {
		return k, fs.ErrNotExist
	}
	text, err := os.ReadFile(filepath.Join(dir, ownFile))
	if err != nil {
		return k, err
	}
	if err := yaml.Unmarshal(text, &k); err != nil {
		return k, fmt.Errorf("read what kernel %s is: %w: remove it with pcn kernel remove", name,
			err)
	}
	k.Name, k.Image = name, filepath.Join(dir, imageFile)
	if _, err := os.Stat(k.Image); err != nil {
		return k, err
	}
	return k, nil
}

// Owns returns all kernels that users built, by name.
func Owns(cache string) ([]Own, error) {
	entries, err := os.ReadDir(ownFolder(cache))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("list kernels: %w", err)
	}
	var all []Own
	for _, e := range entries {
		k, err := FindOwn(cache, e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // its build did not end
		}
		if err != nil {
			return nil, err
		}
		all = append(all, k)
	}
	return all, nil
}

// RemoveOwn removes a kernel and its sources from the cache, also what a stopped build left.
func RemoveOwn(cache, name string) error {
	if err := CheckOwnName(name); err != nil {
		return err
	}
	dir := ownDir(cache, name)
	if _, err := os.Stat(dir); err != nil {
		return err
	}
	if err := os.RemoveAll(dir); err != nil {
		return fmt.Errorf("remove the kernel: %w", err)
	}
	return nil
}

// qdiscFile is Linux's support for qdiscs that are BPF programs.
const qdiscFile = "net/sched/bpf_qdisc.c"

// checkFits fails for a tree of Linux that is too old for the lab, before minutes of work.
func checkFits(source, version string) error {
	_, err := os.Stat(filepath.Join(source, qdiscFile))
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("linux %s has no %s, which came with 6.16: ports of the lab's switches "+
			"and hosts are qdiscs in BPF. Want Linux 7.2 or 7.3", version, qdiscFile)
	}
	return err
}

// versionLines are those of Linux's Makefile that have its version.
var versionLines = lazy.Regexp(`(?m)^VERSION = (\d+)\nPATCHLEVEL = (\d+)\n` +
	`SUBLEVEL = (\d+)\nEXTRAVERSION =[ \t]*(\S*)$`)

// linuxVersion returns the version of a tree of Linux.
func linuxVersion(tree string) (string, error) {
	path := filepath.Join(tree, "Makefile")
	text, err := os.ReadFile(path)
	if err != nil {
		return "", fmt.Errorf("read Linux's version: %w", err)
	}
	m := versionLines().FindSubmatch(text)
	if m == nil {
		return "", fmt.Errorf("%s has no lines VERSION, PATCHLEVEL, SUBLEVEL, EXTRAVERSION: "+
			"want a tree of Linux", path)
	}
	return fmt.Sprintf("%s.%s.%s%s", m[1], m[2], m[3], m[4]), nil
}
