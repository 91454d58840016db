// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// rows makes the result's rows of flows, completions and ports.
type rows struct {
	plan     *plan
	scheme   string
	window   window
	traffic  *traffic
	counters *counters
}

func (r *rows) flows() []result.Flow {
	var rows []result.Flow
	for i, s := range r.traffic.streams {
		rows = append(rows, r.stream(s, r.counters.arrivals[i], &r.counters.senders[i]))
	}
	for _, b := range r.traffic.bursts.flows {
		rows = append(rows, r.burst(b, r.counters.arrivals[b.id]))
	}
	return rows
}

func (r *rows) stream(s *stream, a tc.Arrival, x *senderState) result.Flow {
	row := flowRow(s.Name, s.From, s.To, s.key, a)
	row.Group, row.Priority = s.Group, uint8(s.Priority)
	row.Scheme, row.Proto, row.StartNs = r.scheme, result.TCP, r.window.since(s.startNs)
	row.SentBytes, row.EchoedPackets = x.sentBytes, uint64(x.flow.MarkedPackets)
	row.CNPDecrease, row.CNPIncrease = x.flow.CNPDecrease, x.flow.CNPIncrease
	row.SendRateBps, row.RecRateBps = x.flow.SendRateBps, x.flow.RecRateBps
	row.CwndPackets, row.Stats = x.cwndPackets, statsOf(x.flow)
	row.SRTTNs, row.Retransmissions, row.Timeouts = x.srttNs, x.retransmissions, x.timeouts
	row.ECN = x.ecn
	if x.completedNs != 0 {
		row.CompletionNs = int64(x.completedNs - s.startNs)
	}
	if size := uint64(s.Size); size != 0 && x.sentBytes >= size && row.ReceivedBytes >= size {
		row.EndNs = new(r.window.since(a.LastNs))
	}
	return row
}

// statsOf returns the statistics that the flow's algorithm keeps.
func statsOf(f loader.Flow) []result.Stat {
	var stats []result.Stat
	keys, values := f.Stats()
	for i, s := range keys {
		stats = append(stats, result.Stat{Key: s.Key, Value: values[i]})
	}
	return stats
}

func (r *rows) burst(b *burstFlow, a tc.Arrival) result.Flow {
	row := flowRow(b.name, b.from, b.to, b.key, a)
	row.Group, row.Priority = b.group, uint8(b.priority)
	row.Scheme, row.Proto, row.StartNs = r.scheme, result.UDP, int64(b.startNs)
	row.SentBytes = b.bytes
	if a.Packets >= uint64(b.frames) {
		row.EndNs = new(r.window.since(a.LastNs))
	}
	return row
}

func flowRow(name, from, to string, k loader.FlowKey, a tc.Arrival) result.Flow {
	return result.Flow{
		Name: name, Src: from, Dst: to,
		SrcAddr: k.Src.Addr().String(), SrcPort: k.Src.Port(),
		DstAddr: k.Dst.Addr().String(), DstPort: k.Dst.Port(),
		ReceivedBytes: a.PayloadBytes, Packets: a.Packets, MarkedPackets: a.MarkedPackets,
	}
}

// completions returns the completions of the flows with a size.
func (r *rows) completions() []result.Completion {
	var rows []result.Completion
	for i, s := range r.traffic.streams {
		if s.Size == 0 {
			continue
		}
		row := result.Completion{
			Flow: s.Name, Group: s.Group, Src: s.From, Dst: s.To, Priority: s.Priority,
			SizeBytes: uint64(s.Size), StartNs: r.window.since(s.startNs),
			IdealNs: r.plan.idealNs(s.From, s.To, uint64(s.Size)),
		}
		if at := r.counters.senders[i].completedNs; at != 0 {
			row.FCTNs = new(int64(at - s.startNs))
		}
		rows = append(rows, result.NewCompletion(row))
	}
	return rows
}

func (r *rows) port(id int, o npecn.Port, s *npecn.Stats) result.Port {
	p, late := r.plan.ports[id], &r.counters.late[id]
	return result.Port{
		Name: p.name, Node: r.plan.nodes[p.node].name, Peer: r.plan.nodes[p.peer].name,
		Tier: r.plan.nodes[p.node].tier, RateBps: o.RateBps, DelayNs: int64(o.DelayNs),
		EnqueuedPackets: s.EnqueuedPackets, EnqueuedBytes: s.EnqueuedBytes,
		SentPackets: s.SentPackets, SentBytes: s.SentBytes,
		QueuedPackets: s.QueuedPackets, MarkedPackets: s.MarkedPackets,
		DroppedWREDPackets: s.Drops[npecn.DropWRED], DroppedTailPackets: s.Drops[npecn.DropTail],
		DroppedBufferPackets:  s.Drops[npecn.DropBuffer],
		DroppedRingPackets:    s.Drops[npecn.DropRing],
		DroppedNoClassPackets: s.Drops[npecn.DropClass],
		DroppedResetPackets:   s.Drops[npecn.DropReset],
		PauseSent:             s.PauseSent, ResumeSent: s.ResumeSent,
		PauseReceived: s.PauseReceived, ResumeReceived: s.ResumeReceived,
		PausedNs: int64(s.PausedNs), QueueMaxBytes: s.QueueMaxBytes,
		LatenessP50Ns: int64(late.QuantileNs(0.5)), LatenessP99Ns: int64(late.QuantileNs(0.99)),
		LatenessMaxNs: int64(late.MaxNs),
	}
}
