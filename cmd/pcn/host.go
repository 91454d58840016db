// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
)

// hostFile is the configuration that packages install and that is used without --config.
const hostFile = "/etc/pcn/host.yaml"

func newHost() *cobra.Command {
	c := &cobra.Command{
		Use:   "host",
		Short: "Run congestion control on this host",
		Long: `Register congestion controls, and attach the notification point (NP) and the
reaction point (RP) to interfaces of this host, from one configuration file: see pcn docs host.
All of it is pinned in /sys/fs/bpf/pcn and stays when this program ends.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	c.AddCommand(newHostUp(), newHostDown(), newHostStatus(), newHostServe(), newHostKey(),
		newHostAdopt(), newHostDoctor(), newHostSelfTest(), newHostSwitch(), newCapture())
	return c
}

// hostFlags name a configuration file or replace one.
type hostFlags struct {
	file                         string
	controls, on, rttTo, cgroups []string
	lineRate, rtt                string
}

func (f *hostFlags) add(c *cobra.Command) {
	flags := c.Flags()
	flags.StringVar(&f.file, "config", "",
		"configuration file (default "+hostFile+", unless other flags configure the host)")
	flags.StringSliceVar(&f.controls, "control", nil,
		"congestion controls to register: "+strings.Join(host.ControlNames(), ", ")+", or files of your own: ./mine.c or ./mine.o")
	flags.StringSliceVar(&f.on, "on", nil,
		"interfaces for NP, for RP if the control is pcn, and for ECN on SYNs")
	flags.StringVar(&f.lineRate, "line-rate", "",
		"rate at which flows start, such as 10Gbps (default: the speed of the links)")
	flags.StringVar(&f.rtt, "rtt", "",
		"largest round trip of the network, such as 50us; CNPs are sent once in this time")
	flags.StringSliceVar(&f.rttTo, "rtt-to", nil,
		"TCP services, HOST:PORT, to measure the round trip to")
	flags.StringSliceVar(&f.cgroups, "cgroup", nil,
		"cgroups and the control of their new connections, PATH=CONTROL")
	c.MarkFlagsMutuallyExclusive("rtt", "rtt-to")
	for _, name := range []string{"control", "on", "line-rate", "rtt", "rtt-to", "cgroup"} {
		c.MarkFlagsMutuallyExclusive("config", name)
	}
}

// replaceFile reports whether the flags configure the host in place of a file.
func (f *hostFlags) replaceFile() bool {
	return len(f.controls)+len(f.on)+len(f.cgroups)+len(f.rttTo) > 0 || f.lineRate+f.rtt != ""
}

// load reads the configuration from the flags or from the file that they name.
func (f *hostFlags) load(ctx context.Context) (*host.Config, error) {
	if !f.replaceFile() {
		f.file = cmp.Or(f.file, hostFile)
		c, err := host.Load(f.file)
		if errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("%w (hint: write that file, by pcn docs host, or give "+
				"flags, such as --control pcn --on eth0 --rtt 50us)", err)
		}
		return c, err
	}
	c, err := f.fromFlags(ctx)
	if err != nil {
		return nil, usageError{err}
	}
	if err := c.Check("flags"); err != nil {
		return nil, usageError{err}
	}
	return c, nil
}

func (f *hostFlags) fromFlags(ctx context.Context) (*host.Config, error) {
	c := &host.Config{RTTTo: f.rttTo}
	for _, name := range f.controls {
		if err := addControl(ctx, &c.Controls, name); err != nil {
			return nil, fmt.Errorf("--control: %w", err)
		}
	}
	if len(f.on) > 0 {
		c.NP = &host.NP{Interfaces: f.on}
		if c.HearsCNPs() {
			c.RP = &host.RP{Interfaces: f.on}
		}
	}
	for _, g := range f.cgroups {
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

// addControl adds a control by its name, or that of a C file or object of the user's own.
func addControl(ctx context.Context, c *host.Controls, name string) error {
	if !isOwnFile(name) {
		return c.Add(name)
	}
	object, err := compileForHosts(ctx, name)
	if err != nil {
		return err
	}
	return c.AddObject(object)
}

func newHostUp() *cobra.Command {
	var (
		f      hostFlags
		wait   time.Duration
		dryRun bool
		keys   string
	)
	c := &cobra.Command{
		Use:   "up",
		Short: "Configure this host from a file or from flags",
		Long: `Register, attach, change and remove components until this host runs what the file or
the flags describe. Components that run already are changed in place, and connections continue. If
any step fails, pcn restores the host's previous state.`,
		Example: `  pcn host up                                          from /etc/pcn/host.yaml
  pcn host up --control pcn --on eth0 --rtt 50us       without a file
  pcn host up --control pcn --on eth0 --rtt-to 10.0.0.2:22
  pcn host up --keys /etc/pcn/cnp.key                  sign CNPs, and obey signed ones only
  pcn host up --wait 2m                                at boot, when interfaces may come late
  pcn host up --dry-run                                say what it would do, and do nothing
  pcn host up --netns blue                             in a network namespace`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 {
				return usageError{fmt.Errorf("invalid --wait %s: want 0 or more", wait)}
			}
			c, err := f.load(cmd.Context())
			if err != nil {
				return err
			}
			if keys != "" {
				c.Keys = keys
				if err := c.Check("--keys"); err != nil {
					return usageError{err}
				}
			}
			if dryRun {
				if keys != "" {
					c.Keys = "" // need not be there yet
				}
				changes, err := host.New().Preview(cmd.Context(), c)
				if err != nil {
					return err
				}
				return printPreview(cmd.OutOrStdout(), changes)
			}
			if keys != "" {
				if err := makeKey(cmd.OutOrStdout(), keys); err != nil {
					return err
				}
			}
			changes, err := upSoon(cmd.Context(), cmd.ErrOrStderr(), c, wait)
			if err != nil {
				return err
			}
			if err := printChanges(cmd.OutOrStdout(), changes); err != nil {
				return err
			}
			return printAdvice(cmd.ErrOrStderr(), c)
		},
	}
	f.add(c)
	c.Flags().DurationVar(&wait, "wait", 0,
		"how long to wait for interfaces, their link speed, cgroups and services of --rtt-to")
	c.Flags().StringVar(&keys, "keys", "",
		"file with the key of signed CNPs, the same on all hosts; it is made if it is not there")
	c.Flags().BoolVar(&dryRun, "dry-run", false, "print what would change, and change nothing")
	return inNamespace(c)
}

