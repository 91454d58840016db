// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/binary"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing/fstest"
)

// ResultDir is the guest's folder whose files the host gets.
const ResultDir = "/result"

// The answer travels over a serial line: magic, exit code, length, a gzipped tar of ResultDir, and its SHA-256.
var answerMagic = [4]byte{'P', 'C', 'N', '1'}

type answerHeader struct {
	Magic    [4]byte
	ExitCode uint32
	Length   uint64
}

const maxAnswer = 1 << 32

// writeAnswer sends the exit code and the files of dir.
func writeAnswer(w io.Writer, exitCode int, dir string) error {
	var archive bytes.Buffer
	if err := pack(&archive, dir); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	var b bytes.Buffer
	// a bytes.Buffer takes everything
	_ = binary.Write(&b, binary.LittleEndian, answerHeader{answerMagic, uint32(exitCode), uint64(archive.Len())})
	sum := sha256.Sum256(archive.Bytes())
	b.Write(archive.Bytes())
	b.Write(sum[:])
	if _, err := w.Write(b.Bytes()); err != nil {
		return fmt.Errorf("send the answer: %w", err)
	}
	return nil
}

// pack writes the files of dir, in the order of their names and without times.
func pack(w io.Writer, dir string) error {
	z := gzip.NewWriter(w)
	t := tar.NewWriter(z)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		data, err := os.ReadFile(name)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(dir, name)
		if err != nil {
			return err
		}
		if err := t.WriteHeader(&tar.Header{Name: rel, Mode: 0o644, Size: int64(len(data))}); err != nil {
			return err
		}
		_, err = t.Write(data)
		return err
	})
	if err != nil {
		return err
	}
	if err := t.Close(); err != nil {
		return err
	}
	return z.Close()
}

// readAnswer reads what writeAnswer sent. The error wraps errNoAnswer if it is not all there.
func readAnswer(r io.Reader) (exitCode int, archive []byte, err error) {
	var h answerHeader
	if err := binary.Read(r, binary.LittleEndian, &h); err != nil {
		return 0, nil, errNoAnswer
	}
	if h.Magic != answerMagic || h.Length > maxAnswer {
		return 0, nil, fmt.Errorf("%w that can be read", errNoAnswer)
	}
	var body bytes.Buffer
	if n, err := io.CopyN(&body, r, int64(h.Length)); err != nil {
		return 0, nil, fmt.Errorf("%w that is whole: %d of %d bytes came", errNoAnswer, n, h.Length)
	}
	var sum [sha256.Size]byte
	if _, err := io.ReadFull(r, sum[:]); err != nil || sum != sha256.Sum256(body.Bytes()) {
		return 0, nil, fmt.Errorf("%w that is whole: its checksum is wrong", errNoAnswer)
	}
	return int(h.ExitCode), body.Bytes(), nil
}

// FS is the guest's ResultDir.
func (r Result) FS() (fs.FS, error) {
	z, err := gzip.NewReader(bytes.NewReader(r.archive))
	if err != nil {
		return nil, fmt.Errorf("unpack the guest's files: %w", err)
	}
	files := fstest.MapFS{}
	for t := tar.NewReader(z); ; {
		h, err := t.Next()
		if err == io.EOF {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the guest's files: %w", err)
		}
		data, err := io.ReadAll(t)
		if err != nil {
			return nil, fmt.Errorf("unpack %s: %w", h.Name, err)
		}
		files[h.Name] = &fstest.MapFile{Data: data, Mode: fs.FileMode(h.Mode)}
	}
}
