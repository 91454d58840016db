// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file of the guest, beside the program.
type File struct {
	Path string // absolute
	Mode uint64 // permissions
	Data []byte
}

// A job for a paused guest is in the memory that the answer will be in: a header with handoverMagic
// and the length, and at answerArchive a tar of the job's files, among them [JobFile].
var handoverMagic = [4]byte{'P', 'C', 'N', 'J'}

// errNoJob says that the machine was resumed without a job.
var errNoJob = errors.New("take the job: the host left none in the shared memory")

// WriteJob puts a job and its files into the memory that a guest shares, which is all zero. The
// guest takes them when it is resumed.
func WriteJob(memory io.WriterAt, j Job, files []File) error {
	text, err := json.Marshal(j)
	if err != nil {
		return fmt.Errorf("encode the guest's job: %w", err)
	}
	var b bytes.Buffer
	t := tar.NewWriter(&b)
	for _, f := range append(files[:len(files):len(files)], File{JobFile, 0o644, text}) {
		err := packEntry(t, f.Path, fs.FileMode(f.Mode), int64(len(f.Data)),
			bytes.NewReader(f.Data))
		if err != nil {
			return fmt.Errorf("pack %s for the guest: %w", f.Path, err)
		}
	}
	if err := t.Close(); err != nil {
		return fmt.Errorf("pack the guest's job: %w", err)
	}
	if b.Len() > AnswerBytes-answerArchive {
		return fmt.Errorf("the job's files are larger than %d MiB", AnswerBytes>>20)
	}
	head := make([]byte, binary.Size(answerHeader{}))
	h := answerHeader{Magic: handoverMagic, Length: uint64(b.Len())}
	if _, err := binary.Encode(head, binary.LittleEndian, h); err != nil {
		return fmt.Errorf("encode the job's header: %w", err)
	}
	_, err1 := memory.WriteAt(head, 0)
	_, err2 := memory.WriteAt(b.Bytes(), answerArchive)
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("hand the job to the guest: %w", err)
	}
	return nil
}

// takeJob writes the files of a job below root. The job itself is then in [JobFile].
func takeJob(memory []byte, root string) error {
	var h answerHeader
	if _, err := binary.Decode(memory, binary.LittleEndian, &h); err != nil {
		return fmt.Errorf("decode the job's header: %w", err)
	}
	if h.Magic != handoverMagic || h.Length > uint64(len(memory)-answerArchive) {
		return errNoJob
	}
	for t := tar.NewReader(bytes.NewReader(memory[answerArchive:][:h.Length])); ; {
		h, err := t.Next()
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("unpack the job: %w", err)
		}
		if err := takeFile(filepath.Join(root, h.Name), fs.FileMode(h.Mode), t); err != nil {
			return fmt.Errorf("unpack the job: %w", err)
		}
	}
}

func takeFile(path string, mode fs.FileMode, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	// a file of the initramfs gets the new mode, too
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, mode)
	if err != nil {
		return err
	}
	if _, err := io.Copy(f, r); err != nil {
		f.Close()
		return err
	}
	return f.Close()
}
