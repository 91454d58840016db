// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Spec describes the traffic to generate. Arrivals are a Poisson process. Each has one receiver and
// one or more senders, chosen at random: with equal probability, or where hosts' links have
// different rates in proportion to these.
type Spec struct {
	Sizes              *CDF
	Senders, Receivers []string // hosts
	// Load is the average share of the receivers' links that payload takes, without headers.
	Load float64
	// RateBps is the rate of each host's link, if all have the same.
	RateBps uint64
	// LinkBps returns the rate of a host's link, in place of RateBps.
	LinkBps func(host string) uint64
	// MinIncast and MaxIncast bound the number of senders of an arrival. Each starts one flow, all
	// at the same ns.
	MinIncast, MaxIncast int
	// SameSize makes all flows of an arrival equally large. Otherwise each draws its own size.
	SameSize bool
	// Flows start from FromNs until before ToNs.
	FromNs, ToNs int64
	// ClassBytes are growing sizes: a flow below the first has priority 0, one below the second 1,
	// and so on.
	ClassBytes []uint64
	Seed       uint64
}

// maxFlows keeps a typing error from using all memory.
const maxFlows = 10_000_000

func (s *Spec) check() error {
	switch {
	case len(s.Senders) == 0 || len(s.Receivers) == 0:
		return fmt.Errorf("%d senders and %d receivers: want at least one of each",
			len(s.Senders), len(s.Receivers))
	case !(s.Load > 0 && s.Load <= 100):
		return fmt.Errorf("invalid load %g: want above 0 and at most 100", s.Load)
	case !s.haveRates():
		return fmt.Errorf("the rate of links is missing")
	case s.MinIncast < 1 || s.MinIncast > s.MaxIncast:
		return fmt.Errorf("invalid incast of %d to %d senders: want 1 or more, in growing order",
			s.MinIncast, s.MaxIncast)
	case s.ToNs <= s.FromNs:
		return fmt.Errorf("flows start from %d ns to %d ns: want a later end", s.FromNs, s.ToNs)
	case len(s.ClassBytes) > 255 || !slices.IsSorted(s.ClassBytes):
		return fmt.Errorf("invalid size classes %d: want at most 255, in growing order",
			s.ClassBytes)
	}
	for _, names := range [][]string{s.Senders, s.Receivers} {
		if name := firstDuplicate(names); name != "" {
			return fmt.Errorf("host %s is listed twice", name)
		}
	}
	for _, to := range s.Receivers {
		senders := len(s.Senders)
		if slices.Contains(s.Senders, to) {
			senders--
		}
		if senders < s.MaxIncast {
			return fmt.Errorf("%d hosts can send to %s: want %d for the incast",
				senders, to, s.MaxIncast)
		}
	}
	if flows := s.MeanFlows(); flows > maxFlows {
		return fmt.Errorf("the load makes %.3g flows: want at most %d", flows, maxFlows)
	}
	return nil
}

