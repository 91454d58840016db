// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"io"
	"os"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestNamedFiles: QEMU finds the files by name, this process reads what it writes, nothing stays.
func TestNamedFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	s, err := namedFiles(func(w io.Writer) error {
		_, err := io.WriteString(w, "archive")
		return err
	})
	qt.Assert(t, qt.IsNil(err))
	archive, err := os.ReadFile(s.paths.initramfs)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(archive), "archive"))
	// as QEMU's file chardev opens its file
	qt.Assert(t, qt.IsNil(os.WriteFile(s.paths.console, []byte("up\n"), 0)))
	said := make([]byte, 3)
	_, err = s.console.ReadAt(said, 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(said), "up\n"))
	s.close()
	left, err := os.ReadDir(os.Getenv("TMPDIR"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(left, 0))

	t.Setenv("TMPDIR", "/nonexistent")
	_, err = namedFiles(func(io.Writer) error { return nil })
	qt.Check(t, qt.ErrorMatches(err, "make a folder for the microVM's files: .*no such file.*"))
}
