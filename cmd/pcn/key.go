// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/hex"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/tc"
)

// keyStates are what a key can be for.
var keyStates = map[string]tc.KeyState{"none": tc.KeyNone, "accept": tc.KeyAccepted, "sign": tc.KeySigns}

func newHostKey() *cobra.Command {
	var file string
	c := &cobra.Command{
		Use:   "key SLOT none|accept|sign",
		Short: "Set a key of signed CNPs, in slot 0 or 1, of this host's NP and RP",
		Long: `Set a key: RP takes CNPs that it signed (accept), and NP signs with it too (sign); or remove it (none). The key is read
from a file: 32 hexadecimal digits. It stays until pcn host down.`,
		Example: `  pcn host key 1 accept --file new.key    first on all hosts
  pcn host key 1 sign --file new.key      then on all hosts
  pcn host key 0 none                     and then, on all hosts, the old one goes`,
		Args: cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			slot, err := strconv.Atoi(args[0])
			keyState, ok := keyStates[args[1]]
			if err != nil || slot < 0 || slot >= cnp.Keys || !ok {
				return usageError{fmt.Errorf("key %s %s: want slot 0 or 1, and none, accept or sign", args[0], args[1])}
			}
			var key cnp.Key
			if keyState != tc.KeyNone {
				if key, err = readKey(file); err != nil {
					return err
				}
			}
			of, err := host.New().SetKey(slot, key, keyState)
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "key %d of %s: %s\n", slot, strings.Join(of, " and "), args[1])
			return err
		},
	}
	c.Flags().StringVar(&file, "file", "", "file with the key")
	return c
}

// readKey reads a key. Its file should be root's alone.
func readKey(path string) (cnp.Key, error) {
	var key cnp.Key
	if path == "" {
		return key, usageError{fmt.Errorf("--file is missing: head -c 16 /dev/urandom | xxd -p > new.key makes a key")}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		return key, fmt.Errorf("read the key: %w", err)
	}
	b, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil || len(b) != len(key) {
		return key, fmt.Errorf("read the key: %s does not hold %d hexadecimal digits", path, 2*len(key))
	}
	copy(key[:], b)
	return key, nil
}
