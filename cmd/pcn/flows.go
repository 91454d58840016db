// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/loader"
)

func newFlows() *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "flows",
		Short: "List the live flows of this host's congestion controls",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			flows, err := host.New().Flows()
			if err != nil {
				return err
			}
			sortFlows(flows)
			if asJSON {
				return printJSON(cmd.OutOrStdout(), flows)
			}
			if err := printFlows(cmd.OutOrStdout(), flows); err != nil {
				return err
			}
			if n := withoutECN(flows); n > 0 {
				fmt.Fprintf(cmd.ErrOrStderr(), "note: %d of %d flows have no ECN, and so TCP's "+
					"window: see pcn host doctor\n", n, len(flows))
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sortFlows puts the fastest first.
func sortFlows(flows []host.LiveFlow) {
	slices.SortStableFunc(flows, func(a, b host.LiveFlow) int {
		return cmp.Or(-cmp.Compare(a.SendRateBps, b.SendRateBps), compareKeys(a, b))
	})
}

func compareKeys(a, b host.LiveFlow) int {
	return strings.Compare(a.FlowKey.String(), b.FlowKey.String())
}

func printFlows(w io.Writer, flows []host.LiveFlow) error {
	t := newTable(w)
	stats := statKeys(flows)
	fmt.Fprint(t, "FLOW\tCONTROL\tRATE\tREC RATE\tWINDOW\tMARKED\tCNP-\tCNP+\tLOSSES\t"+
		"SRTT\tECN\tDOUBT")
	for _, key := range stats {
		fmt.Fprintf(t, "\t%s", strings.ToUpper(strings.ReplaceAll(key, "_", " ")))
	}
	fmt.Fprintln(t)
	for _, f := range flows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\t%s",
			f.FlowKey, f.Control, formatRate(f.SendRateBps), formatRate(f.RecRateBps),
			formatWindow(f.Window), f.MarkedPackets, f.CNPDecrease, f.CNPIncrease, f.Losses,
			f.SRTT, map[bool]string{true: "yes", false: "NO"}[f.ECN],
			cmp.Or(strings.ReplaceAll(f.Doubt, "_", " "), "-"))
		for _, key := range stats {
			fmt.Fprintf(t, "\t%s", formatStat(f, key))
		}
		fmt.Fprintln(t)
	}
	return t.Flush()
}

// statKeys returns the statistics that the algorithms of the flows keep. Windows have a column already.
func statKeys(flows []host.LiveFlow) []string {
	var keys []string
	for _, f := range flows {
		stats, _ := f.Stats()
		for _, s := range stats {
			if s.Key != loader.WindowStat && !slices.Contains(keys, s.Key) {
				keys = append(keys, s.Key)
			}
		}
	}
	return keys
}

// formatStat returns a statistic of a flow; "-" if its algorithm has no such.
func formatStat(f host.LiveFlow, key string) string {
	stats, values := f.Stats()
	i := slices.IndexFunc(stats, func(s scheme.Stat) bool { return s.Key == key })
	switch {
	case i < 0:
		return "-"
	case stats[i].Kind == scheme.KindRate:
		return formatRate(uint64(values[i]))
	default:
		return strconv.FormatFloat(values[i], 'g', 4, 64)
	}
}

// formatRate returns a rate in its largest unit; "-" for 0, which means that there is none.
func formatRate(bps uint64) string {
	if bps == 0 {
		return "-"
	}
	return config.Quantity{Value: float64(bps), Unit: config.UnitRate}.String()
}

func formatWindow(packets float64) string {
	if packets == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g", packets)
}

func newTrace() *cobra.Command {
	var asJSON, acks bool
	c := &cobra.Command{
		Use:   "trace FLOW",
		Short: "Print the congestion events of one flow of this host as they happen",
		Long: `Print each congestion notification packet (CNP), mark, loss and retransmission that
the flow's sender receives, and the flow's rate and window after it. FLOW is any part of the
flow's line in pcn flows that no other flow has, such as a port. Stop with ctrl-c.`,
		Example: `  pcn trace :40112
  pcn trace '10.0.0.1:40112->10.0.0.2:5001' --acks --json`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			h := host.New()
			f, err := h.FindFlow(args[0])
			if err != nil {
				return err
			}
			w := cmd.OutOrStdout()
			if !asJSON {
				fmt.Fprintf(w, "%s, %s\n%12s  %-24s %10s %10s %8s %8s %6s\n", f.FlowKey, f.Control,
					"time", "what", "rate", "recRate", "srtt", "window", "out")
			}
			var start time.Duration
			return h.Trace(cmd.Context(), f, acks, func(e host.TraceEvent) error {
				if asJSON {
					return json.NewEncoder(w).Encode(e)
				}
				start = cmp.Or(start, e.At)
				_, err := fmt.Fprintf(w, "%12s  %-24s %10s %10s %8s %8s %6d\n",
					e.At-start, e.What(), formatRate(e.SendRateBps), formatRate(e.RecRateBps),
					e.SRTT, traceWindow(e), e.PacketsOut)
				return err
			})
		},
	}
	c.Flags().BoolVar(&acks, "acks", false, "also print every ACK")
	c.Flags().BoolVar(&asJSON, "json", false, "print one JSON object per line")
	return c
}

// traceWindow returns the window in packets; "-" for rate-based controls, whose window never
// limits.
func traceWindow(e host.TraceEvent) string {
	if e.SendRateBps != 0 {
		return "-"
	}
	return formatWindow(cmp.Or(e.Window, float64(e.Cwnd)))
}

func newCapture() *cobra.Command {
	var (
		on  []string
		out string
	)
	c := &cobra.Command{
		Use:   "capture",
		Short: "Write received and sent CNPs to a pcapng file",
		Long: `Write each congestion notification packet (CNP) that the interfaces receive or send
to a pcapng file, until ctrl-c. It captures CNPs before the reaction point (RP) removes them. Open
the file with Wireshark (-X lua_script:cnp/pcn.lua). Needs CAP_NET_RAW.`,
		Example: `  pcn host capture --on eth0 --out cnps.pcapng`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			socket, err := host.ListenCNPs(on)
			if err != nil {
				return err // and an earlier capture stays
			}
			defer func() { err = errors.Join(err, socket.Close()) }()
			f, err := os.Create(out)
			if err != nil {
				return fmt.Errorf("create the capture file: %w", err)
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			capture, err := cnp.NewHostCapture(f, on...)
			if err != nil {
				return err
			}
			n, err := socket.Capture(cmd.Context(), capture)
			fmt.Fprintf(cmd.ErrOrStderr(), "%d CNPs in %s\n", n, out)
			return err
		},
	}
	c.Flags().StringSliceVar(&on, "on", nil, "interfaces to capture on")
	c.Flags().StringVar(&out, "out", "cnps.pcapng", "file to write")
	_ = c.MarkFlagRequired("on")
	return c
}
