// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/workload"
)

// workloadFlags describe the flows to generate.
type workloadFlags struct {
	cdf, rate, duration, incast string
	load                        float64
	from, to, classes           []string
	seed                        uint64
	sameSize                    bool
}

func newWorkload() *cobra.Command {
	var flags workloadFlags
	c := &cobra.Command{
		Use:   "workload",
		Short: "Generate the flows of a workload as a trace",
		Long: fmt.Sprintf(`Write a trace of flows as CSV. Flow sizes have a published distribution,
and flows arrive at random at a rate that loads the receivers' links as --load says. An experiment
runs the trace with trace: {file: FILE}.

Distributions: %s.
In the file of a distribution, each line has a size in bytes and the share of flows of at most
this size.`, strings.Join(workload.CDFs(), ", ")),
		Example: `  pcn workload --cdf web-search --from H0..H15 --to H0..H15 --rate 10Gbps \
    --load 0.6 --duration 10ms > trace.csv

  Synchronised bursts:
  pcn workload --cdf fb-hadoop --from H2..H15 --to R1 --incast 14 --duration 10ms

  A distribution and priorities of your own:
  pcn workload --cdf mine.txt --from H0..H63 --to H0..H63 --incast 1..15 \
    --classes 10KB,100KB,1MB --duration 10ms`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := flags.spec()
			if err != nil {
				return usageError{err}
			}
			flows, err := s.Generate()
			if err != nil {
				return usageError{err}
			}
			return workload.WriteTrace(cmd.OutOrStdout(), flows)
		},
	}
	c.AddCommand(newChakra())
	f := c.Flags()
	f.StringVar(&flags.cdf, "cdf", "",
		"distribution of flow sizes: a name from above, or a file")
	f.StringSliceVar(&flags.from, "from", nil,
		"sending hosts, such as H0..H15,R0")
	f.StringSliceVar(&flags.to, "to", nil,
		"receiving hosts; each arrival has one of them, all equally likely")
	f.StringVar(&flags.rate, "rate", "40Gbps",
		"rate of a receiver's link")
	f.Float64Var(&flags.load, "load", 0.6,
		"average share of the receivers' links that the data uses")
	f.StringVar(&flags.incast, "incast", "1",
		"hosts that start to send to a receiver together: 14, or 1..15, all equally likely")
	f.BoolVar(&flags.sameSize, "same-size", false,
		"hosts of an incast all send the same size (default: each draws its own)")
	f.StringSliceVar(&flags.classes, "classes", nil,
		"sizes such as 10KB,100KB,1MB: flows below the first get priority 0, then 1, and so on")
	f.StringVar(&flags.duration, "duration", "",
		"flows start from t = 0 until this time")
	f.Uint64Var(&flags.seed, "seed", 1,
		"seed of all random choices")
	return c
}

func (f workloadFlags) spec() (s workload.Spec, err error) {
	s.Load, s.Seed, s.SameSize = f.load, f.seed, f.sameSize
	if s.Sizes, err = loadCDF(f.cdf); err != nil {
		return s, err
	}
	if s.Senders, err = parseHosts(f.from); err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	if s.Receivers, err = parseHosts(f.to); err != nil {
		return s, fmt.Errorf("--to: %w", err)
	}
	rate, err := config.ParseRate(f.rate)
	if err != nil {
		return s, fmt.Errorf("--rate: %w", err)
	}
	duration, err := config.ParseDuration(f.duration)
	if err != nil {
		return s, fmt.Errorf("--duration: %w", err)
	}
	s.RateBps, s.ToNs = uint64(rate), int64(duration)
	incast, err := experiment.ParseIncast(f.incast)
	if err != nil {
		return s, fmt.Errorf("--incast: %w", err)
	}
	s.MinIncast, s.MaxIncast = incast.Min, incast.Max
	for _, text := range f.classes {
		size, err := config.ParseBytes(text)
		if err != nil {
			return s, fmt.Errorf("--classes: %w", err)
		}
		s.ClassBytes = append(s.ClassBytes, uint64(size))
	}
	return s, nil
}

// loadCDF returns a distribution by name or from a file. A path has a separator or a dot, a name
// has neither.
func loadCDF(nameOrPath string) (*workload.CDF, error) {
	if !strings.ContainsAny(nameOrPath, "./") {
		return workload.NamedCDF(nameOrPath)
	}
	text, err := config.ReadText(nameOrPath, config.MaxFile)
	if err != nil {
		return nil, fmt.Errorf("read the distribution of flow sizes: %w", err)
	}
	return workload.ParseCDF(nameOrPath, string(text))
}

// parseHosts expands names and ranges of hosts.
func parseHosts(texts []string) ([]string, error) {
	var hosts []string
	for _, text := range texts {
		list, err := experiment.ParseNodeList(text)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, list...)
	}
	return hosts, nil
}
