// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/host"
)

func newHostAdopt() *cobra.Command {
	var a host.Adoption
	var addresses, ports []string
	var back bool
	c := &cobra.Command{
		Use:   "adopt",
		Short: "Give connections that exist already a congestion control",
		Long: `Give established TCP connections of a network namespace a congestion control: all of
them, or those of a cgroup, with a port or with an address, of either end. With several of these a
connection has to fit each. The kernel keeps what each connection had until pcn host adopt --back
or pcn host down.

ECN belongs to the handshake. A connection without it has the window of CUBIC under a control that
needs ECN: net.ipv4.tcp_ecn=1 asks for it.`,
		Example: `  pcn host adopt --control pcn
  pcn host adopt --control pcn --cgroup /sys/fs/cgroup/storage.slice --port 9000
  pcn host adopt --control ldcp --address 10.0.0.0/8
  pcn host adopt --back`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			var err error
			if a.Addresses, a.Ports, err = parseEnds(addresses, ports); err != nil {
				return usageError{err}
			}
			if a.Control == "" && !back {
				return usageError{errors.New("--control is missing: want one that runs, " +
					"such as pcn")}
			}
			var done host.Adopted
			if back {
				done, err = host.New().GiveBack(cmd.Context())
			} else {
				done, err = host.New().Adopt(cmd.Context(), a)
			}
			if err != nil {
				return err
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(),
				"%d connections changed, %d refused by the kernel\n", done.Changed, done.Refused)
			return err
		},
	}
	flags := c.Flags()
	flags.StringVar(&a.Control, "control", "", "the congestion control")
	flags.StringVar(&a.Cgroup, "cgroup", "", "folder of a cgroup, with all below it")
	flags.StringSliceVar(&addresses, "address", nil, "addresses or prefixes of either end")
	flags.StringSliceVar(&ports, "port", nil, "ports of either end")
	flags.BoolVar(&back, "back", false, "give all adopted connections back what they had")
	for _, name := range []string{"control", "cgroup", "address", "port"} {
		c.MarkFlagsMutuallyExclusive("back", name)
	}
	return inNamespace(c)
}

// parseEnds reads prefixes, or addresses, and ports.
func parseEnds(addresses, ports []string) (prefixes []netip.Prefix, numbers []uint16, err error) {
	for _, text := range addresses {
		p, err := netip.ParsePrefix(text)
		if addr, bad := netip.ParseAddr(text); bad == nil {
			p, err = netip.PrefixFrom(addr, addr.BitLen()), nil
		}
		if err != nil {
			return nil, nil, fmt.Errorf("--address: invalid prefix %q: want one such as "+
				"10.0.0.0/8 or 2001:db8::1", text)
		}
		prefixes = append(prefixes, p)
	}
	for _, text := range ports {
		n, err := strconv.ParseUint(text, 10, 16)
		if err != nil || n == 0 {
			return nil, nil, fmt.Errorf("--port: invalid port %q: want 1 to 65535", text)
		}
		numbers = append(numbers, uint16(n))
	}
	return prefixes, numbers, nil
}
