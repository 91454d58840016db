// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/tc"
)

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
				if key, err = readKeyFile(file); err != nil {
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

// readKeyFile reads the key of the flag --file.
func readKeyFile(path string) (cnp.Key, error) {
	if path == "" {
		return cnp.Key{}, usageError{errors.New("--file is missing: make a key with " +
			"umask 077; head -c 16 /dev/urandom | xxd -p > new.key")}
	}
	return host.ReadKey(path)
}

// makeKey makes the key of the flag --keys, unless it is there, and says so.
func makeKey(w io.Writer, path string) error {
	made, err := host.MakeKey(path)
	if err == nil && made {
		_, err = fmt.Fprintf(w,
			"made %s: copy it to all hosts, and run pcn host up --keys %s there\n", path, path)
	}
	return err
}
