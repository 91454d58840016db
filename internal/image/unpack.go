// SPDX-License-Identifier: Apache-2.0

//go:build !js

package image

import (
	"archive/tar"
	"crypto/sha256"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// unpackOnce unpacks the layers to a folder that does not exist yet: whole, or not at all.
func (m *manifest) unpackOnce(from source, root string) error {
	if _, err := os.Stat(root); err == nil {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(root), 0o700); err != nil {
		return fmt.Errorf("make a folder for images: %w", err)
	}
	part, err := os.MkdirTemp(filepath.Dir(root), "part-")
	if err != nil {
		return fmt.Errorf("make a folder for the image: %w", err)
	}
	defer func() { _ = os.RemoveAll(part) }() // if it is still there
	if err := m.unpack(from, part); err != nil {
		return err
	}
	if err := os.Chmod(part, 0o755); err != nil {
		return err
	}
	err = os.Rename(part, root)
	if _, there := os.Stat(root); there == nil {
		return nil // another has unpacked it meanwhile
	}
	return err
}

func (m *manifest) unpack(from source, to string) error {
	root, err := os.OpenRoot(to)
	if err != nil {
		return err
	}
	defer root.Close()
	u := &unpacker{root: root, left: maxBytes, entries: maxEntries}
	for i, layer := range m.layers {
		if err := u.layer(from, layer, m.config.RootFS.DiffIDs[i]); err != nil {
			return fmt.Errorf("layer %d (%s): %w", i+1, layer, missing(err))
		}
	}
	return nil
}

// unpacker writes layers one over the other. All it does is below root: [os.Root] refuses the rest.
type unpacker struct {
	root          *os.Root
	left, entries int64
}

// layer unpacks a layer: first what it removes of those below, then what it adds.
func (u *unpacker) layer(from source, name, diffID string) error {
	if err := u.each(from, name, diffID, u.remove); err != nil {
		return err
	}
	return u.each(from, name, diffID, u.add)
}

// each calls do for each entry of a layer, whose hash must be diffID.
func (u *unpacker) each(
	from source, name, diffID string, do func(*tar.Header, io.Reader) error,
) error {
	file, err := from.open(name)
	if err != nil {
		return err
	}
	defer file.Close()
	plain, _, err := uncompressed(file)
	if err != nil {
		return err
	}
	defer plain.Close()
	hash := sha256.New()
	whole := io.TeeReader(io.LimitReader(plain, maxBytes), hash)
	entries := tar.NewReader(whole)
	for n := int64(0); ; n++ {
		h, err := entries.Next()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("it is no tar archive, or broken: %w", err)
		}
		if n == u.entries {
			return fmt.Errorf("more than %d files", u.entries)
		}
		if err := do(h, entries); err != nil {
			return fmt.Errorf("%q: %w", h.Name, err)
		}
	}
	if _, err := io.Copy(io.Discard, whole); err != nil { // what is behind the archive's end
		return err
	}
	if digest := fmt.Sprintf("sha256:%x", hash.Sum(nil)); digest != diffID {
		return fmt.Errorf("its content has hash %s: want %s", digest, diffID)
	}
	return nil
}

// Whiteouts of the specification.
const (
	whiteout = ".wh."
	opaque   = ".wh..wh..opq"
)

