// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/truth"
)

// said is what the detectors of a port said of the packets of a bin.
type said struct {
	sentPackets                    uint64
	npecn, ecn, fecn, tcdCE, tcdUE uint32
	state                          uint32 // TCD's, after the latest packet
}

// takeSaid returns what was said in the bin that ends, and clears it.
func (c *core) takeSaid(p *port) said {
	if p.core == 0 {
		return said{}
	}
	take := func(offset uint32) uint32 {
		n := c.u32(p.core + offset)
		c.put32(p.core+offset, 0)
		return n
	}
	s := said{sentPackets: p.counters.sentPackets - p.bin.sentPackets,
		state: c.u32(p.core + c.said.state)}
	s.npecn, s.ecn, s.fecn = take(c.said.npecn), take(c.said.ecn), take(c.said.fecn)
	s.tcdCE, s.tcdUE = take(c.said.tcdCE), take(c.said.tcdUE)
	return s
}

// checkPaths fails if detectors are to be judged and a flow has several paths.
func (w *world) checkPaths() error {
	if !w.watch {
		return nil
	}
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		for _, id := range w.transport.dataPath(f)[1:] {
			at := w.ports[id].node
			if n := len(w.plan.routes.Ports(int(at), int(f.key.dst))); n != 1 {
				return fmt.Errorf("from %s to %s there are %d paths at %s: `detectors` need a "+
					"network with one", f.spec.From, f.spec.To, n, w.plan.nodeNames[at])
			}
		}
	}
	return nil
}

// tcdStates returns TCD's states by their numbers in bpf/algo/tcd.h.
func (w *world) tcdStates() (map[uint32]result.TCDState, error) {
	states := map[uint32]result.TCDState{}
	for name, state := range map[string]result.TCDState{
		"TCD_NON_CONGESTION": result.NonCongestion, "TCD_DRAINING": result.Draining,
		"TCD_UNDETERMINED": result.Undetermined, "TCD_CONGESTION": result.Congestion,
	} {
		n, err := w.core.layout.value("tcd_state", name)
		if err != nil {
			return nil, err
		}
		states[uint32(n)] = state
	}
	return states, nil
}

// states returns, for each switch port that flows cross, what the detectors said and what is true.
func (w *world) states() ([]result.State, error) {
	if !w.watch {
		return nil, nil
	}
	names, err := w.tcdStates()
	if err != nil {
		return nil, err
	}
	model, r := w.truth(), &w.record
	width := int64(w.plan.exp.Sample)
	begin := w.t0 - int64(w.plan.exp.Warmup)
	var rows []result.State
	for bin := range int((w.end - begin) / width) {
		from := begin + int64(bin)*width
		inputs := model.Step(uint64(from))
		for _, id := range model.Order() {
			if w.ports[id].fromHost {
				continue
			}
			s, in := r.said[id][bin], inputs[id]
			var off int64
			for _, o := range r.offs[id] {
				off += o.within(from, from+width)
			}
			rows = append(rows, result.State{
				TimeNs: w.sinceStart(from), Port: w.plan.portNames[id], TCD: names[s.state],
				OffNs: min(off, width), SentPackets: s.sentPackets,
				NPECNPackets: uint64(s.npecn), ECNPackets: uint64(s.ecn),
				FECNPackets: uint64(s.fecn), TCDCEPackets: uint64(s.tcdCE),
				TCDUEPackets: uint64(s.tcdUE), InputBps: in.Bps, Congested: in.Congested,
			})
		}
	}
	return rows, nil
}

// truth models the network without pauses.
func (w *world) truth() *truth.Truth {
	e := w.plan.exp
	t := truth.New(uint64(e.Sample), uint64(e.Frame))
	rateOf := func(id uint32) func(uint64) uint64 { return w.rateAt(int32(id)) }
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		var path []uint32
		for _, id := range w.transport.dataPath(f) {
			path = append(path, uint32(id))
		}
		t.AddFlow(path, w.offered(f), rateOf)
	}
	t.Sort()
	return t
}

// offered returns what a flow offers.
func (w *world) offered(f *flow) truth.Offered {
	if f.kind == packetUDP {
		return truth.Burst{
			StartNs:   uint64(f.start),
			WireBytes: float64(f.size) + float64(f.packets)*(ethHeader+udpIPHeader),
			Frames:    int(f.packets), GapNs: f.gap >> gapShift,
		}.Offered()
	}
	begin := uint64(w.t0) - uint64(w.plan.exp.Warmup)
	return truth.Stream{
		StartNs:   uint64(f.start),
		WireBytes: float64(f.size) * float64(f.frame) / float64(f.mss),
		RateBps:   uint64(f.spec.InitialRate), LimitBps: f.limitRate,
		Sampled: func(from, to uint64) uint64 {
			return w.record.rates[f.id][(from-begin)/(to-from)]
		},
	}.Offered()
}

// rateAt returns the rate of a port as a function of the time.
func (w *world) rateAt(id int32) func(at uint64) uint64 {
	return func(at uint64) uint64 {
		rate := w.plan.network.Links[id/2].RateBps
		latest := int64(-1)
		for _, c := range w.changes {
			when := w.t0 + c.at
			if c.port == id && when <= int64(at) && when >= latest {
				rate, latest = c.rate, when
			}
		}
		return rate
	}
}
