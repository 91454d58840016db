// SPDX-License-Identifier: Apache-2.0

// Package truth models a network without pauses, to tell what detectors of congestion should have
// said. Each port takes what flows offer, sends as much as its rate allows, to each flow in
// proportion to what it has there, and keeps the rest. Time moves in bins of the series; links take
// no time. A port is congested while it keeps bytes: only an input above its capacity makes it keep
// any.
package truth

// Truth is a network and its flows.
type Truth struct {
	binNs      uint64
	flows      []*fluidFlow
	ports      map[uint32]*fluidPort
	order      []uint32 // ports in the order of paths, unless these go in a circle
	slackBytes float64  // bytes that a port may keep and not be congested: two frames
}

// New returns a network without flows, whose time moves in bins. A frame has so many bytes.
func New(binNs, frameBytes uint64) *Truth {
	return &Truth{
		binNs: binNs, ports: map[uint32]*fluidPort{}, slackBytes: 2 * float64(frameBytes),
	}
}

// Order returns the ports that flows cross, in the order of paths, unless these go in a circle.
func (t *Truth) Order() []uint32 { return t.order }

// fluidFlow is a flow on one path.
type fluidFlow struct {
	path    []uint32
	offered Offered
	first   *share
}

type fluidPort struct {
	rateBps func(ns uint64) uint64
	shares  []*share
}

// share is a flow's backlog at a port, in bytes.
type share struct {
	in, kept float64
	next     *share // at the next port of the path; nil at the last
}

// Input holds what a port receives in a bin.
type Input struct {
	Bps       uint64
	Congested bool
}

// Offered returns the bytes that a flow hands to its host's port in a time. It is called for one
// time after the other.
type Offered func(fromNs, toNs uint64) float64

// AddFlow sends a flow along its path, from its host's port on. rateOf returns the rate of a port
// as a function of the time.
func (t *Truth) AddFlow(
	path []uint32, offered Offered, rateOf func(id uint32) func(ns uint64) uint64,
) {
	f := &fluidFlow{path: path, offered: offered}
	t.flows = append(t.flows, f)
	var before *share
	for _, id := range f.path {
		if t.ports[id] == nil {
			t.ports[id] = &fluidPort{rateBps: rateOf(id)}
		}
		s := &share{}
		t.ports[id].shares = append(t.ports[id].shares, s)
		if before == nil {
			f.first = s
		} else {
			before.next = s
		}
		before = s
	}
}

// Sort puts ports in the order of paths, when all flows are there.
func (t *Truth) Sort() {
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
		next := firstOpen(before, done)
		done[next] = true
		t.order = append(t.order, next)
	}
}

// firstOpen is the lowest of the open ports with the fewest open ports before them: none, unless
// paths go in a circle.
func firstOpen(before map[uint32]map[uint32]bool, done map[uint32]bool) uint32 {
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

// Step moves everything on to the end of a bin, and returns what each port took in.
func (t *Truth) Step(fromNs uint64) map[uint32]Input {
	toNs := fromNs + t.binNs
	for _, f := range t.flows {
		f.first.in += f.offered(fromNs, toNs)
	}
	inputs := map[uint32]Input{}
	for _, id := range t.order {
		inputs[id] = t.stepPort(t.ports[id], fromNs)
	}
	return inputs
}

func (t *Truth) stepPort(p *fluidPort, fromNs uint64) Input {
	var in, all float64
	for _, s := range p.shares {
		in += s.in
		all += s.in + s.kept
	}
	sent := min(1, float64(p.rateBps(fromNs))*float64(t.binNs)/8e9/max(all, 1)) // share of all
	for _, s := range p.shares {
		out := float64((s.in + s.kept) * sent) // rounded: the same on every machine
		s.kept += s.in - out
		s.in = 0
		if s.next != nil {
			s.next.in += out
		}
	}
	return Input{Bps: uint64(in * 8e9 / float64(t.binNs)), Congested: all*(1-sent) > t.slackBytes}
}
