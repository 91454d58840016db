// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// paths are the names under which a machine opens the files that it shares with this process.
type paths struct {
	initramfs, console, answer string
}

// firstInherited is the descriptor of the first file that a machine inherits, of
// [exec.Cmd.ExtraFiles].
const firstInherited = 3

// sharedFiles are the files through which this process and a machine talk.
type sharedFiles struct {
	paths           paths
	console, answer *os.File
	inherited       []*os.File // the machine has them as file descriptors, from firstInherited
	dir             string     // folder to remove; "" is none
}

// close closes the files and removes those that have a name.
func (s *sharedFiles) close() {
	for _, f := range append(s.inherited, s.console, s.answer) {
		if f != nil {
			f.Close() // all was read; some are closed already
		}
	}
	if s.dir != "" {
		os.RemoveAll(s.dir)
	}
}

// writeBuffered writes a file in large pieces.
func writeBuffered(f *os.File, write func(io.Writer) error) error {
	const pieceBytes = 1 << 20
	b := bufio.NewWriterSize(f, pieceBytes)
	if err := write(b); err != nil {
		return err
	}
	return b.Flush()
}

// namedFiles returns files in a temporary folder, for systems without files in memory. write writes
// the initramfs.
func namedFiles(write func(io.Writer) error) (s *sharedFiles, err error) {
	dir, err := os.MkdirTemp("", "pcn-vm-")
	if err != nil {
		return nil, fmt.Errorf("make a folder for the microVM's files: %w", err)
	}
	s = &sharedFiles{
		paths: paths{
			initramfs: filepath.Join(dir, "initramfs"), console: filepath.Join(dir, "console"),
			answer: filepath.Join(dir, "answer"),
		},
		dir: dir,
	}
	written := writeFile(s.paths.initramfs, write)
	var consoleErr, answerErr error
	s.console, consoleErr = os.OpenFile(s.paths.console, os.O_RDWR|os.O_CREATE, 0o600)
	s.answer, answerErr = os.OpenFile(s.paths.answer, os.O_RDWR|os.O_CREATE, 0o600)
	if err := errors.Join(written, consoleErr, answerErr); err != nil {
		s.close()
		return nil, fmt.Errorf("make the microVM's files: %w", err)
	}
	return s, nil
}

func writeFile(path string, write func(io.Writer) error) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	return errors.Join(writeBuffered(f, write), f.Close())
}
