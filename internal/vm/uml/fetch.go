// SPDX-License-Identifier: Apache-2.0

package uml

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/vm/debian"
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
	// in place of older versions
	err = debian.Replace(filepath.Dir(kept), func(_, fresh string) error {
		return os.WriteFile(filepath.Join(fresh, filepath.Base(kept)), data, 0o644)
	})
	if err != nil {
		return nil, fmt.Errorf("keep Linux's source: %w", err)
	}
	return data, nil
}
