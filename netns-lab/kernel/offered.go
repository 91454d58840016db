// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/truth"
)

// newTruth makes the network that the run's flows cross. The rates of streams are those in sampled:
// by stream, then bin.
func newTruth(
	p *plan, w window, t *traffic, sampled []map[uint64]result.Sample,
) (*truth.Truth, error) {
	out := truth.New(uint64(p.exp.Sample), uint64(p.exp.Frame))
	rateOf := func(id uint32) func(ns uint64) uint64 { return p.rateAt(id, w.t0Ns) }
	for _, s := range t.streams {
		path, err := p.pathOf(s.From, s.To)
		if err != nil {
			return nil, err
		}
		out.AddFlow(path, streamOffered(s, p.exp, sampled[s.id]), rateOf)
	}
	for _, b := range t.bursts.flows {
		path, err := p.pathOf(b.from, b.to)
		if err != nil {
			return nil, err
		}
		out.AddFlow(path, burstOffered(b, w.t0Ns), rateOf)
	}
	out.Sort()
	return out, nil
}

// rateAt returns the rate of a port as a function of the time, with t = 0 at t0Ns.
func (p *plan) rateAt(id uint32, t0Ns uint64) func(ns uint64) uint64 {
	changes := p.rateChanges(id, t0Ns)
	return func(ns uint64) uint64 {
		rate := p.ports[id].rateBps
		for _, change := range changes {
			if change.AtNs <= ns {
				rate = change.RateBps
			}
		}
		return rate
	}
}

// pathOf returns the ports that a flow takes. It must have one path only.
func (p *plan) pathOf(from, to string) ([]uint32, error) {
	dst := p.host(to)
	path := []uint32{p.nodes[p.host(from)].ports[0]}
	for node := p.ports[path[0]].peer; node != dst; {
		out := p.paths.Ports(node, dst)
		if len(out) != 1 {
			return nil, fmt.Errorf(
				"from %s to %s there are %d paths at %s: `detectors` need a network with one",
				from, to, len(out), p.nodes[node].name)
		}
		id := uint32(out[0] + 1)
		path = append(path, id)
		node = p.ports[id].peer
	}
	return path, nil
}

// checkPaths fails if a flow has several paths and detectors must be judged.
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

// streamOffered returns the bytes that a TCP flow's control lets it send.
func streamOffered(
	s *stream, e *experiment.Experiment, sampled map[uint64]result.Sample,
) truth.Offered {
	return truth.Stream{
		StartNs:   s.startNs,
		WireBytes: float64(s.Size) * float64(e.Frame) / float64(e.Frame-ethHeader-tcpIPHeader),
		RateBps:   uint64(s.InitialRate), LimitBps: uint64(s.LimitRate),
		Sampled: func(fromNs, toNs uint64) uint64 {
			return sampled[fromNs/(toNs-fromNs)].RateBps
		},
	}.Offered()
}

// burstOffered returns the bytes that a burst's flow offers.
func burstOffered(b *burstFlow, t0Ns uint64) truth.Offered {
	return truth.Burst{
		StartNs:   t0Ns + b.startNs,
		WireBytes: float64(b.bytes) + float64(b.frames)*(ethHeader+udpIPHeader),
		Frames:    b.frames, GapNs: b.gapNs,
	}.Offered()
}
