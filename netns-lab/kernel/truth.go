// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/pcn-linux/pcn/netns-lab/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// truth is a network without pauses: each port takes what flows offer it, sends as much as its rate allows, to each flow in
// proportion to what it has there, and keeps the rest. It moves in bins of the series; links take no time. A port is
// congested while it keeps something: its input was more than its capacity, and nothing but that has made it keep it.
type truth struct {
	binNs  uint64
	flows  []*fluid
	ports  map[uint32]*fluidPort
	order  []uint32 // ports, each after those that flows come from, as far as there is such an order
	lastly float64  // kept bytes that are still none: two frames
}

// fluid is one flow.
type fluid struct {
	path   []uint32
	offers func(fromNs, toNs uint64) float64 // bytes, to its host's port
}

type fluidPort struct {
	rateBps func(ns uint64) uint64
	flows   []*share
}

// share is what a port has of a flow.
type share struct {
	in, kept float64
	next     *share
}

// input is what happens at a port in a bin.
type input struct {
	bps       uint64
	congested bool
}

// addFlow sends a flow along its path, from its host's port on.
func (t *truth) addFlow(f *fluid, port func(id uint32) *fluidPort) {
	t.flows = append(t.flows, f)
	var before *share
	for _, id := range f.path {
		if t.ports[id] == nil {
			t.ports[id] = port(id)
		}
		s := &share{}
		t.ports[id].flows = append(t.ports[id].flows, s)
		if before != nil {
			before.next = s
		}
		before = s
		if f.path[0] == id {
			offered := s
			offers := f.offers
			f.offers = func(fromNs, toNs uint64) float64 {
				offered.in += offers(fromNs, toNs)
				return 0
			}
		}
	}
}

// sort puts ports in the order of paths: those first that no port is left to come before.
func (t *truth) sort() {
	before := map[uint32]map[uint32]bool{}
	for _, f := range t.flows {
		for i, id := range f.path {
			if before[id] == nil {
				before[id] = map[uint32]bool{}
			}
			if i > 0 {
				before[id][f.path[i-1]] = true
			}
		}
	}
	done := map[uint32]bool{}
	for len(t.order) < len(before) {
		next := t.first(before, done)
		done[next] = true
		t.order = append(t.order, next)
	}
}

// first is the lowest port with the fewest ports before it that are not done: none, unless paths go in a circle.
func (t *truth) first(before map[uint32]map[uint32]bool, done map[uint32]bool) uint32 {
	best, fewest := uint32(0), -1
	for id, from := range before {
		if done[id] {
			continue
		}
		open := 0
		for other := range from {
			if !done[other] {
				open++
			}
		}
		if fewest < 0 || open < fewest || open == fewest && id < best {
			best, fewest = id, open
		}
	}
	return best
}

// step moves everything on to the end of a bin, and returns what each port took in.
func (t *truth) step(fromNs uint64) map[uint32]input {
	toNs := fromNs + t.binNs
	for _, f := range t.flows {
		f.offers(fromNs, toNs)
	}
	inputs := map[uint32]input{}
	for _, id := range t.order {
		p := t.ports[id]
		var in, all float64
		for _, s := range p.flows {
			in += s.in
			all += s.in + s.kept
		}
		sends := min(1, float64(p.rateBps(fromNs))*float64(t.binNs)/8e9/max(all, 1))
		for _, s := range p.flows {
			out := (s.in + s.kept) * sends
			s.kept += s.in - out
			s.in = 0
			if s.next != nil {
				s.next.in += out
			}
		}
		inputs[id] = input{bps: uint64(in * 8e9 / float64(t.binNs)), congested: all*(1-sends) > t.lastly}
	}
	return inputs
}

// pathOf is the ports that a flow takes. It must have one path only.
func (p *plan) pathOf(from, to string) ([]uint32, error) {
	dst := p.host(to)
	path := []uint32{p.nodes[p.host(from)].ports[0]}
	for node := p.ports[path[0]].peer; node != dst; {
		out := p.paths.Ports(node, dst)
		if len(out) != 1 {
			return nil, fmt.Errorf("from %s to %s there are %d paths at %s: `detectors` need a network with one", from, to, len(out), p.nodes[node].name)
		}
		id := uint32(out[0] + 1)
		path = append(path, id)
		node = p.ports[id].peer
	}
	return path, nil
}

// checkPaths fails if detectors are to be judged, and a flow has several paths.
func (p *plan) checkPaths() error {
	if !p.exp.Switch.Detectors {
		return nil
	}
	for _, f := range p.exp.Flows {
		if _, err := p.pathOf(f.From, f.To); err != nil {
			return err
		}
	}
	for _, b := range p.exp.Bursts {
		for _, from := range b.From {
			if _, err := p.pathOf(from, b.To); err != nil {
				return err
			}
		}
	}
	return nil
}

