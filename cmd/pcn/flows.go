// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/host"
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
			return printFlows(cmd.OutOrStdout(), flows)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// sortFlows puts the fastest first.
func sortFlows(flows []host.LiveFlow) {
	slices.SortStableFunc(flows, func(a, b host.LiveFlow) int {
		return cmp.Or(-cmp.Compare(a.SendRateBps, b.SendRateBps), strings.Compare(a.FlowKey.String(), b.FlowKey.String()))
	})
}

func printFlows(w io.Writer, flows []host.LiveFlow) error {
	t := newTable(w)
	fmt.Fprintln(t, "FLOW\tCONTROL\tRATE\tREC RATE\tWINDOW\tMARKED\tCNP-\tCNP+\tLOSSES\tSRTT\tECN")
	for _, f := range flows {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%s\t%d\t%d\t%d\t%d\t%s\t%s\n", f.FlowKey, f.Control, rateInWords(f.SendRateBps),
			rateInWords(f.RecRateBps), windowInWords(f.Window), f.MarkedPackets, f.CNPDecrease, f.CNPIncrease, f.Losses,
			f.SRTT, map[bool]string{true: "yes", false: "NO"}[f.ECN])
	}
	return t.Flush()
}

// rateInWords is a rate in its largest unit; "-" for none.
func rateInWords(bps uint64) string {
	if bps == 0 {
		return "-"
	}
	return config.Quantity{Value: float64(bps), Unit: config.UnitRate}.String()
}

func windowInWords(packets float64) string {
	if packets == 0 {
		return "-"
	}
	return fmt.Sprintf("%.4g", packets)
}

func newTrace() *cobra.Command {
	var asJSON, acks bool
	c := &cobra.Command{
		Use:   "trace FLOW",
		Short: "Print what happens to one flow of this host, as it happens",
		Long: `Print each CNP, mark, loss and retransmission that the flow's sender hears of, and what the flow makes of it. FLOW is
any part of its line in pcn flows that no other flow has, such as a port. Ends with ctrl-c.`,
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
				fmt.Fprintf(w, "%s, %s\n%12s  %-24s %10s %10s %8s %8s %6s\n", f.FlowKey, f.Control, "time", "what", "rate", "recRate", "srtt", "window", "out")
			}
			var began time.Duration
			return h.Trace(cmd.Context(), f, acks, func(e host.TraceEvent) error {
				if asJSON {
					return printLine(w, e)
				}
				if began == 0 {
					began = e.At
				}
				_, err := fmt.Fprintf(w, "%12s  %-24s %10s %10s %8s %8s %6d\n", e.At-began, e.What(), rateInWords(e.SendRateBps),
					rateInWords(e.RecRateBps), e.SRTT, traceWindow(e), e.PacketsOut)
				return err
			})
		},
	}
	c.Flags().BoolVar(&acks, "acks", false, "print every ACK")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object a line")
	return c
}

// traceWindow is the window in packets; rate-based controls have one that never binds.
func traceWindow(e host.TraceEvent) string {
	if e.SendRateBps != 0 {
		return "-"
	}
	return windowInWords(cmp.Or(e.Window, float64(e.Cwnd)))
}

func newCapture() *cobra.Command {
	var (
		on  []string
		out string
	)
	c := &cobra.Command{
		Use:   "capture",
		Short: "Write the CNPs that come and go into a pcapng file",
		Long: `Write each CNP that arrives at or leaves interfaces into a pcapng file, for Wireshark (-X lua_script:cnp/pcn.lua), until
ctrl-c. It sees CNPs before RP takes them. It needs CAP_NET_RAW.`,
		Example: `  pcn host capture --on eth0 --out cnps.pcapng`,
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) (err error) {
			f, err := os.Create(out)
			if err != nil {
				return fmt.Errorf("create the capture's file: %w", err)
			}
			defer func() { err = errors.Join(err, f.Close()) }()
			capture, err := cnp.NewHostCapture(f, on...)
			if err != nil {
				return err
			}
			n, err := host.CaptureCNPs(cmd.Context(), on, capture)
			fmt.Fprintf(cmd.ErrOrStderr(), "%d CNPs in %s\n", n, out)
			return err
		},
	}
	c.Flags().StringSliceVar(&on, "on", nil, "interfaces")
	c.Flags().StringVar(&out, "out", "cnps.pcapng", "file to write")
	_ = c.MarkFlagRequired("on")
	return c
}
