// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
)

// paths are the names under which QEMU opens the files that it shares with this process.
type paths struct {
	initramfs, console, answer string
	memory, devices            string // of a microVM that is prepared or resumed
}

// firstInherited is the descriptor of the first file that QEMU inherits, of [exec.Cmd.ExtraFiles].
const firstInherited = 3

// sharedFiles are the files through which this process and QEMU talk.
type sharedFiles struct {
	paths           paths
	console, answer *os.File
	inherited       []*os.File // QEMU has them as file descriptors, from firstInherited
	borrowed        []*os.File // the same, behind these; they are not closed with them
	dir             string     // folder to remove; "" is none
}

// inherit lets QEMU inherit a file, and returns the name under which it opens it.
func (s *sharedFiles) inherit(f *os.File) string {
	return inheritedName(f, s.descriptor(f))
}

// descriptor lets QEMU inherit a file, and returns its descriptor there.
func (s *sharedFiles) descriptor(f *os.File) int {
	s.borrowed = append(s.borrowed, f)
	return firstInherited + len(s.inherited) + len(s.borrowed) - 1
}

// inheritState lets QEMU open a state's memory, and read its devices.
func (s *sharedFiles) inheritState(state *machineState) error {
	if _, err := state.file.Seek(state.memory, io.SeekStart); err != nil {
		return fmt.Errorf("find the devices in the microVM's state: %w", err)
	}
	fd := s.descriptor(state.file)
	s.paths.devices = "fd:" + strconv.Itoa(fd)
	s.paths.memory = inheritedName(state.file, fd)
	return nil
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

// namedFiles returns files in a temporary folder, for systems without files in memory.
func namedFiles(initramfs []byte) (s *sharedFiles, err error) {
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
	written := os.WriteFile(s.paths.initramfs, initramfs, 0o600)
	var consoleErr, answerErr error
	s.console, consoleErr = os.OpenFile(s.paths.console, os.O_RDWR|os.O_CREATE, 0o600)
	s.answer, answerErr = os.OpenFile(s.paths.answer, os.O_RDWR|os.O_CREATE, 0o600)
	if err := errors.Join(written, consoleErr, answerErr); err != nil {
		s.close()
		return nil, fmt.Errorf("make the microVM's files: %w", err)
	}
	return s, nil
}
