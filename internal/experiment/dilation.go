// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"cmp"
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
	t := e.traffic()
	e.Dilation.Shift = min(max(leastAuto, e.neededDilation(t.links)), MostDilation(t.rttNs))
}

// neededDilation is what leaves the CPU the time for the packets of the busiest moment, on paths of
// so many links.
func (e *Experiment) neededDilation(links int) uint {
	perNs := e.busiestBps() / float64(8*e.Frame) / 1e9 *
		float64(hostInstructions+2*linkInstructions*links)
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
		return cmp.Or(cmp.Compare(a.atNs, b.atNs), cmp.Compare(b.bps, a.bps)) // starts first
	})
	host := map[string]float64{} // what its flows want
	shared := func(name string) float64 { return min(host[name], float64(e.HostRate(name))) }
	var sum, most float64
	for _, c := range changes {
		sum -= shared(c.host)
		host[c.host] += c.bps
		sum += shared(c.host)
		most = max(most, sum)
	}
	return most
}

// traffic describes the paths of an experiment's traffic.
type traffic struct {
	links   int    // of the longest path
	rttNs   uint64 // base round trip
	sharing uint64 // the most flows that share a link, if none ended
}

// traffic returns what the paths have of all hosts that have traffic. Of several shortest paths it
// takes the first.
func (e *Experiment) traffic() traffic {
	net := e.Topology.Network()
	routes, err := net.Routes()
	if err != nil {
		return traffic{} // reported when the run is laid out
	}
	number := net.Numbers()
	var t traffic
	type hop struct{ from, to string }
	flows := map[hop]uint64{}
	e.EachPath(func(from, to string) {
		at := from
		path := routes.Path(number[from], number[to])
		for _, link := range path {
			next := link.Peer(at)
			flows[hop{at, next}]++
			t.sharing = max(t.sharing, flows[hop{at, next}])
			at = next
		}
		t.links = max(t.links, len(path))
	})
	t.rttNs = e.BaseRTTNs(routes)
	return t
}

// MostDilation is the highest with which a base round trip lasts less than the second in which TCP
// waits for an answer when it connects.
func MostDilation(rttNs uint64) uint {
	const timeoutNs = 900_000_000 // less a tenth, for what propagation delays leave out
	return min(MaxDilation, uint(max(bits.Len64(timeoutNs/max(rttNs, 1)), 1)-1))
}

// Undilated returns the experiment in the papers' own time, unless its file says how slow it is.
func (e *Experiment) Undilated() *Experiment {
	if !e.Dilation.Auto {
		return e
	}
	c := *e
	c.Dilation.Shift = 0
	return &c
}

// Slower returns the experiment with a dilation that is higher by so much, or as high as TCP bears;
// nil if it was not chosen, or cannot be higher.
func (e *Experiment) Slower(by uint) *Experiment {
	if !e.Dilation.Auto {
		return nil
	}
	rttNs := e.traffic().rttNs
	shift := min(e.Dilation.Shift+by, MostDilation(rttNs))
	if shift <= e.Dilation.Shift {
		return nil
	}
	c := *e
	c.Dilation.Shift = shift
	return &c
}
