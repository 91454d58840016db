// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/tc"
)

// maxKeyFile is the most that is read of a key's file, in bytes.
const maxKeyFile = 4000

var keyStates = map[string]tc.KeyState{
	"none": tc.KeyNone, "accept": tc.KeyAccepted, "sign": tc.KeySigns,
}

func newHostKey() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "key SLOT none|accept|sign",
		Short: "Set or remove the key of signed CNPs in slot 0 or 1",
		Long: `Set or remove a key of this host's notification point (NP) and reaction point (RP).

  accept  RP accepts CNPs signed with this key
  sign    RP accepts them, and NP signs its CNPs with this key
  none    remove the key

The key file holds 32 hexadecimal digits. The key stays until pcn host down.`,
		Example: `  Change keys without losing a CNP, one step after the other on all hosts:
  pcn host key 1 accept --file new.key
  pcn host key 1 sign --file new.key
  pcn host key 0 none`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			slot, err := strconv.Atoi(args[0])
			keyState, ok := keyStates[args[1]]
			if err != nil || slot < 0 || slot >= cnp.Keys || !ok {
				return usageError{fmt.Errorf("invalid key arguments %q %q: "+
					"want slot 0 or 1, and none, accept or sign", args[0], args[1])}
			}
			var key cnp.Key
			if keyState != tc.KeyNone {
				if key, err = readKey(file); err != nil {
					return err
				}
			}
			components, err := host.New().SetKey(slot, key, keyState)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %d of %s: %s\n",
				slot, strings.Join(components, " and "), args[1])
			return err
		},
	}
	c.Flags().StringVar(&file, "file", "",
		"file with the key, which only its owner may read")
	return inNamespace(c)
}

// useKeys signs with the key of a file in slot 0, and accepts it. It makes the file if there is
// none.
func useKeys(w io.Writer, path string) error {
	made, err := makeKey(path)
	if err != nil {
		return err
	}
	key, err := readKey(path)
	if err != nil {
		return err
	}
	if _, err := host.New().SetKey(0, key, tc.KeySigns); err != nil {
		return err
	}
	if made {
		_, err = fmt.Fprintf(w,
			"made %s: copy it to all hosts, and run pcn host up --keys %s there\n", path, path)
	}
	return err
}

// makeKey writes a new key, unless the file is there.
func makeKey(path string) (made bool, err error) {
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

func readKey(path string) (cnp.Key, error) {
	var key cnp.Key
	if path == "" {
		return key, usageError{fmt.Errorf("--file is missing: make a key with " +
			"umask 077; head -c 16 /dev/urandom | xxd -p > new.key")}
	}
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
	if user, is := host.OwnedByAnother(info); is && info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s belongs to user %d, who may know the key: make a new key, with "+
			"umask 077 (chown root %s keeps this one)", path, user, path)
	}
	return config.ReadAtMost(f, maxKeyFile)
}
