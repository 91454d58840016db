// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config"
)

func TestReadFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("12345"), 0o600)))
	data, err := config.ReadFile(path, 5)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(data), "12345"))
	_, err = config.ReadFile(path, 4)
	qt.Check(t, qt.ErrorMatches(err, ".*/file is longer than 4B: want a shorter file"))
	_, err = config.ReadFile("/dev/zero", 1000)
	qt.Check(t, qt.ErrorMatches(err, "/dev/zero is longer than 1KB: want a shorter file"))
	data, err = config.ReadFile("/proc/self/stat", 4096) // it says that its size is 0
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.HasLen(data, 0)))
	_, err = config.ReadFile(filepath.Dir(path), 1000)
	qt.Check(t, qt.ErrorMatches(err, "read .*: is a directory"))
	_, err = config.ReadFile(path+"2", 1000)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))
}

// Text begins behind a byte order mark, which what is no text keeps.
func TestReadText(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("\ufeffa\ufeffb"), 0o600)))
	text, err := config.ReadText(path, 100)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(text), "a\ufeffb"))
	data, err := config.ReadFile(path, 100)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(data), "\ufeffa\ufeffb"))
}

// A pipe that nobody writes to is refused; what a shell hands over as one is read.
func TestReadPipe(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pipe")
	qt.Assert(t, qt.IsNil(syscall.Mkfifo(path, 0o600)))
	_, err := config.ReadFile(path, 10)
	qt.Check(t, qt.ErrorMatches(err, ".*/pipe is a pipe, and nothing came out of it: want a file"))
	r, w, err := os.Pipe()
	qt.Assert(t, qt.IsNil(err))
	defer r.Close()
	go func() {
		time.Sleep(10 * time.Millisecond) // what writes it takes its time
		_, _ = w.WriteString("text")
		w.Close()
	}()
	data, err := config.ReadFile(fmt.Sprintf("/proc/self/fd/%d", r.Fd()), 10)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(data), "text"))
}
