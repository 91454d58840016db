// SPDX-License-Identifier: Apache-2.0

package config_test

import (
	"os"
	"path/filepath"
	"testing"

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
