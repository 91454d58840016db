// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
)

func newHostDoctor() *cobra.Command {
	var (
		f            hostFlags
		asJSON       bool
		peer, listen string
		load         time.Duration
	)
	c := &cobra.Command{
		Use:   "doctor",
		Short: "Check this host and the path to another, and say what to do",
		Long: `Check the kernel, rights, clocks, interfaces (with PFC and DSCP), network namespaces
and flows of this host, and what runs against the configuration. With --peer, check the path to
another host: whether ECN gets there and back, and whether the host there answers marked packets
with CNPs. For that, connect to a TCP service there and send it some hundred bytes that carry CE, as
if a switch had marked them.

Each line is one check: ok, warn (it works, but worse, or could not be looked at) or fail (it does
not work). Nothing is changed.

Exit codes: 0 no check failed, 1 a check failed, 2 wrong usage.`,
		Example: `  pcn host doctor
  pcn host doctor --listen                       on one host, until ctrl-c
  pcn host doctor --peer 10.0.0.2                on the other
  pcn host doctor --peer 10.0.0.2 --load 2s      and fill the path, to see whether it marks
  pcn host doctor --peer 10.0.0.2:22             any TCP service will do, but shows less`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if cmd.Flags().Changed("listen") {
				return doctor.Listen(cmd.Context(), listen, func(a net.Addr) {
					fmt.Fprintf(cmd.ErrOrStderr(), "listening on %s, TCP and UDP\n", a)
				})
			}
			if load < 0 || load > 0 && peer == "" {
				return usageError{fmt.Errorf(
					"invalid --load %s: want a time above 0, and --peer", load)}
			}
			config, err := f.loadIfAny(cmd.Context())
			if err != nil {
				return err
			}
			h := host.New()
			found := doctor.Run(cmd.Context(), h, config)
			if peer != "" {
				o := doctor.PeerOptions{Address: withPort(peer), Load: load}
				found = append(found, doctor.ProbePeer(cmd.Context(), h, o)...)
			}
			return tellChecks(cmd.OutOrStdout(), found, asJSON)
		},
	}
	f.add(c)
	flags := c.Flags()
	flags.BoolVar(&asJSON, "json", false, "print JSON")
	flags.StringVar(&peer, "peer", "",
		fmt.Sprintf("HOST or HOST:PORT to probe; without a port: %d", doctor.Port))
	flags.DurationVar(&load, "load", 0,
		"how long to fill the path to --peer, to see whether it marks")
	flags.StringVar(&listen, "listen", "",
		"answer other hosts' --peer on this address, until ctrl-c")
	flags.Lookup("listen").NoOptDefVal = ":" + strconv.Itoa(doctor.Port)
	c.MarkFlagsMutuallyExclusive("peer", "listen")
	return inNamespace(c)
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(address, strconv.Itoa(doctor.Port))
}

// tellChecks prints the checks, and fails if one of them failed.
func tellChecks(w io.Writer, checks []doctor.Check, asJSON bool) error {
	printed := printChecks
	if asJSON {
		printed = func(w io.Writer, checks []doctor.Check) error { return printJSON(w, checks) }
	}
	if err := printed(w, checks); err != nil {
		return err
	}
	if doctor.Failed(checks) {
		return exitCode(exitError)
	}
	return nil
}

// printChecks prints a line for each check.
func printChecks(w io.Writer, checks []doctor.Check) error {
	for _, c := range checks {
		fmt.Fprintf(w, "%-4s  %s: %s", c.Level, c.Name, c.Is)
		if c.Want != "" {
			fmt.Fprintf(w, "; want %s", c.Want)
		}
		if c.Do != "" {
			fmt.Fprintf(w, "; do: %s", c.Do)
		}
		if _, err := fmt.Fprintln(w); err != nil {
			return err
		}
	}
	return nil
}

func newHostSelfTest() *cobra.Command {
	var (
		asJSON bool
		length time.Duration
	)
	c := &cobra.Command{
		Use:   "selftest",
		Short: "Try PCN between network namespaces of its own, and remove all of it",
		Long: `Make two network namespaces and a router between them that marks, load a congestion
control of a name of its own, RP and NP, send with two flows, and see marks, CNPs and a fair share.
What runs on this host is left alone. Everything goes when the command ends, also if it is
interrupted or killed.

Exit codes: 0 all well, 1 a check failed.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if length < time.Second {
				return usageError{fmt.Errorf("invalid --time %s: want 1s or more", length)}
			}
			return tellChecks(cmd.OutOrStdout(), doctor.SelfTest(cmd.Context(), length), asJSON)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().DurationVar(&length, "time", 4*time.Second, "how long to send")
	return c
}
