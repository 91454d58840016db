// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/netns-lab/native"
)

func newTopo() *cobra.Command {
	var (
		svg, caseName string
		up, native    bool
		asJSON        bool
	)
	c := &cobra.Command{
		Use:   "topo EXPERIMENT",
		Short: "Summarise and draw an experiment's network",
		Long: `Print the number of nodes, links and ports of an experiment's network, its
oversubscription, its longest round trip, and the bandwidth from one half of the hosts to the
other. With --svg, draw the network with the names of all nodes, and the rates and delays of links;
failed links are dashed.

With --up, build the network with the BPF programs of the experiment's first scheme, measure time
and memory, and remove it again. With --native on a kernel without CONFIG_NET_SCH_BPF, ports have
no BPF qdisc.`,
		Example: `  pcn topo hol
  pcn topo my.yaml --svg my.svg
  pcn topo clos-full --up`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			e, err := loadExperiment(cmd.Context(), args[0], nil)
			if err != nil {
				return err
			}
			printWarnings(cmd, e)
			if cmd.Flags().Changed("case") {
				if e, err = e.Case(caseName); err != nil {
					return usageError{err}
				}
			}
			printOffers(cmd, e)
			n := e.Topology.Network()
			topology, err := jsonout.TopologyOf(n)
			if err != nil {
				return err
			}
			if !asJSON {
				if err := printTopology(cmd.OutOrStdout(), n); err != nil {
					return err
				}
				printOwnLinks(cmd.OutOrStdout(), e.Topology.Links, n)
			}
			if svg != "" {
				if err := drawTopology(svg, n); err != nil {
					return err
				}
			}
			if up {
				s, err := upAndDown(cmd, e, native)
				if err != nil {
					return err
				}
				if !asJSON {
					printScale(cmd.OutOrStdout(), s)
				}
				topology.Built = &jsonout.Built{
					UpNs: s.Up.Nanoseconds(), DownNs: s.Down.Nanoseconds(),
					MemoryBytes: s.MemoryBytes, WithoutQdisc: s.WithoutQdisc,
				}
			}
			if asJSON {
				return printJSON(cmd.OutOrStdout(), topology)
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.Flags().StringVar(&svg, "svg", "", "file to draw the network into")
	c.Flags().StringVar(&caseName, "case", "",
		"show the network of this case (default: the file's network without any case)")
	c.Flags().BoolVar(&up, "up", false, "build and remove the network in a microVM, in real time")
	c.Flags().BoolVar(&native, "native", false, "with --up: on this machine's kernel, as root")
	return c
}

// upAndDown builds and removes the network of the first scheme. It runs on kernels that lack what
// runs need.
func upAndDown(
	cmd *cobra.Command, e *experiment.Experiment, isNative bool,
) (job.Scale, error) {
	var engine launch.Engine = native.Engine{}
	if !isNative {
		var err error
		if engine, err = launch.NewMicroVMs("", true); err != nil {
			return job.Scale{}, err
		}
	}
	pool, err := launch.NewPool(engine, printWaiting(cmd))
	if err != nil {
		return job.Scale{}, err
	}
	return pool.UpAndDown(cmd.Context(), job.Job{Experiment: e, Scheme: e.Schemes[0]})
}

func printScale(w io.Writer, s job.Scale) {
	note := ""
	if s.WithoutQdisc {
		note = ", without the ports' qdisc: this kernel lacks CONFIG_NET_SCH_BPF"
	}
	nodes := time.Duration(s.Nodes)
	fmt.Fprintf(w, "up            %s, %s a node%s\n",
		s.Up.Round(time.Millisecond), (s.Up / nodes).Round(10*time.Microsecond), note)
	fmt.Fprintf(w, "down          %s, %s a node\n",
		s.Down.Round(time.Millisecond), (s.Down / nodes).Round(10*time.Microsecond))
	fmt.Fprintf(w, "memory        %d MB, %d KB a node\n",
		s.MemoryBytes/1e6, s.MemoryBytes/1e3/int64(s.Nodes))
}

func printTopology(w io.Writer, n *network.Network) error {
	routes, err := n.Routes()
	if err != nil {
		return err
	}
	t := newTable(w)
	fmt.Fprintln(t, "tier\tnodes\tlinks up and across\toversubscription")
	for _, tier := range n.Tiers() {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\n", tier.Name, len(tier.Nodes),
			formatLinkGroups(tier.Links), formatOversubscription(tier.Oversubscription))
	}
	if err := t.Flush(); err != nil {
		return err
	}
	fmt.Fprintf(w, "\nnodes         %d, %d of them hosts\n", len(n.Nodes()), len(n.Hosts))
	fmt.Fprintf(w, "links         %d, %d ports\n", len(n.Links), 2*len(n.Links))
	if len(n.Failed) > 0 {
		fmt.Fprintf(w, "failed        %s\n", formatLinks(n.Failed))
	}
	hops, delayNs := routes.Longest()
	fmt.Fprintf(w, "longest path  %d links, round trip %s\n", hops, experiment.Duration(2*delayNs))
	fmt.Fprintf(w, "bisection     %s from the first half of the hosts to the second\n",
		experiment.Rate(n.Bisection()))
	return nil
}

// printOwnLinks prints the links that have values of their own.
func printOwnLinks(w io.Writer, own []experiment.OwnLink, n *network.Network) {
	title := "own values"
	for _, o := range own {
		for _, i := range n.LinksNamed(o.Link) {
			l := n.Links[i]
			fmt.Fprintf(w, "%-13s %s: %s, %s\n", title, l.Name(), experiment.Rate(l.RateBps),
				experiment.Duration(l.DelayNs))
			title = ""
		}
	}
}

func formatLinkGroups(groups []network.LinkGroup) string {
	var all []string
	for _, g := range groups {
		all = append(all, fmt.Sprintf("%d of %s, %s", g.Count,
			experiment.Rate(g.RateBps), experiment.Duration(g.DelayNs)))
	}
	return strings.Join(all, "; ")
}

// formatOversubscription returns such as 2:1; "" for 0, which means that it does not apply.
func formatOversubscription(ratio float64) string {
	switch {
	case ratio == 0:
		return ""
	case math.IsInf(ratio, 1):
		return "cut off"
	default:
		return strconv.FormatFloat(ratio, 'g', 3, 64) + ":1"
	}
}

func formatLinks(links []network.Link) string {
	var all []string
	for _, l := range links {
		all = append(all, l.Name())
	}
	return strings.Join(all, ", ")
}

func drawTopology(path string, n *network.Network) error {
	f, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("draw the network: %w", err)
	}
	if err := errors.Join(report.WriteTopology(f, n), f.Close()); err != nil {
		return fmt.Errorf("draw the network into %s: %w", path, err)
	}
	return nil
}
