// SPDX-License-Identifier: Apache-2.0

package kernel

// truth models the network without pauses, to tell what detectors should have said. Each port takes
// what flows offer, sends as much as its rate allows, to each flow in proportion to what it has
// there, and keeps the rest. Time moves in bins of the series; links take no time. A port is
// congested while it keeps bytes: only an input above its capacity makes it keep any.
type truth struct {
	binNs      uint64
	flows      []*fluidFlow
	ports      map[uint32]*fluidPort
	order      []uint32 // ports in the order of paths, unless these go in a circle
	slackBytes float64  // bytes that a port may keep and not be congested: two frames
}

// fluidFlow is a flow on one path.
type fluidFlow struct {
	path    []uint32
	offered func(fromNs, toNs uint64) float64 // bytes that it hands to its host's port
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

// input holds what a port receives in a bin.
type input struct {
	bps       uint64
	congested bool
}

// addFlow sends a flow along its path, from its host's port on.
func (t *truth) addFlow(f *fluidFlow, port func(id uint32) *fluidPort) {
	t.flows = append(t.flows, f)
	var before *share
	for _, id := range f.path {
		if t.ports[id] == nil {
			t.ports[id] = port(id)
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

// sort puts ports in the order of paths.
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

// step moves everything on to the end of a bin, and returns what each port took in.
func (t *truth) step(fromNs uint64) map[uint32]input {
	toNs := fromNs + t.binNs
	for _, f := range t.flows {
		f.first.in += f.offered(fromNs, toNs)
	}
	inputs := map[uint32]input{}
	for _, id := range t.order {
		inputs[id] = t.stepPort(t.ports[id], fromNs)
	}
	return inputs
}

func (t *truth) stepPort(p *fluidPort, fromNs uint64) input {
	var in, all float64
	for _, s := range p.shares {
		in += s.in
		all += s.in + s.kept
	}
	sent := min(1, float64(p.rateBps(fromNs))*float64(t.binNs)/8e9/max(all, 1)) // share of all
	for _, s := range p.shares {
		out := (s.in + s.kept) * sent
		s.kept += s.in - out
		s.in = 0
		if s.next != nil {
			s.next.in += out
		}
	}
	return input{bps: uint64(in * 8e9 / float64(t.binNs)), congested: all*(1-sent) > t.slackBytes}
}
