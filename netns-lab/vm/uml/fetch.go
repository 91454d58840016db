// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/netns-lab/vm/debian"
)

// Fetch returns the package of Linux's source. It keeps it in the cache, and takes it from there.
func Fetch(ctx context.Context, f debian.Fetcher, cache string) ([]byte, error) {
	s := Tested()
	kept := filepath.Join(cache, "source", filepath.Base(s.Package.Path))
	if data, err := os.ReadFile(kept); err == nil && s.Package.Verify(data) == nil {
		return data, nil
	}
	files, err := f.Fetch(ctx, debian.Release{
		Snapshot: s.Snapshot, Packages: []debian.Package{s.Package},
	})
	if err != nil {
		return nil, err
	}
	data := files[0].Data
	if err := keep(kept, data); err != nil {
		return nil, fmt.Errorf("keep Linux's source: %w", err)
	}
	return data, nil
}

// keep writes a file under another name until it is whole, and removes its older versions.
func keep(path string, data []byte) error {
	dir := filepath.Dir(path)
	if err := os.RemoveAll(dir); err != nil {
		return err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	part := filepath.Join(dir, ".part")
	if err := os.WriteFile(part, data, 0o644); err != nil {
		return err
	}
	return os.Rename(part, path)
}
