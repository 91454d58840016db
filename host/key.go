// SPDX-License-Identifier: Apache-2.0

package host

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/tc"
)

// maxKeyFile is the most that is read of a key's file, in bytes.
const maxKeyFile = 4000

// SetKey stores a key for signed CNPs in slot 0 or 1 of those of NP and RP that run, and returns
// their names. It takes effect at once and lasts until Down. docs/security.md has the order in
// which keys rotate without losing a CNP.
func (h *Host) SetKey(slot int, key cnp.Key, keyState tc.KeyState) (done []string, err error) {
	err = h.eachKeyRing(func(name string, ring *tc.KeyRing) error {
		err := ring.Set(slot, key, keyState)
		if err == nil {
			done = append(done, name)
		}
		return err
	})
	if err == nil && len(done) == 0 {
		err = bpffs.CheckMount(h.root)
	}
	if err == nil && len(done) == 0 {
		err = errors.New("neither NP nor RP runs on this host: pcn host up")
	}
	return done, err
}

// key reads the key of the configuration; nil if it names none.
func (c *Config) key() (*cnp.Key, error) {
	if c.Keys == "" {
		return nil, nil
	}
	key, err := ReadKey(c.Keys)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w: make it once, on one host, with pcn host up --keys %s, and "+
			"copy it to all others", err, c.Keys)
	}
	return &key, err
}

// useKey signs with the key of the configuration in slot 0, and accepts it.
func (h *Host) useKey(key *cnp.Key) error {
	if key == nil {
		return nil
	}
	_, err := h.SetKey(0, *key, tc.KeySigns)
	return err
}

// MakeKey writes a new key for signed CNPs into a file that only this user may read, unless the
// file is there.
func MakeKey(path string) (made bool, err error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("make a key: %w", err)
	}
	var key cnp.Key
	_, _ = rand.Read(key[:]) // never fails
	_, err = fmt.Fprintf(f, "%x\n", key)
	return true, errors.Join(err, f.Close())
}

// ReadKey reads a key for signed CNPs: 32 hexadecimal digits, in a file that only its owner may
// read.
func ReadKey(path string) (cnp.Key, error) {
	var key cnp.Key
	text, err := readSecret(path)
	if err != nil {
		return key, fmt.Errorf("read the key: %w", err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(b) != len(key) {
		return key, fmt.Errorf("read the key: invalid content of %s: want %d hexadecimal digits",
			path, 2*len(key))
	}
	copy(key[:], b)
	return key, nil
}

// readSecret reads a file; it fails if others than its owner may read or change it.
func readSecret(path string) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if mode := info.Mode(); mode.IsRegular() && mode.Perm()&0o077 != 0 {
		return nil, fmt.Errorf("%s has mode %04o, so others than its owner may know the key: make "+
			"a new key, with umask 077 (chmod 600 %s keeps this one)", path, mode.Perm(), path)
	}
	if user, is := OwnedByAnother(info); is && info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s belongs to user %d, who may know the key: make a new key, with "+
			"umask 077 (chown root %s keeps this one)", path, user, path)
	}
	return config.ReadAtMost(f, maxKeyFile)
}
