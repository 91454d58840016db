// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
)

func newHostSwitch() *cobra.Command {
	c := &cobra.Command{
		Use:   "switch",
		Short: "Make interfaces of a router or hypervisor mark as switch ports do",
		Long: `Mark packets that leave by interfaces of this machine, as the ports of a switch do,
where no switch marks: between virtual machines, or in a testbed with a Linux router. See pcn docs
testbed.

Ports belong to a network namespace. They are pinned beside what pcn host up sets up, which neither
adds nor removes them. pcn host status and pcn host serve show them too, and pcn host down removes
them too.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newSwitchUp(), newSwitchDown(), newSwitchStatus())
	return c
}

// switchFlags are the parameters of a switch port.
type switchFlags struct {
	least, most, drop, probability string
	npecn                          bool
	rate, buffer                   string
}

func (f *switchFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.least, "min", "",
		"WRED: queue up to which no packet is marked, such as 30KB")
	flags.StringVar(&f.most, "max", "",
		"WRED: queue above which every packet is marked (default: --min)")
	flags.StringVar(&f.probability, "probability", "1",
		"WRED: probability of a mark at --max; it grows from 0 at --min")
	flags.StringVar(&f.drop, "drop", "",
		"WRED: queue from which packets that are not ECN-capable are dropped; 0B: never "+
			"(default: 1.5 times --min)")
	flags.BoolVar(&f.npecn, "npecn", false,
		"mark by NP-ECN: a packet that leaves others waiting (needs CONFIG_NET_SCH_BPF)")
	flags.StringVar(&f.rate, "rate", "",
		"NP-ECN: rate of the port, a little below the interface's, such as 9.5Gbps")
	flags.StringVar(&f.buffer, "buffer", "", "NP-ECN: longest queue (default 1MB)")
	for _, name := range []string{"min", "max", "probability", "drop"} {
		c.MarkFlagsMutuallyExclusive("npecn", name)
		for _, other := range []string{"rate", "buffer"} {
			c.MarkFlagsMutuallyExclusive(name, other)
		}
	}
}

// ports returns the ports that the flags describe.
func (f *switchFlags) ports(interfaces []string) ([]host.SwitchPort, error) {
	port := host.SwitchPort{}
	var err error
	if f.npecn {
		port.NPECN, err = f.toNPECN()
	} else {
		port.WRED, err = f.toWRED()
	}
	if err != nil {
		return nil, err
	}
	var ports []host.SwitchPort
	for i, name := range interfaces {
		if slices.Contains(interfaces[:i], name) {
			return nil, fmt.Errorf("interface %s is given twice: keep one", name)
		}
		port.Interface = name
		ports = append(ports, port)
	}
	return ports, nil
}

func (f *switchFlags) toNPECN() (*host.NPECN, error) {
	n := &host.NPECN{}
	if f.rate == "" {
		return nil, errors.New("--npecn needs --rate: a little below the interface's, " +
			"such as --rate 9.5Gbps")
	}
	return n, errors.Join(parseFlag("rate", f.rate, config.ParseRate, &n.Rate),
		parseFlag("buffer", f.buffer, config.ParseBytes, &n.Buffer))
}

func (f *switchFlags) toWRED() (*host.WRED, error) {
	if f.least == "" {
		return nil, errors.New("want --min, the queue where marking begins, such as --min 30KB; " +
			"or --npecn and --rate")
	}
	w := &host.WRED{}
	if err := parseFlag("min", f.least, config.ParseBytes, &w.KMin); err != nil {
		return nil, err
	}
	w.KMax, w.K = w.KMin, w.KMin+w.KMin/2
	return w, errors.Join(parseFlag("max", f.most, config.ParseBytes, &w.KMax),
		parseFlag("drop", f.drop, config.ParseBytes, &w.K),
		parseFlag("probability", f.probability, config.ParseRatio, &w.PMax))
}

// parseFlag parses a flag's value, unless it is empty.
func parseFlag[T any](name, text string, parse func(string) (T, error), into *T) error {
	if text == "" {
		return nil
	}
	v, err := parse(text)
	if err != nil {
		return fmt.Errorf("--%s: %w", name, err)
	}
	*into = v
	return nil
}

func newSwitchUp() *cobra.Command {
	var f switchFlags
	c := &cobra.Command{
		Use:   "up INTERFACE...",
		Short: "Mark what leaves by these interfaces, or change how",
		Long: `Mark what leaves by these interfaces, or change how. Other ports stay. If any step
fails, pcn restores the previous state.

WRED (--min) marks by the queue that a packet finds: the backlog of the interface's root qdisc,
without the packet itself. That qdisc must keep a queue, such as HTB or TBF, at a rate a little
below the link's, so that packets wait there and not in the device.

NP-ECN (--npecn) marks a packet that leaves others waiting behind it. It has a queue and a rate of
its own, in a pair of veths in front of the interface: pcnsw and the interface's index. The root
qdisc of the interface stays as it is. There is no PFC: what the buffer does not hold is dropped.`,
		Example: `  tc qdisc replace dev eth1 root tbf rate 950mbit burst 64kb limit 1mb
  pcn host switch up eth1 --min 30KB --max 90KB --probability 0.2
  pcn host switch up eth1 --npecn --rate 950Mbps`,
		Args: cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			ports, err := f.ports(args)
			if err != nil {
				return usageError{err}
			}
			changes, err := host.New().SwitchUp(cmd.Context(), ports)
			if err != nil {
				return err
			}
			return printChanges(cmd.OutOrStdout(), changes)
		},
	}
	f.add(c)
	return inNamespace(c)
}

func newSwitchDown() *cobra.Command {
	return inNamespace(&cobra.Command{
		Use:   "down [INTERFACE...]",
		Short: "Stop marking at these interfaces, or at all",
		Args:  cobra.ArbitraryArgs,
		Long: `Stop marking at these interfaces, or at all. What waits in the queue of an NP-ECN
port is dropped. Root qdiscs of interfaces stay as they are.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			changes, err := host.New().SwitchDown(cmd.Context(), args...)
			if err != nil {
				return err
			}
			return printChanges(cmd.OutOrStdout(), changes)
		},
	})
}

