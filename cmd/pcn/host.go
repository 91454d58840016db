// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
)

// hostFile is where packages put the configuration.
const hostFile = "/etc/pcn/host.yaml"

func newHost() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Run congestion controls, NP and RP on this host",
		Long: `Register congestion controls and attach notification and reaction points on this host, from one file: docs/host.md.
What runs is pinned in /sys/fs/bpf/pcn: it stays when this program ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newHostUp(), newHostDown(), newHostStatus(), newHostServe(), newHostKey(), newCapture())
	return c
}

// hostFlags say what to run, in a file or in themselves.
type hostFlags struct {
	file                      string
	controls, on, rttTo, cgrp []string
	lineRate, rtt             string
}

func (f *hostFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.file, "config", "", "file that says what to run (default "+hostFile+", if no other flag says it)")
	flags.StringSliceVar(&f.controls, "control", nil, "congestion controls to register: "+strings.Join(host.ControlNames(), ", "))
	flags.StringSliceVar(&f.on, "on", nil, "interfaces for NP, with control pcn RP, and where SYNs ask plainly for ECN")
	flags.StringVar(&f.lineRate, "line-rate", "", "rate at which flows start, such as 10Gbps (default: the links' speed)")
	flags.StringVar(&f.rtt, "rtt", "", "largest round trip of the network, such as 50us: the period of CNPs")
	flags.StringSliceVar(&f.rttTo, "rtt-to", nil, "TCP services, HOST:PORT, to measure the round trip to")
	flags.StringSliceVar(&f.cgrp, "cgroup", nil, "cgroups and the control of their new connections, PATH=CONTROL")
	c.MarkFlagsMutuallyExclusive("rtt", "rtt-to")
	for _, name := range []string{"control", "on", "line-rate", "rtt", "rtt-to", "cgroup"} {
		c.MarkFlagsMutuallyExclusive("config", name)
	}
}

// given says whether the flags say what to run.
func (f *hostFlags) given() bool {
	return len(f.controls)+len(f.on)+len(f.cgrp)+len(f.rttTo) > 0 || f.lineRate+f.rtt != ""
}

// configuration is what to run.
func (f *hostFlags) configuration() (*host.Config, error) {
	if !f.given() {
		if f.file == "" {
			f.file = hostFile
		}
		return host.Load(f.file)
	}
	c, err := f.fromFlags()
	if err != nil {
		return nil, usageError{err}
	}
	if err := c.Check("flags"); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func (f *hostFlags) fromFlags() (*host.Config, error) {
	c := &host.Config{RTTTo: f.rttTo}
	for _, name := range f.controls {
		if err := c.Controls.Add(name); err != nil {
			return nil, fmt.Errorf("--control: %w", err)
		}
	}
	if len(f.on) > 0 {
		c.NP = &host.NP{Interfaces: f.on}
		if c.HearsCNPs() {
			c.RP = &host.RP{Interfaces: f.on}
		}
	}
	for _, g := range f.cgrp {
		path, control, _ := strings.Cut(g, "=")
		c.Cgroups = append(c.Cgroups, host.Cgroup{Path: path, Control: control})
	}
	var err error
	if f.lineRate != "" {
		if c.LineRate, err = config.ParseRate(f.lineRate); err != nil {
			return nil, fmt.Errorf("--line-rate: %w", err)
		}
	}
	if f.rtt != "" {
		if c.RTT, err = config.ParseDuration(f.rtt); err != nil {
			return nil, fmt.Errorf("--rtt: %w", err)
		}
	}
	return c, nil
}

func newHostUp() *cobra.Command {
	var f hostFlags
	c := &cobra.Command{
		Use:   "up",
		Short: "Make this host run what a file or flags say",
		Long: `Register, attach, change and remove what it takes for this host to run what the file says, or the flags. What runs
already is changed in place, and connections live on. If anything fails, the host is as it was.`,
		Example: `  pcn host up                                          what /etc/pcn/host.yaml says
  pcn host up --control pcn --on eth0 --rtt 50us       without a file
  pcn host up --control pcn --on eth0 --rtt-to 10.0.0.2:22`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.configuration()
			if err != nil {
				return err
			}
			changes, err := host.New().Up(cmd.Context(), c)
			if err != nil {
				return err
			}
			return printChanges(cmd.OutOrStdout(), changes)
		},
	}
	f.add(c)
	return c
}

func newHostDown() *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Remove all that pcn host up left, and leave the host as it was",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			h := host.New()
			s, err := h.Status(cmd.Context(), nil)
			if err != nil {
				return err
			}
			changes, err := h.Down(cmd.Context())
			if err != nil {
				return err
			}
			for _, one := range s.Components {
				if one.Name == "control_"+s.Default {
					fmt.Fprintf(cmd.ErrOrStderr(), "net.ipv4.tcp_congestion_control is %s: new connections use it until you set another\n", s.Default)
				}
			}
			return printChanges(cmd.OutOrStdout(), changes)
		},
	}
}

func printChanges(w io.Writer, changes []host.Change) error {
	t := newTable(w)
	for _, one := range changes {
		fmt.Fprintf(t, "%s\t%s\n", one.What, one.Component)
	}
	return t.Flush()
}

func newHostStatus() *cobra.Command {
	var (
		f      hostFlags
		asJSON bool
	)
	c := &cobra.Command{
		Use:   "status",
		Short: "Say what runs on this host, and what differs from the file or the flags",
		Long: `Say what runs, where, with which parameters, and what it counted. If there is a configuration, given or in
/etc/pcn/host.yaml, say what differs from it. Exits with 1 if anything differs or is broken.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.configured()
			if err != nil {
				return err
			}
			s, err := host.New().Status(cmd.Context(), c)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), s)
			} else {
				err = printStatus(cmd.OutOrStdout(), s)
			}
			if err == nil && !s.OK() {
				err = exitCode(exitError)
			}
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// configured is the configuration that is given or installed; nil if there is none.
func (f *hostFlags) configured() (*host.Config, error) {
	if f.file == "" && !f.given() {
		if _, err := os.Stat(hostFile); err != nil {
			return nil, nil
		}
	}
	return f.configuration()
}

func printJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	return e.Encode(v)
}

// printLine prints JSON on one line.
func printLine(w io.Writer, v any) error { return json.NewEncoder(w).Encode(v) }

func printStatus(w io.Writer, s *host.Status) error {
	if len(s.Components) == 0 {
		fmt.Fprintln(w, "nothing of pcn runs on this host")
	}
	for _, c := range s.Components {
		fmt.Fprintf(w, "%s  %s\n", c.Name, strings.Join(c.Where, ", "))
		for _, p := range c.Problems {
			fmt.Fprintf(w, "  PROBLEM: %s\n", p)
		}
		t := newTable(w)
		for _, one := range c.Settings {
			fmt.Fprintf(t, "  %s\t%s\n", one.Key, one.Value)
		}
		for _, name := range slices.Sorted(maps.Keys(c.Counts)) {
			fmt.Fprintf(t, "  %s\t%d\n", name, c.Counts[name])
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "default congestion control of this network namespace: %s\n", s.Default)
	for _, d := range s.Differences {
		fmt.Fprintf(w, "DIFFERS: %s\n", d)
	}
	return nil
}
