// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
)

// Installed is a kernel in the cache.
type Installed struct {
	Version string
	Dir     string
	SHA256  string // of the list of its files and their hashes, as sha256sum prints it
}

// Install unpacks a kernel from its packages and puts it into the cache, in place of another of the
// same version. It removes what earlier calls left when they were killed, so only one may run at a
// time.
//
// It fails if the kernel's version is that of the tested one, but not its files: what has the name
// of the tested kernel is that kernel.
func Install(cache string, packages []File, tested Release) (Installed, error) {
	k, err := unpack(packages)
	if err != nil {
		return Installed{}, err
	}
	if k.arm64 {
		cache = filepath.Join(cache, ARM64Dir)
	}
	in := Installed{
		Version: k.version, Dir: filepath.Join(cache, k.version), SHA256: digest(k.files),
	}
	if in.Version == tested.Version && in.SHA256 != tested.UnpackedSHA256 {
		return Installed{}, fmt.Errorf("this is not the kernel %s that was tested: it unpacks to "+
			"files with SHA-256 %s, want %s", k.version, in.SHA256, tested.UnpackedSHA256)
	}
	err = Replace(in.Dir, func(_, fresh string) error { return k.write(fresh) })
	if err != nil {
		return Installed{}, fmt.Errorf("write kernel %s to the cache: %w", k.version, err)
	}
	return in, nil
}

func (k *kernel) write(dir string) error {
	if err := os.Mkdir(filepath.Join(dir, ModulesDir), 0o755); err != nil {
		return err
	}
	for name, data := range k.files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// stagingPrefix begins the name of a folder in the cache in which a kernel is being made. A name
// with a dot is no kernel's.
const stagingPrefix = ".setup-"

// Replace makes a folder, in place of one that is there. fill fills it while it is fresh, a folder
// in staging, which no one looks into and which is removed. Replace removes what earlier calls left
// beside dir when they were killed, so only one may run at a time.
func Replace(dir string, fill func(staging, fresh string) error) error {
	cache := filepath.Dir(dir)
	if err := os.MkdirAll(cache, 0o755); err != nil {
		return err
	}
	if err := removeAll(cache, stagingPrefix+"*"); err != nil {
		return err
	}
	staging, err := os.MkdirTemp(cache, stagingPrefix)
	if err != nil {
		return err
	}
	defer os.RemoveAll(staging)
	fresh := filepath.Join(staging, "new")
	if err := os.Mkdir(fresh, 0o755); err != nil {
		return err
	}
	if err := fill(staging, fresh); err != nil {
		return err
	}
	err = os.Rename(dir, filepath.Join(staging, "old"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return os.Rename(fresh, dir)
}

// removeAll removes what matches the pattern in a folder.
func removeAll(dir, pattern string) error {
	old, err := filepath.Glob(filepath.Join(dir, pattern))
	for _, path := range old {
		err = errors.Join(err, os.RemoveAll(path))
	}
	return err
}

// Find returns the kernel of the release in the cache. It fails if one of its files is missing or
// is not as it was unpacked; the error wraps [fs.ErrNotExist] if there is none.
func (r Release) Find(cache string) (Installed, error) {
	dir := filepath.Join(cache, r.Version)
	root := os.DirFS(dir)
	hashes := map[string]string{}
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := root.Open(name)
		if err != nil {
			return err
		}
		defer f.Close()
		h := sha256.New()
		_, err = io.Copy(h, f)
		hashes[name] = hex.EncodeToString(h.Sum(nil))
		return err
	})
	if err != nil {
		return Installed{}, fmt.Errorf("read kernel %s: %w", r.Version, err)
	}
	in := Installed{Version: r.Version, Dir: dir, SHA256: digestOf(hashes)}
	if in.SHA256 != r.UnpackedSHA256 {
		return Installed{}, fmt.Errorf("kernel %s has files with SHA-256 %s: want %s", dir,
			in.SHA256, r.UnpackedSHA256)
	}
	return in, nil
}

// digest returns the hash of files that have these paths.
func digest(files map[string][]byte) string {
	hashes := map[string]string{}
	for name, data := range files {
		sum := sha256.Sum256(data)
		hashes[name] = hex.EncodeToString(sum[:])
	}
	return digestOf(hashes)
}

// digestOf returns the SHA-256 of a list of files' hashes, sorted by their paths.
func digestOf(hashes map[string]string) string {
	list := sha256.New()
	for _, name := range slices.Sorted(maps.Keys(hashes)) {
		fmt.Fprintf(list, "%s  %s\n", hashes[name], name)
	}
	return hex.EncodeToString(list.Sum(nil))
}
