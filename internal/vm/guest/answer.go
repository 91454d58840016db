// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"
)

// ResultDir is the guest's folder whose files the host receives.
const ResultDir = "/result"

// The answer is a header, and at answerArchive a tar of ResultDir. It is in memory that QEMU and
// the guest share, which is 180 times as fast as a serial port, or in a file of the host's.
const (
	AnswerBytes   = 256 << 20
	answerArchive = 4096
)

// ErrNoAnswer reports that the answer is missing or incomplete.
var ErrNoAnswer = errors.New("the microVM ended without an answer")

var answerMagic = [4]byte{'P', 'C', 'N', '1'}

// answerHeader is written last: without it there is no answer.
type answerHeader struct {
	Magic    [4]byte
	ExitCode uint32
	Length   uint64 // of the archive, in bytes
	Checksum uint32 // CRC-32C of the archive
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)

// writeAnswer puts the exit code and the files of dir into the shared memory.
func writeAnswer(memory []byte, exitCode int, dir string) error {
	into := bytes.NewBuffer(memory[answerArchive:answerArchive])
	return packAnswer(memory, into, len(memory)-answerArchive, exitCode, dir)
}

// packAnswer packs the files of dir into at most most bytes, and then the header.
func packAnswer(head []byte, archive *bytes.Buffer, most, exitCode int, dir string) error {
	sum := crc32.New(castagnoli)
	if err := pack(io.MultiWriter(&limited{archive, most}, sum), dir); err != nil {
		return fmt.Errorf("pack %s: %w", dir, err)
	}
	h := answerHeader{answerMagic, uint32(exitCode), uint64(archive.Len()), sum.Sum32()}
	if _, err := binary.Encode(head, binary.LittleEndian, h); err != nil {
		return fmt.Errorf("encode the answer's header: %w", err)
	}
	return nil
}

// limited writes as long as there is room.
type limited struct {
	to   *bytes.Buffer
	left int
}

func (l *limited) Write(b []byte) (int, error) {
	if len(b) > l.left {
		return 0, fmt.Errorf("results are larger than %d MiB: shorten the run, or record less",
			AnswerBytes>>20)
	}
	l.left -= len(b)
	return l.to.Write(b)
}

// pack writes the files of dir, sorted by name and without times.
func pack(w io.Writer, dir string) error {
	t := tar.NewWriter(w)
	err := filepath.WalkDir(dir, func(name string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		return packFile(t, dir, name)
	})
	if err != nil {
		return err
	}
	return t.Close()
}

func packFile(t *tar.Writer, dir, name string) error {
	rel, err := filepath.Rel(dir, name)
	if err != nil {
		return err
	}
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return err
	}
	return packEntry(t, rel, info.Mode().Perm(), info.Size(), f)
}

// packEntry adds a file of size bytes to an archive. It has no time: equal files make equal
// archives.
func packEntry(t *tar.Writer, name string, mode fs.FileMode, size int64, from io.Reader) error {
	h := &tar.Header{Name: name, Mode: int64(mode), Size: size, ModTime: time.Unix(0, 0)}
	if err := t.WriteHeader(h); err != nil {
		return err
	}
	_, err := io.Copy(t, from)
	return err
}

// ReadAnswer returns the program's exit code and an archive of its files, for [Files]. The error
// wraps [ErrNoAnswer] if the answer is missing or incomplete.
func ReadAnswer(memory io.ReaderAt) (exitCode int, archive []byte, err error) {
	var h answerHeader
	head := io.NewSectionReader(memory, 0, answerArchive)
	if err := binary.Read(head, binary.LittleEndian, &h); err != nil || h.Magic != answerMagic {
		return 0, nil, ErrNoAnswer
	}
	if h.Length > AnswerBytes-answerArchive {
		return 0, nil, fmt.Errorf("%w that is whole: %d bytes are more than it can hold",
			ErrNoAnswer, h.Length)
	}
	archive, err = io.ReadAll(io.NewSectionReader(memory, answerArchive, int64(h.Length)))
	if err != nil {
		return 0, nil, fmt.Errorf("read the guest's answer: %w", err)
	}
	if uint64(len(archive)) < h.Length {
		return 0, nil, fmt.Errorf("%w that is whole: %d of %d bytes came",
			ErrNoAnswer, len(archive), h.Length)
	}
	if crc32.Checksum(archive, castagnoli) != h.Checksum {
		return 0, nil, fmt.Errorf("%w that is whole: its checksum is wrong", ErrNoAnswer)
	}
	return int(int32(h.ExitCode)), archive, nil
}

// Files returns the files of an answer's archive by their paths below [ResultDir].
func Files(archive []byte) (map[string][]byte, error) {
	files := map[string][]byte{}
	for t := tar.NewReader(bytes.NewReader(archive)); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return files, nil
		}
		if err != nil {
			return nil, fmt.Errorf("unpack the guest's files: %w", err)
		}
		if !fs.ValidPath(h.Name) {
			return nil, fmt.Errorf("unpack the guest's files: %q is not a path below %s",
				h.Name, ResultDir)
		}
		if files[h.Name], err = io.ReadAll(t); err != nil {
			return nil, fmt.Errorf("unpack %s: %w", h.Name, err)
		}
	}
}
