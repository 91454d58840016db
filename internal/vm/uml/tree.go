// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// syncTree makes tree the source with our changes. A file that is the same already is not written,
// so make compiles what changed.
func syncTree(ctx context.Context, source, tree string, edits []edit) error {
	names, err := sourceFiles(ctx, source)
	if err != nil {
		return err
	}
	changes := map[string][]edit{}
	for _, e := range edits {
		changes[e.file] = append(changes[e.file], e)
	}
	copied := filepath.Join(tree, copiedFile)
	if err := removeGone(tree, copied, names); err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return err
		}
		if err := syncFile(source, tree, name, changes[name]); err != nil {
			return fmt.Errorf("copy Linux's source: %w", err)
		}
		delete(changes, name)
	}
	for name := range changes {
		return fmt.Errorf("change Linux for user mode: %s is not there: this version of Linux is "+
			"not supported", name)
	}
	return os.WriteFile(copied, []byte(strings.Join(names, "\x00")), 0o644)
}

// copiedFile has the names of the files that were copied into a tree.
const copiedFile = ".pcn-copied"

// removeGone removes the files that an earlier call copied and that the source no longer has.
func removeGone(tree, copied string, names []string) error {
	before, err := os.ReadFile(copied)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("read what was copied: %w", err)
	}
	for name := range strings.SplitSeq(string(before), "\x00") {
		if _, found := slices.BinarySearch(names, name); found || name == "" {
			continue
		}
		if err := os.Remove(filepath.Join(tree, name)); err != nil &&
			!errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("remove a file that the source has no longer: %w", err)
		}
	}
	return nil
}

// syncFile copies one file of the source with its changes.
func syncFile(source, tree, name string, changes []edit) error {
	from, to := filepath.Join(source, name), filepath.Join(tree, name)
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		return syncLink(from, to)
	}
	text, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	for _, e := range changes {
		if text, err = e.change(text); err != nil {
			return fmt.Errorf("%s: %w", e.file, err)
		}
	}
	if have, err := os.ReadFile(to); err == nil && bytes.Equal(have, text) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.Remove(to); err != nil && !errors.Is(err, fs.ErrNotExist) { // its mode may differ
		return err
	}
	return os.WriteFile(to, text, info.Mode().Perm()|0o200)
}

func syncLink(from, to string) error {
	target, err := os.Readlink(from)
	if err != nil {
		return err
	}
	if have, err := os.Readlink(to); err == nil && have == target {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if err := os.RemoveAll(to); err != nil {
		return err
	}
	return os.Symlink(target, to)
}

// sourceFiles returns the names of the source's files that the build reads, sorted. In git they are
// those that it knows or would add.
func sourceFiles(ctx context.Context, source string) ([]string, error) {
	var names []string
	var err error
	if _, statErr := os.Stat(filepath.Join(source, ".git")); statErr == nil {
		names, err = gitFiles(ctx, source)
	} else {
		names, err = walkFiles(source)
	}
	if err != nil {
		return nil, fmt.Errorf("list Linux's source: %w", err)
	}
	skip := regexp.MustCompile(unusedExpression())
	names = slices.DeleteFunc(names, skip.MatchString)
	slices.Sort(names)
	return names, nil
}

func gitFiles(ctx context.Context, source string) ([]string, error) {
	out, err := Git(ctx, source, nil, "ls-files", "-z", "--cached", "--others",
		"--exclude-standard", "--deduplicate")
	if err != nil {
		return nil, err
	}
	var names []string
	for name := range strings.SplitSeq(strings.TrimSuffix(out, "\x00"), "\x00") {
		if _, err := os.Lstat(filepath.Join(source, name)); err == nil { // not one that was removed
			names = append(names, name)
		}
	}
	return names, nil
}

// Git runs git in a tree of Linux, with env added to the environment, and returns what it prints.
func Git(ctx context.Context, tree string, env []string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", append([]string{"-C", tree}, args...)...)
	cmd.Env = append(os.Environ(), env...)
	var complaints bytes.Buffer
	cmd.Stderr = &complaints
	out, err := cmd.Output()
	if err != nil {
		return "", fmt.Errorf("git %s in %s: %w: %s", args[0], tree, err,
			bytes.TrimSpace(complaints.Bytes()))
	}
	return string(out), nil
}

// walkFiles lists a folder that is not in git. What make leaves must not be in it.
func walkFiles(source string) (names []string, err error) {
	if _, err := os.Stat(filepath.Join(source, ".config")); err == nil {
		return nil, fmt.Errorf("%s has been configured: run make mrproper there, or give a tree "+
			"in git", source)
	}
	err = filepath.WalkDir(source, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		name, err := filepath.Rel(source, path)
		names = append(names, name)
		return err
	})
	return names, err
}

// unusedExpression is a regular expression of the names that [unused] has, as tar reads those: a
// star stands for slashes, too.
func unusedExpression() string {
	patterns := make([]string, len(unused))
	for i, p := range unused {
		p = strings.NewReplacer(".", `\.`, "*", ".*", "[!", "[^").Replace(p)
		patterns[i] = p
	}
	return "^(" + strings.Join(patterns, "|") + ")$"
}

// gitCommit returns the commit of a folder in git, with "+changes" if files differ from it. It is
// empty outside of git.
func gitCommit(ctx context.Context, source string) (string, error) {
	if _, err := os.Stat(filepath.Join(source, ".git")); err != nil {
		return "", nil
	}
	commit, err := Git(ctx, source, nil, "rev-parse", "HEAD")
	if err != nil {
		return "", err
	}
	changes, err := Git(ctx, source, nil, "status", "--porcelain")
	if err != nil {
		return "", err
	}
	if commit = strings.TrimSpace(commit); changes != "" {
		commit += "+changes"
	}
	return commit, nil
}