// firstDuplicate returns the first name that occurs again; "" if there is none.
func firstDuplicate(names []string) string {
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// MeanFlows returns the expected number of flows.
func (s *Spec) MeanFlows() float64 {
	return float64(s.ToNs-s.FromNs) / s.meanGapNs() * s.meanIncast()
}

func (s *Spec) meanIncast() float64 { return float64(s.MinIncast+s.MaxIncast) / 2 }

// meanGapNs returns the mean time between two arrivals, at any of the receivers.
func (s *Spec) meanGapNs() float64 {
	bitsPerArrival := s.Sizes.MeanBytes() * 8 * s.meanIncast()
	return bitsPerArrival / (s.Load * float64(s.MeanLinkBps()) * float64(len(s.Receivers))) * 1e9
}

// Generate returns the flows, in the order of their start.
func (s Spec) Generate() ([]Flow, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("generate flows: %w", err)
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	senders := slices.Clone(s.Senders)
	sender, receiver := s.chooser(s.Senders), s.chooser(s.Receivers)
	durationNs := float64(s.ToNs - s.FromNs)
	gapNs := func() float64 { return rng.ExpFloat64() * s.meanGapNs() }
	var flows []Flow
	for offsetNs := gapNs(); offsetNs < durationNs; offsetNs += gapNs() {
		to := s.Receivers[receiver(rng, s.Receivers)]
		incast := s.MinIncast + rng.IntN(s.MaxIncast-s.MinIncast+1)
		size := uint64(0)
		for _, from := range pick(rng, senders, incast, to, sender) {
			if size == 0 || !s.SameSize {
				size = s.Sizes.Quantile(rng.Float64())
			}
			flows = append(flows, Flow{
				StartNs: s.FromNs + int64(offsetNs), Src: from, Dst: to,
				SizeBytes: size, Priority: s.priority(size),
			})
		}
	}
	return flows, nil
}

// chooser returns the index of one of the names, at random.
type chooser func(rng *rand.Rand, names []string) int

// evenly chooses each name with equal probability.
func evenly(rng *rand.Rand, names []string) int { return rng.IntN(len(names)) }

// chooser returns what chooses among the hosts: in proportion to the rates of their links, if these
// differ.
func (s *Spec) chooser(hosts []string) chooser {
	first := s.linkBps(hosts[0])
	if !slices.ContainsFunc(hosts, func(h string) bool { return s.linkBps(h) != first }) {
		return evenly
	}
	return func(rng *rand.Rand, names []string) int {
		left := rng.Uint64N(s.sumBps(names))
		for i, name := range names {
			rate := s.linkBps(name)
			if left < rate {
				return i
			}
			left -= rate
		}
		panic("workload: a number is not below the sum that bounds it")
	}
}

// linkBps returns the rate of a host's link.
func (s *Spec) linkBps(host string) uint64 {
	if s.LinkBps != nil {
		return s.LinkBps(host)
	}
	return s.RateBps
}

// sumBps returns the sum of the rates of hosts' links.
func (s *Spec) sumBps(hosts []string) uint64 {
	var sum uint64
	for _, host := range hosts {
		sum += s.linkBps(host)
	}
	return sum
}

// MeanLinkBps returns the mean rate of receivers' links; 0 if there are no receivers.
func (s *Spec) MeanLinkBps() uint64 {
	return s.sumBps(s.Receivers) / uint64(max(len(s.Receivers), 1))
}

// SenderLinks returns how many times what receivers' links carry is what senders' links carry.
func (s *Spec) SenderLinks() float64 {
	return float64(s.sumBps(s.Senders)) / float64(max(s.sumBps(s.Receivers), 1))
}

// OfferedBps returns the mean rate of data that one of the hosts sends or receives; hosts are all
// senders, or all receivers.
func (s *Spec) OfferedBps(hosts []string, host string) float64 {
	all := s.Load * float64(s.sumBps(s.Receivers))
	return all * float64(s.linkBps(host)) / float64(s.sumBps(hosts))
}

// haveRates reports whether each host's link has a rate.
func (s *Spec) haveRates() bool {
	return !slices.ContainsFunc(slices.Concat(s.Senders, s.Receivers),
		func(host string) bool { return s.linkBps(host) == 0 })
}

// pick returns count different names at random, never the excluded one. It shuffles names.
func pick(
	rng *rand.Rand, names []string, count int, excluded string, among chooser,
) []string {
	var picked []string
	for i := 0; len(picked) < count; i++ {
		j := i + among(rng, names[i:])
		names[i], names[j] = names[j], names[i]
		if names[i] != excluded {
			picked = append(picked, names[i])
		}
	}
	return picked
}

func (s *Spec) priority(size uint64) uint8 {
	class := 0
	for class < len(s.ClassBytes) && size >= s.ClassBytes[class] {
		class++
	}
	return uint8(class)
}
