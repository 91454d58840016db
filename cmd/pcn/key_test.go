// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
)

func TestReadKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "key")
	const digits = "000102030405060708090a0b0c0d0e0f\n"
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(digits), 0o600)))
	for mode, want := range map[os.FileMode]string{
		0o600: "", 0o400: "",
		0o644: "read the key: .*key has mode 0644, so others than its owner may know the key: .*",
		0o640: ".*has mode 0640.*", 0o620: ".*has mode 0620.*", 0o604: ".*has mode 0604.*",
	} {
		qt.Assert(t, qt.IsNil(os.Chmod(path, mode)))
		key, err := readKey(path)
		if want != "" {
			qt.Check(t, qt.ErrorMatches(err, want))
			continue
		}
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(key[15], 15))
	}
}

// Who owns a file can read it, and give others the right.
func TestKeyOfAnotherUser(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root can give a file to another user")
	}
	path := filepath.Join(t.TempDir(), "key")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte("000102030405060708090a0b0c0d0e0f\n"), 0o600)))
	qt.Assert(t, qt.IsNil(os.Chown(path, 65534, 65534)))
	_, err := readKey(path)
	qt.Check(t, qt.ErrorMatches(err, "read the key: .*/key belongs to user 65534, who may .*"))
}

// A key is made once, for its owner alone, and is used afterwards.
func TestMakeKey(t *testing.T) {
	path := filepath.Join(t.TempDir(), "cnp.key")
	made, err := makeKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(made))
	key, err := readKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Not(qt.Equals(key, cnp.Key{})))
	made, err = makeKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsFalse(made))
	again, err := readKey(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(again, key))
	_, err = makeKey(filepath.Join(path, "not a folder"))
	qt.Check(t, qt.ErrorMatches(err, "make a key: .*"))
}
