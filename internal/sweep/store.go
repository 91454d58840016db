// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
)

// store is the folder of the cells. It never shows a half-written cell under the cell's ID.
type store struct{ dir string }

// sumsFile has the hash of every other file of a cell, in the format of sha256sum.
const sumsFile = "SHA256SUMS"

func (s store) path(id string) string { return filepath.Join(s.dir, id) }

// temporaryPrefix begins the names of folders of cells that are being written.
const temporaryPrefix = ".cell-"

// clean removes half-written cells. No cell may be being written.
func (s store) clean() error {
	halfWritten, err := filepath.Glob(filepath.Join(s.dir, temporaryPrefix+"*"))
	if err != nil {
		return fmt.Errorf("look for half-written cells: %w", err)
	}
	for _, dir := range halfWritten {
		if err := os.RemoveAll(dir); err != nil {
			return fmt.Errorf("remove half-written cell: %w", err)
		}
	}
	return nil
}

// put writes a cell and replaces an earlier one.
func (s store) put(id string, write func(dir string) error) (err error) {
	if err := os.MkdirAll(s.dir, 0o755); err != nil {
		return fmt.Errorf("create the folder of cells: %w", err)
	}
	dir, err := os.MkdirTemp(s.dir, temporaryPrefix)
	if err != nil {
		return fmt.Errorf("create the folder of a cell: %w", err)
	}
	defer func() {
		if err != nil {
			os.RemoveAll(dir)
		}
	}()
	if err := os.Chmod(dir, 0o755); err != nil {
		return fmt.Errorf("write cell: %w", err)
	}
	if err := write(dir); err != nil {
		return err
	}
	if err := writeSums(dir); err != nil {
		return fmt.Errorf("write cell %s: %w", id, err)
	}
	if err := os.RemoveAll(s.path(id)); err != nil {
		return fmt.Errorf("replace cell: %w", err)
	}
	if err := os.Rename(dir, s.path(id)); err != nil {
		return fmt.Errorf("finish cell: %w", err)
	}
	return nil
}

func writeSums(dir string) error {
	entries, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var text strings.Builder
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&text, "%x  %s\n", sha256.Sum256(data), e.Name())
	}
	return os.WriteFile(filepath.Join(dir, sumsFile), []byte(text.String()), 0o644)
}

// finished reports whether the cell exists and its files have the hashes that put wrote.
func (s store) finished(id string) (bool, error) {
	dir := s.path(id)
	text, err := os.ReadFile(filepath.Join(dir, sumsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("look at cell: %w", err)
	}
	lines := strings.SplitSeq(strings.TrimSuffix(string(text), "\n"), "\n")
	for line := range lines {
		sum, name, ok := strings.Cut(line, "  ")
		if !ok || filepath.Base(name) != name {
			return false, nil
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err != nil {
			return false, fmt.Errorf("look at cell: %w", err)
		}
		if fmt.Sprintf("%x", sha256.Sum256(data)) != sum {
			return false, nil
		}
	}
	return strings.Contains(string(text), "  manifest.json\n"), nil
}
