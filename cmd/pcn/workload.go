// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/workload"
)

// made are the flags that say what traffic to make up.
type made struct {
	cdf, rate, duration, incast string
	load                        float64
	from, to, classes           []string
	seed                        uint64
	sameSize                    bool
}

func newWorkload() *cobra.Command {
	var m made
	c := &cobra.Command{
		Use:   "workload",
		Short: "Make up the flows of a workload, as a trace",
		Long: fmt.Sprintf(`Write a trace, CSV, of flows whose sizes have a published distribution and that arrive at random, so that they
take a share of the receivers' links. An experiment runs them with trace: {file: FILE}.

Distributions: %s.
A file of a distribution has lines of a size in bytes and the share of flows of at most this size.`, strings.Join(workload.CDFs(), ", ")),
		Example: `  pcn workload --cdf web-search --from H0..H15 --to H0..H15 --rate 10Gbps --load 0.6 --duration 10ms > trace.csv
  pcn workload --cdf fb-hadoop --from H2..H15 --to R1 --incast 14 --duration 10ms      synchronised bursts
  pcn workload --cdf mine.txt --from H0..H63 --to H0..H63 --incast 1..15 --classes 10KB,100KB,1MB --duration 10ms`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := m.spec()
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
	f := c.Flags()
	f.StringVar(&m.cdf, "cdf", "", "distribution of sizes: a name, see above, or a file")
	f.StringSliceVar(&m.from, "from", nil, "hosts that send, such as H0..H15,R0")
	f.StringSliceVar(&m.to, "to", nil, "hosts that receive; of each arrival one, all as often")
	f.StringVar(&m.rate, "rate", "40Gbps", "of a receiver's link")
	f.Float64Var(&m.load, "load", 0.6, "share of the receivers' links that data takes on average")
	f.StringVar(&m.incast, "incast", "1", "how many hosts start to send to the receiver at the same time: 14, or 1..15, all as often")
	f.BoolVar(&m.sameSize, "same-size", false, "these hosts all send the same size, not each its own")
	f.StringSliceVar(&m.classes, "classes", nil, "sizes such as 10KB,100KB,1MB: smaller flows than the first have priority 0, then 1 and so on")
	f.StringVar(&m.duration, "duration", "", "flows start from t = 0 until then")
	f.Uint64Var(&m.seed, "seed", 1, "start of all random choices")
	return c
}

// spec is what the flags say.
func (m made) spec() (s workload.Spec, err error) {
	s.Load, s.Seed, s.SameSize = m.load, m.seed, m.sameSize
	if s.Sizes, err = sizesOf(m.cdf); err != nil {
		return s, err
	}
	if s.Senders, err = hostsOf(m.from); err != nil {
		return s, fmt.Errorf("--from: %w", err)
	}
	if s.Receivers, err = hostsOf(m.to); err != nil {
		return s, fmt.Errorf("--to: %w", err)
	}
	rate, err := experiment.ParseRate(m.rate)
	if err != nil {
		return s, fmt.Errorf("--rate: %w", err)
	}
	duration, err := experiment.ParseDuration(m.duration)
	if err != nil {
		return s, fmt.Errorf("--duration: %w", err)
	}
	s.RateBps, s.ToNs = uint64(rate), int64(duration)
	incast, err := experiment.ParseIncast(m.incast)
	if err != nil {
		return s, fmt.Errorf("--incast: %w", err)
	}
	s.MinIncast, s.MaxIncast = incast.Min, incast.Max
	for _, text := range m.classes {
		size, err := experiment.ParseBytes(text)
		if err != nil {
			return s, fmt.Errorf("--classes: %w", err)
		}
		s.ClassBytes = append(s.ClassBytes, uint64(size))
	}
	return s, nil
}

// sizesOf is a distribution that comes along, or one of a file: its name has a separator or a dot.
func sizesOf(nameOrPath string) (*workload.CDF, error) {
	if !strings.ContainsAny(nameOrPath, "./") {
		return workload.NamedCDF(nameOrPath)
	}
	text, err := os.ReadFile(nameOrPath)
	if err != nil {
		return nil, fmt.Errorf("read distribution of sizes: %w", err)
	}
	return workload.ParseCDF(nameOrPath, string(text))
}

// hostsOf are names and ranges of hosts.
func hostsOf(texts []string) ([]string, error) {
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
