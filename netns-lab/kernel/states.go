// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/truth"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// tcdStates are those of bpf/algo/tcd.h.
var tcdStates = map[npecn.TCDState]result.TCDState{
	npecn.NonCongestion: result.NonCongestion, npecn.Draining: result.Draining,
	npecn.Undetermined: result.Undetermined, npecn.Congestion: result.Congestion,
}

// states returns, for each switch port that flows cross, what the detectors said and what is true.
func (c *collector) states() ([]result.State, error) {
	p := c.fabric.plan
	if !p.exp.Switch.Detectors {
		return nil, nil
	}
	t, err := newTruth(p, c.window, c.traffic, c.senders.bins)
	if err != nil {
		return nil, err
	}
	var rows []result.State
	latest := map[uint32]npecn.TCDState{}
	first, end := c.window.bins()
	for bin := first; bin < end; bin++ {
		inputs := t.Step(bin * c.window.sampleNs)
		for _, id := range t.Order() {
			if p.nodes[p.ports[id].node].isHost {
				continue
			}
			d, ok := c.events.detected[id][bin]
			if !ok {
				d = npecn.Detections{State: latest[id]}
			}
			latest[id] = d.State
			rows = append(rows, c.events.stateRow(id, bin, d, inputs[id]))
		}
	}
	return rows, nil
}

func (l *eventLog) stateRow(
	id uint32, bin uint64, d npecn.Detections, in truth.Input,
) result.State {
	fromNs, toNs := bin*l.window.sampleNs, (bin+1)*l.window.sampleNs
	return result.State{
		TimeNs: l.window.since(fromNs), Port: l.plan.ports[id].name, TCD: tcdStates[d.State],
		OffNs:        offWithin(l.offs[id], fromNs, toNs),
		SentPackets:  uint64(l.queues[id][bin].SentPackets),
		NPECNPackets: uint64(d.NPECN), ECNPackets: uint64(d.ECN), FECNPackets: uint64(d.FECN),
		TCDCEPackets: uint64(d.TCDCE), TCDUEPackets: uint64(d.TCDUE),
		InputBps: in.Bps, Congested: in.Congested,
	}
}

// offWithin returns how long a port was OFF in a period, in any class.
func offWithin(offs []npecn.Off, fromNs, toNs uint64) int64 {
	var sum uint64
	for _, o := range offs {
		if from, to := max(o.FromNs, fromNs), min(o.ToNs, toNs); from < to {
			sum += to - from
		}
	}
	return int64(min(sum, toNs-fromNs))
}
