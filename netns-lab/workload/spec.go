// SPDX-License-Identifier: Apache-2.0

package workload

import (
	"fmt"
	"math/rand/v2"
	"slices"
)

// Spec is what traffic to make up. Receivers are chosen at random, all alike, and hear from some senders, chosen at
// random too, at moments of a Poisson process.
type Spec struct {
	Sizes              *CDF
	Senders, Receivers []string // hosts
	// Load is the share of the receivers' links that data takes on average, without headers.
	Load float64
	// RateBps is that of each receiver's link.
	RateBps uint64
	// MinIncast and MaxIncast bound how many senders start a flow each to the same receiver at the same ns.
	MinIncast, MaxIncast int
	// SameSize is whether the flows of these senders all have the same size, and not each its own.
	SameSize bool
	// FromNs and ToNs are when flows start, ToNs not included.
	FromNs, ToNs int64
	// ClassBytes are growing sizes: a flow below the first has priority 0, one below the second 1, and so on.
	ClassBytes []uint64
	Seed       uint64
}

// maxFlows bounds what is made up.
const maxFlows = 10_000_000

// check fails if there is no such traffic.
func (s *Spec) check() error {
	switch {
	case len(s.Senders) == 0 || len(s.Receivers) == 0:
		return fmt.Errorf("%d senders and %d receivers, want at least one of each", len(s.Senders), len(s.Receivers))
	case !(s.Load > 0 && s.Load <= 100):
		return fmt.Errorf("load %g is not above 0 and at most 100", s.Load)
	case s.RateBps == 0:
		return fmt.Errorf("the rate of links is missing")
	case s.MinIncast < 1 || s.MinIncast > s.MaxIncast:
		return fmt.Errorf("incast of %d to %d is none, want 1 or more senders", s.MinIncast, s.MaxIncast)
	case s.ToNs <= s.FromNs:
		return fmt.Errorf("flows start from %d ns to %d ns, want some time", s.FromNs, s.ToNs)
	case len(s.ClassBytes) > 255 || !slices.IsSorted(s.ClassBytes):
		return fmt.Errorf("size classes %d do not grow, or are more than 255", s.ClassBytes)
	}
	for _, names := range [][]string{s.Senders, s.Receivers} {
		if twice := firstTwice(names); twice != "" {
			return fmt.Errorf("host %s is named twice", twice)
		}
	}
	for _, to := range s.Receivers {
		senders := len(s.Senders)
		if slices.Contains(s.Senders, to) {
			senders--
		}
		if senders < s.MaxIncast {
			return fmt.Errorf("%d hosts can send to %s, want %d for the incast", senders, to, s.MaxIncast)
		}
	}
	if flows := s.MeanFlows(); flows > maxFlows {
		return fmt.Errorf("%.3g flows are too many, at most %d", flows, maxFlows)
	}
	return nil
}

// firstTwice returns the first name that was there before; "" if there is none.
func firstTwice(names []string) string {
	seen := make(map[string]bool)
	for _, name := range names {
		if seen[name] {
			return name
		}
		seen[name] = true
	}
	return ""
}

// MeanFlows returns how many flows there are on average.
func (s *Spec) MeanFlows() float64 {
	return float64(s.ToNs-s.FromNs) / s.meanGapNs() * s.meanIncast()
}

func (s *Spec) meanIncast() float64 { return float64(s.MinIncast+s.MaxIncast) / 2 }

// meanGapNs is the mean time between arrivals at any of the receivers.
func (s *Spec) meanGapNs() float64 {
	bitsOfArrival := s.Sizes.MeanBytes() * 8 * s.meanIncast()
	return bitsOfArrival / (s.Load * float64(s.RateBps) * float64(len(s.Receivers))) * 1e9
}

// Generate returns the flows, in the order of their start.
func (s Spec) Generate() ([]Flow, error) {
	if err := s.check(); err != nil {
		return nil, fmt.Errorf("make up flows: %w", err)
	}
	rng := rand.New(rand.NewPCG(s.Seed, 0))
	senders := slices.Clone(s.Senders)
	var flows []Flow
	for at := rng.ExpFloat64() * s.meanGapNs(); at < float64(s.ToNs-s.FromNs); at += rng.ExpFloat64() * s.meanGapNs() {
		to := s.Receivers[rng.IntN(len(s.Receivers))]
		incast := s.MinIncast + rng.IntN(s.MaxIncast-s.MinIncast+1)
		size := uint64(0)
		for _, from := range pick(rng, senders, incast, to) {
			if size == 0 || !s.SameSize {
				size = s.Sizes.Quantile(rng.Float64())
			}
			flows = append(flows, Flow{StartNs: s.FromNs + int64(at), Src: from, Dst: to, SizeBytes: size, Priority: s.priority(size)})
		}
	}
	return flows, nil
}

// pick returns so many of the names, none of them twice and none the one that is left out. It changes their order.
func pick(rng *rand.Rand, names []string, count int, without string) []string {
	var picked []string
	for i := 0; len(picked) < count; i++ {
		j := i + rng.IntN(len(names)-i)
		names[i], names[j] = names[j], names[i]
		if names[i] != without {
			picked = append(picked, names[i])
		}
	}
	return picked
}

// priority is the number of the size class.
func (s *Spec) priority(size uint64) uint8 {
	class := 0
	for class < len(s.ClassBytes) && size >= s.ClassBytes[class] {
		class++
	}
	return uint8(class)
}
