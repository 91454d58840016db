// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strconv"

	"go.yaml.in/yaml/v3"
)

// Dilation is the binary logarithm of how much slower than the paper a run is.
type Dilation struct {
	Shift uint
	Auto  bool // chosen from the network and the traffic; may be raised
}

// autoDilation is the text that asks for a choice.
const autoDilation = "auto"

// UnmarshalYAML implements [yaml.Unmarshaler].
func (d *Dilation) UnmarshalYAML(n *yaml.Node) error {
	if n.Value == autoDilation {
		*d = Dilation{Auto: true}
		return nil
	}
	shift, err := strconv.ParseUint(n.Value, 10, 32)
	if err != nil {
		return fmt.Errorf("invalid dilation %q: want auto, or 0 to %d", n.Value, MaxDilation)
	}
	*d = Dilation{Shift: uint(shift)}
	return nil
}

// Limits of the dilation.
const (
	// MaxDilation is the highest.
	MaxDilation = 16
	// leastAuto is the lowest that is chosen: it hardly costs more where hosts have little to do,
	// as idle time is skipped.
	leastAuto = 10
)

// What a packet costs the microVM, which takes a ns for an instruction: a data packet and its ACK
// at both hosts, and each of them at a link (docs/architecture.md, "One clock, dilated").
const (
	hostInstructions = 20_000
	linkInstructions = 4_300
	// busyShare of the CPU may be needed at the busiest moment, or hosts are late.
	busyShare = 0.6
)

// chooseDilation chooses the dilation by what the hosts do at the busiest moment, at most what TCP
// bears: it gives up connecting when a round trip lasts a second.
func (d *decoder) chooseDilation(e *Experiment) {
	if !e.Dilation.Auto || len(d.Errs) > 0 { // the traffic may make no sense
		return
	}
	e.Dilation.Shift = min(max(leastAuto, e.neededDilation()), e.mostDilation())
}

// neededDilation is what leaves the CPU the time for the packets of the busiest moment.
func (e *Experiment) neededDilation() uint {
	perNs := e.busiestBps() / float64(8*e.Frame) / 1e9 *
		float64(hostInstructions+2*linkInstructions*e.longestPath())
	return uint(max(0, math.Ceil(math.Log2(perNs/busyShare))))
}

// busiestBps is the sum of the rates at which TCP flows may send at the busiest moment. A flow
// sends at the rate of its limit, from its start until it could be done; those of a host share its
// link.
func (e *Experiment) busiestBps() float64 {
	type change struct {
		atNs int64
		host string
		bps  float64
	}
	var changes []change
	for _, f := range e.Flows {
		bps := float64(f.LimitRate)
		changes = append(changes, change{int64(f.Start), f.From, bps})
		if f.Size > 0 {
			endNs := int64(f.Start) + int64(float64(f.Size)*8e9/bps)
			changes = append(changes, change{endNs, f.From, -bps})
		}
	}
	slices.SortStableFunc(changes, func(a, b change) int {
		if a.atNs != b.atNs {
			return int(min(max(a.atNs-b.atNs, -1), 1))
		}
		return int(min(max(b.bps-a.bps, -1), 1)) // starts first
	})
	host := map[string]float64{} // what its flows want
	shared := func(name string) float64 { return min(host[name], float64(e.Topology.Rate)) }
	var sum, most float64
	for _, c := range changes {
		sum -= shared(c.host)
		host[c.host] += c.bps
		sum += shared(c.host)
		most = max(most, sum)
	}
	return most
}

// eachPath calls fn with the number of links and the one-way delay between each two hosts that have
// traffic.
func (e *Experiment) eachPath(fn func(links int, delayNs uint64)) {
	net := e.Topology.Network()
	routes, err := net.Routes()
	if err != nil {
		return // reported when the run is laid out
	}
	number := map[string]int{}
	for i, name := range net.Hosts {
		number[name] = i
	}
	see := func(from, to string) {
		a, b := number[from], number[to]
		fn(routes.Hops(a, b), routes.DelayNs(a, b))
	}
	for _, f := range e.Flows {
		see(f.From, f.To)
	}
	for _, b := range e.Bursts {
		for _, from := range b.From {
			see(from, b.To)
		}
	}
}

// longestPath is the largest number of links between hosts that have traffic.
func (e *Experiment) longestPath() (most int) {
	e.eachPath(func(links int, _ uint64) { most = max(most, links) })
	return most
}

// mostDilation is the highest with which a round trip lasts less than TCP's first timeout.
func (e *Experiment) mostDilation() uint {
	const timeoutNs = 900_000_000 // less a tenth, for what propagation delays leave out
	rttNs := uint64(1)
	e.eachPath(func(_ int, delayNs uint64) { rttNs = max(rttNs, 2*delayNs) })
	return min(MaxDilation, uint(max(bits.Len64(timeoutNs/rttNs), 1)-1))
}

// Slower returns the experiment with a dilation that is higher by so much, or as high as TCP bears;
// nil if it was not chosen, or cannot be higher.
func (e *Experiment) Slower(by uint) *Experiment {
	shift := min(e.Dilation.Shift+by, e.mostDilation())
	if !e.Dilation.Auto || shift <= e.Dilation.Shift {
		return nil
	}
	c := *e
	c.Dilation.Shift = shift
	return &c
}