// remove removes what a whiteout names, of the layers below.
func (u *unpacker) remove(h *tar.Header, _ io.Reader) error {
	dir, base := path.Split(path.Clean(h.Name))
	hidden, ok := strings.CutPrefix(base, whiteout)
	if !ok {
		return nil
	}
	dir, err := u.resolve(dir)
	if err != nil {
		return err
	}
	if base != opaque {
		if hidden == "" || hidden == "." || hidden == ".." {
			return errors.New("a whiteout without a name")
		}
		return u.root.RemoveAll(path.Join(dir, hidden))
	}
	folder, err := u.root.Open(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	names, err := folder.Readdirnames(-1)
	if err := errors.Join(err, folder.Close()); err != nil {
		return err
	}
	for _, name := range names {
		if err := u.root.RemoveAll(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}

// add writes an entry in place of what is there.
func (u *unpacker) add(h *tar.Header, content io.Reader) error {
	name, err := clean(h.Name)
	if err != nil || name == "." || strings.HasPrefix(path.Base(name), whiteout) {
		return err
	}
	dir, err := u.resolve(path.Dir(name))
	if err != nil {
		return err
	}
	if err := u.root.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	at, mode := path.Join(dir, path.Base(name)), fs.FileMode(h.Mode)&fs.ModePerm
	if h.Typeflag == tar.TypeDir {
		return u.addFolder(at, mode)
	}
	if err := u.root.RemoveAll(at); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return u.addFile(at, mode, content)
	case tar.TypeSymlink:
		return u.root.Symlink(h.Linkname, at)
	case tar.TypeLink:
		return u.addLink(h.Linkname, at)
	case tar.TypeChar, tar.TypeBlock, tar.TypeFifo:
		if strings.HasPrefix(name, "dev/") {
			return nil // hosts have a /dev of their own
		}
		return errors.New("it is a device or a pipe: an image may have them in /dev only")
	}
	return fmt.Errorf("it is of an unknown kind, %q", h.Typeflag)
}

func (u *unpacker) addFolder(at string, mode fs.FileMode) error {
	if info, err := u.root.Lstat(at); err == nil && !info.IsDir() {
		if err := u.root.RemoveAll(at); err != nil {
			return err
		}
	}
	if err := u.root.MkdirAll(at, 0o755); err != nil {
		return err
	}
	return u.root.Chmod(at, mode|0o700) // or it could not be unpacked to, nor removed
}

func (u *unpacker) addFile(at string, mode fs.FileMode, content io.Reader) error {
	file, err := u.root.OpenFile(at, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	n, err := io.Copy(file, io.LimitReader(content, u.left+1))
	if u.left -= n; err == nil && u.left < 0 {
		err = fmt.Errorf("the image has more than %d bytes", int64(maxBytes))
	}
	return errors.Join(err, file.Chmod(mode|0o400), file.Close()) // the machine must read it
}

func (u *unpacker) addLink(to, at string) error {
	to, err := clean(to)
	if err != nil {
		return err
	}
	dir, err := u.resolve(path.Dir(to))
	if err != nil {
		return err
	}
	return u.root.Link(path.Join(dir, path.Base(to)), at)
}

// clean returns a name of an archive relative to the root.
func clean(name string) (string, error) {
	if slices.Contains(strings.Split(name, "/"), "..") {
		return "", errors.New("its path has \"..\", which leads out of the image")
	}
	return path.Clean(strings.TrimLeft(name, "/")), nil
}

// resolve follows the links in the path of a folder as a program would whose root it is. The rest
// of a path that is not there stays as it is.
func (u *unpacker) resolve(dir string) (string, error) {
	const mostLinks = 40
	dir, err := clean(dir)
	if err != nil {
		return "", err
	}
	done, todo := ".", strings.Split(dir, "/")
	for links := 0; len(todo) > 0; {
		part := todo[0]
		todo = todo[1:]
		switch part {
		case "", ".":
			continue
		case "..":
			done = path.Dir(done) // of the root it is the root
			continue
		}
		at := path.Join(done, part)
		info, err := u.root.Lstat(at)
		if err != nil || info.Mode()&fs.ModeSymlink == 0 {
			done = at
			continue
		}
		if links++; links > mostLinks {
			return "", fmt.Errorf("more than %d links in its path", mostLinks)
		}
		link, err := u.root.Readlink(at)
		if err != nil {
			return "", err
		}
		if path.IsAbs(link) {
			done = "."
		}
		todo = append(strings.Split(link, "/"), todo...)
	}
	return done, nil
}