// truth is the network that the run's flows make.
func (c *collector) truth() (*truth, error) {
	p, e := c.f.plan, c.f.plan.exp
	t := &truth{binNs: uint64(e.Sample), ports: map[uint32]*fluidPort{}, lastly: 2 * float64(e.Frame)}
	port := func(id uint32) *fluidPort {
		changes := p.rateChanges(id, c.t0Ns)
		return &fluidPort{rateBps: func(ns uint64) uint64 {
			rate := p.ports[id].rateBps
			for _, change := range changes {
				if change.AtNs <= ns {
					rate = change.RateBps
				}
			}
			return rate
		}}
	}
	for _, s := range c.t.streams {
		path, err := p.pathOf(s.From, s.To)
		if err != nil {
			return nil, err
		}
		t.addFlow(&fluid{path, c.streamOffers(s)}, port)
	}
	for _, s := range c.t.shots {
		path, err := p.pathOf(s.from, s.to)
		if err != nil {
			return nil, err
		}
		t.addFlow(&fluid{path, c.shotOffers(s)}, port)
	}
	t.sort()
	return t, nil
}

// streamOffers is what a TCP flow's control lets it send, from its start until it has sent its size.
func (c *collector) streamOffers(s *stream) func(fromNs, toNs uint64) float64 {
	e := c.f.plan.exp
	left := float64(s.Size) * float64(e.Frame) / float64(e.Frame-ethHeader-tcpIPHeader)
	return func(fromNs, toNs uint64) float64 {
		rate := uint64(s.InitialRate)
		if x, ok := c.sending[s.id][fromNs/(toNs-fromNs)]; ok && x.RateBps > 0 {
			rate = min(x.RateBps, uint64(s.LimitRate))
		}
		if toNs <= s.startNs {
			return 0
		}
		bytes := float64(rate) * float64(toNs-max(fromNs, s.startNs)) / 8e9
		if s.Size != 0 {
			bytes = min(bytes, left)
			left -= bytes
		}
		return bytes
	}
}

// shotOffers is all of a burst's flow at its start, or as much as its rate says.
func (c *collector) shotOffers(s *shot) func(fromNs, toNs uint64) float64 {
	startNs := c.t0Ns + s.startNs
	left := float64(s.bytes) + float64(s.frames)*(ethHeader+udpIPHeader)
	frame := left / float64(s.frames)
	return func(fromNs, toNs uint64) float64 {
		if toNs <= startNs {
			return 0
		}
		bytes := left
		if s.gapNs != 0 {
			bytes = min(left, frame*float64(toNs-max(fromNs, startNs))/float64(s.gapNs))
		}
		left -= bytes
		return bytes
	}
}

// states are what detectors said of each switch port that flows cross, and what is true of it.
func (c *collector) states() ([]result.State, error) {
	if !c.f.plan.exp.Switch.Detectors {
		return nil, nil
	}
	t, err := c.truth()
	if err != nil {
		return nil, err
	}
	var rows []result.State
	sampleNs := uint64(c.f.plan.exp.Sample)
	latest := map[uint32]npecn.TCDState{}
	first, last := c.bins()
	for bin := first; bin < last; bin++ {
		inputs := t.step(bin * sampleNs)
		for _, id := range t.order {
			p := c.f.plan.ports[id]
			if c.f.plan.nodes[p.node].isHost {
				continue
			}
			d, ok := c.detected[id][bin]
			if !ok {
				d = npecn.Detections{State: latest[id]}
			}
			latest[id] = d.State
			rows = append(rows, result.State{
				TimeNs: c.since(bin * sampleNs), Port: p.name, TCD: tcdStates[d.State],
				OffNs: c.offWithin(id, bin*sampleNs, (bin+1)*sampleNs), SentPackets: uint64(c.queues[id][bin].SentPackets),
				NPECNPackets: uint64(d.NPECN), ECNPackets: uint64(d.ECN), FECNPackets: uint64(d.FECN),
				TCDCEPackets: uint64(d.TCDCE), TCDUEPackets: uint64(d.TCDUE),
				InputBps: inputs[id].bps, Congested: inputs[id].congested,
			})
		}
	}
	return rows, nil
}

// tcdStates are those of bpf/algo/tcd.h.
var tcdStates = map[npecn.TCDState]result.TCDState{
	npecn.NonCongestion: result.NonCongestion, npecn.Draining: result.Draining,
	npecn.Undetermined: result.Undetermined, npecn.Congestion: result.Congestion,
}

// offWithin is for how long a port was OFF in a period, in any class.
func (c *collector) offWithin(id uint32, fromNs, toNs uint64) int64 {
	var sum uint64
	for _, o := range c.offs[id] {
		if from, to := max(o.FromNs, fromNs), min(o.ToNs, toNs); from < to {
			sum += to - from
		}
	}
	return int64(min(sum, toNs-fromNs))
}