func newSwitchStatus() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "status [INTERFACE...]",
		Short: "Show the parameters, queue and counters of switch ports",
		Args:  cobra.ArbitraryArgs,
		Long: `Show the parameters, queue and counters of switch ports. Exits with 1 if one of them
does not mark.`,
		RunE: func(cmd *cobra.Command, args []string) error {
			ports, err := host.New().SwitchStatus(args...)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), ports)
			} else {
				err = printPorts(cmd.OutOrStdout(), ports)
			}
			broken := func(p host.SwitchPortStatus) bool { return !p.OK() }
			if err == nil && slices.ContainsFunc(ports, broken) {
				err = exitCode(exitError)
			}
			return err
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return inNamespace(c)
}

func printPorts(w io.Writer, ports []host.SwitchPortStatus) error {
	if len(ports) == 0 {
		fmt.Fprintln(w, "no interface of this host is a switch port")
	}
	for _, p := range ports {
		fmt.Fprintln(w, p.Interface)
		for _, problem := range p.Problems {
			fmt.Fprintf(w, "  PROBLEM: %s\n", problem)
		}
		t := newTable(w)
		for _, setting := range p.Settings {
			if setting.Key != "interfaces" {
				fmt.Fprintf(t, "  %s\t%s\n", setting.Key, setting.Value)
			}
		}
		fmt.Fprintf(t, "  queue now\t%s, of %s\n", config.Bytes(p.QueueBytes), p.Qdisc)
		for _, name := range slices.Sorted(maps.Keys(p.Counts)) {
			fmt.Fprintf(t, "  %s\t%d\n", name, p.Counts[name])
		}
		if err := t.Flush(); err != nil {
			return err
		}
		if p.Counts[host.Superpackets] > 0 {
			fmt.Fprintln(w, "  superpackets are several packets marked as one: turn off GRO where "+
				"they come in\n  (ethtool -K IN gro off), and TSO and GSO of senders on this "+
				"machine")
		}
	}
	return nil
}
