// SPDX-License-Identifier: Apache-2.0

//go:build !js

package image

import (
	"archive/tar"
	"bufio"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"

	"github.com/klauspost/compress/zstd"
)

// source is where an image's files are.
type source interface {
	// open opens a file by its name; [fs.ErrNotExist] if there is none.
	open(name string) (io.ReadCloser, error)
}

// folderSource is a folder, out of which no name leads.
type folderSource struct{ root *os.Root }

func (f folderSource) open(name string) (io.ReadCloser, error) { return f.root.Open(name) }

// archive is a tar archive, not compressed.
type archive struct {
	file    *os.File
	entries map[string]entry
}

// entry is a file of an archive, or a link to one.
type entry struct {
	offset, size int64
	link         string
}

// openArchive opens an archive. A compressed one is uncompressed to a temporary file.
func openArchive(name string) (*archive, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	a := &archive{file: file, entries: map[string]entry{}}
	err = a.uncompress()
	if err == nil {
		err = a.list()
	}
	if err != nil {
		a.close()
		return nil, err
	}
	return a, nil
}

// list finds the archive's files.
func (a *archive) list() error {
	list := tar.NewReader(a.file)
	for {
		h, err := list.Next()
		if errors.Is(err, io.EOF) && len(a.entries) > 0 {
			return nil
		}
		if err != nil {
			return fmt.Errorf("it is no tar archive, or broken: %w", noEOF(err))
		}
		if len(a.entries) == maxEntries {
			return fmt.Errorf("more than %d files", maxEntries)
		}
		offset, err := a.file.Seek(0, io.SeekCurrent)
		if err != nil {
			return err
		}
		e := entry{offset: offset, size: h.Size}
		if h.Typeflag == tar.TypeSymlink { // docker save makes links to equal layers
			e.link = path.Join(path.Dir(path.Clean(h.Name)), h.Linkname)
		} else if h.Typeflag == tar.TypeLink {
			e.link = path.Clean(h.Linkname)
		}
		a.entries[path.Clean(h.Name)] = e
	}
}

// noEOF has an end in the middle say so.
func noEOF(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func (a *archive) close() { _ = a.file.Close() }

// uncompress replaces a compressed file by what it contains.
func (a *archive) uncompress() error {
	plain, compressed, err := uncompressed(a.file)
	if err != nil {
		return err
	}
	defer plain.Close()
	if compressed {
		temporary, err := os.CreateTemp("", "pcn-image-")
		if err != nil {
			return err
		}
		if err := os.Remove(temporary.Name()); err != nil { // it ends with its descriptor
			return errors.Join(err, temporary.Close())
		}
		n, err := io.Copy(temporary, io.LimitReader(plain, maxBytes))
		if err == nil && n == maxBytes {
			err = fmt.Errorf("it is longer than %d bytes", int64(maxBytes))
		}
		if err != nil {
			return errors.Join(fmt.Errorf("uncompress it: %w", err), temporary.Close())
		}
		a.close()
		a.file = temporary
	}
	_, err = a.file.Seek(0, io.SeekStart)
	return err
}

func (a *archive) open(name string) (io.ReadCloser, error) {
	const mostLinks = 8
	name = path.Clean(name)
	for range mostLinks {
		e, ok := a.entries[name]
		if !ok {
			return nil, fs.ErrNotExist
		}
		if e.link == "" {
			return io.NopCloser(io.NewSectionReader(a.file, e.offset, e.size)), nil
		}
		name = e.link
	}
	return nil, fmt.Errorf("more than %d links in a row", mostLinks)
}

// uncompressed returns what a file contains, whatever it is compressed with.
func uncompressed(r io.Reader) (plain io.ReadCloser, compressed bool, err error) {
	b := bufio.NewReader(r)
	magic, err := b.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, false, err
	}
	switch {
	case bytes.HasPrefix(magic, []byte{0x1f, 0x8b}):
		z, err := gzip.NewReader(b)
		return z, true, err
	case bytes.Equal(magic, []byte{0x28, 0xb5, 0x2f, 0xfd}):
		z, err := zstd.NewReader(b, zstd.WithDecoderConcurrency(1))
		if err != nil {
			return nil, true, err
		}
		return z.IOReadCloser(), true, nil
	}
	return io.NopCloser(b), false, nil
}