// inNamespace gives a command the flag --netns.
func inNamespace(c *cobra.Command) *cobra.Command {
	var name string
	c.Flags().StringVar(&name, "netns", "",
		"network namespace to act in: a name of ip netns, or a file such as /proc/PID/ns/net")
	runHere := c.RunE
	c.RunE = func(cmd *cobra.Command, args []string) error {
		return host.In(name, func() error { return runHere(cmd, args) })
	}
	return c
}

// upSoon is Up, and tries again until the time is over while something is not there yet.
func upSoon(
	ctx context.Context, log io.Writer, c *host.Config, wait time.Duration,
) ([]host.Change, error) {
	const pause = 500 * time.Millisecond
	until := time.Now().Add(wait)
	for told := ""; ; {
		changes, err := host.New().Up(ctx, c)
		if !errors.Is(err, host.ErrNotReady) || time.Now().Add(pause).After(until) {
			return changes, err
		}
		if text := err.Error(); text != told {
			fmt.Fprintf(log, "waiting: %s\n", text)
			told = text
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

// printAdvice says what else this host needs, or flows fall back to TCP's window without a word.
func printAdvice(w io.Writer, c *host.Config) error {
	advice, err := c.Advice()
	for _, text := range advice {
		fmt.Fprintf(w, "note: %s\n", text)
	}
	return err
}

func newHostDown() *cobra.Command {
	var all bool
	c := &cobra.Command{
		Use:   "down",
		Short: "Remove what pcn host up installed, and restore the host",
		Long: `Remove what pcn host up installed in this network namespace. Congestion controls and
cgroups are the machine's: those that another namespace's pcn host up asked for stay.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			down := host.New().Down
			if all {
				down = host.New().DownAll
			}
			changes, err := down(cmd.Context())
			if err != nil {
				return err
			}
			return printChanges(cmd.OutOrStdout(), changes)
		},
	}
	c.Flags().BoolVar(&all, "all", false, "remove everything, in all network namespaces")
	return inNamespace(c)
}

func printChanges(w io.Writer, changes []host.Change) error {
	return printEach(w, changes, func(what string) string { return what })
}

// printPreview prints what Up would do.
func printPreview(w io.Writer, changes []host.Change) error {
	words := map[string]string{
		host.Added: "would add", host.Changed: "would change", host.Kept: "would keep",
		host.Removed: "would remove", host.Reselected: "would select again",
	}
	return printEach(w, changes, func(what string) string { return words[what] })
}

func printEach(w io.Writer, changes []host.Change, word func(string) string) error {
	t := newTable(w)
	for _, c := range changes {
		where := ""
		if c.Namespace != "" {
			where = "in network namespace " + c.Namespace
		}
		if c.IsProblem() {
			where = strings.TrimSpace(where + " WARNING:")
		}
		note := strings.TrimSpace(where + " " + c.Note)
		fmt.Fprintln(t, strings.TrimRight(word(c.What)+"\t"+c.Component+"\t"+note, "\t"))
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
		Short: "Show what runs on this host, and how it differs from the configuration",
		Long: `Show the components that run on this host, their interfaces, parameters and
counters. With a configuration, from flags or from /etc/pcn/host.yaml, show what differs from it.
Exits with 1 if anything differs or is broken.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := f.loadIfAny(cmd.Context())
			if err != nil {
				return err
			}
			h := host.New()
			s, err := h.Status(cmd.Context(), c)
			if err != nil {
				return err
			}
			if asJSON {
				err = printJSON(cmd.OutOrStdout(), s)
			} else {
				err = errors.Join(printStatus(cmd.OutOrStdout(), s),
					printChoices(cmd.OutOrStdout(), h))
			}
			if err == nil && !s.OK() {
				err = exitCode(exitError)
			}
			return err
		},
	}
	f.add(c)
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return inNamespace(c)
}

// printChoices prints which other network namespaces chose a control of ours.
func printChoices(w io.Writer, h *host.Host) error {
	names, err := h.Registered()
	if err != nil {
		return err
	}
	chosen, _, err := host.Choices(names)
	for _, c := range chosen {
		if !c.IsHere() {
			fmt.Fprintf(w, "network namespace %s chose %s\n", c.Namespace, c.Control)
		}
	}
	return err
}

// loadIfAny is load, but returns nil if no flag is given and no file is installed.
func (f *hostFlags) loadIfAny(ctx context.Context) (*host.Config, error) {
	if f.file == "" && !f.replaceFile() {
		if _, err := os.Stat(hostFile); err != nil {
			return nil, nil
		}
	}
	return f.load(ctx)
}

func printStatus(w io.Writer, s *host.Status) error {
	if len(s.Components) == 0 {
		fmt.Fprintln(w, "no component of pcn runs on this host")
	}
	for _, c := range s.Components {
		fmt.Fprintf(w, "%s  %s\n", c.Name, strings.Join(c.Where, ", "))
		for _, p := range c.Problems {
			fmt.Fprintf(w, "  PROBLEM: %s\n", p)
		}
		for _, warning := range c.Warnings {
			fmt.Fprintf(w, "  warning: %s\n", warning)
		}
		t := newTable(w)
		for _, setting := range c.Settings {
			fmt.Fprintf(t, "  %s\t%s\n", setting.Key, setting.Value)
		}
		for _, name := range slices.Sorted(maps.Keys(c.Counts)) {
			fmt.Fprintf(t, "  %s\t%d\n", name, c.Counts[name])
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	fmt.Fprintf(w, "default congestion control of this network namespace: %s\n", s.Default)
	for _, n := range s.Notes {
		fmt.Fprintf(w, "NOTE: %s\n", n)
	}
	for _, d := range s.Differences {
		fmt.Fprintf(w, "DIFFERS: %s\n", d)
	}
	return nil
}
