// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"math"
	"net/netip"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// recorder keeps what the result needs.
type recorder struct {
	series []result.Sample
	pfc    []result.PFCEvent
	rows   []row
	sent   map[string]bool // senders in the series; nil: all
}

// row is a flow of the series, or a sum of several.
type row struct {
	name  string
	parts []part
}

// part is a share of a source's fluid.
type part struct {
	source *source
	share  float64
}

// begin chooses which flows are in the series.
func (r *recorder) begin(m *model) {
	all := len(m.exp.Flows) <= experiment.MaxInSeries
	received := m.exp.ReceivedSeries()
	if !all {
		r.sent = m.exp.SentSeries()
	}
	var sums []row
	groups := map[string]int{}
	for _, s := range m.sources {
		for _, name := range s.names {
			if all || s.unresponsive() || received[name] || name == s.group {
				r.rows = append(r.rows, row{name, []part{{s, 1 / s.flows}}})
			}
		}
		if s.unresponsive() || all || slices.Contains(s.names, s.group) {
			continue
		}
		k, ok := groups[s.group]
		if !ok {
			k = len(sums)
			groups[s.group] = k
			sums = append(sums, row{name: s.group})
		}
		sums[k].parts = append(sums[k].parts, part{s, 1})
	}
	r.rows = append(r.rows, sums...)
	for _, p := range m.ports {
		p.bin = bin{}
	}
}

// pause notes a PAUSE or RESUME that the switch behind a port sends.
func (r *recorder) pause(m *model, p *port, kind result.PFCKind) {
	at := int64(float64(m.step-m.start) * m.stepNs) // the beginning of the step, after t = 0
	for _, id := range m.physical {
		if id.port != p {
			continue
		}
		r.pfc = append(r.pfc, result.PFCEvent{
			SentNs: at, EffectNs: at + int64(float64(p.loop)*m.stepNs),
			From: m.setup.names[id.peer], To: m.setup.names[id.node] + id.link.Suffix,
			Class: experiment.DataClass(0), Kind: kind,
		})
	}
}

// endBin ends a bin of the series.
func (r *recorder) endBin(m *model) {
	width := float64(m.exp.Sample) / 1e9
	at := int64(float64(m.step+1-m.perBin-m.start) * m.stepNs)
	at = int64(math.Round(float64(at)/float64(m.exp.Sample))) * int64(m.exp.Sample)
	for _, id := range m.physical {
		p := id.port
		r.series = append(r.series, result.Sample{
			TimeNs: at, Kind: result.KindPort, Name: id.name,
			RateBps:       bps(p.bin.out / width / p.copies),
			QueueBytes:    round(p.bin.atStart / p.copies),
			QueueMaxBytes: round(p.bin.longest / p.copies),
			MarkedPackets: round(p.bin.marked / p.copies / m.setup.frame),
		})
	}
	for _, p := range m.ports {
		p.bin = bin{atStart: p.length, longest: p.length}
	}
	for _, row := range r.rows {
		var got amount
		for _, x := range row.parts {
			got.bytes += x.source.bin.bytes * x.share
			got.marked += x.source.bin.marked * x.share
		}
		r.series = append(r.series, result.Sample{
			TimeNs: at, Kind: result.KindFlow, Name: row.name, RateBps: bps(got.bytes / width),
			MarkedPackets: round(got.marked / m.setup.frame),
		})
	}
	for _, s := range m.sources {
		s.bin = amount{}
		if s.unresponsive() {
			continue
		}
		for _, name := range s.names {
			if r.sent == nil || r.sent[name] {
				r.series = append(r.series, s.sample(name, at))
			}
		}
	}
}

// sample is the state of a flow's sender.
func (s *source) sample(name string, at int64) result.Sample {
	v := result.Sample{
		TimeNs: at, Kind: result.KindSender, Name: name, SRTTNs: int64(math.Round(s.rtt * 1e9)),
		RateBps: bps(s.law.rate(s.base + s.waits())), CNPs: round(s.cnps),
	}
	if w, ok := s.law.(interface{ packets() float64 }); ok {
		v.CwndPackets = round(w.packets())
	}
	return v
}

func round(x float64) uint64 { return uint64(math.Round(max(x, 0))) }

func bps(bytesPerSecond float64) uint64 { return round(bytesPerSecond * 8) }

// result assembles the result of a run that is over.
func (m *model) result() *result.Run {
	e := m.exp
	run := &result.Run{
		Experiment: e.Source(), Series: m.record.series, PFC: m.record.pfc, Trace: e.TracedFlows(),
	}
	tiers := map[string]string{}
	for _, t := range m.setup.network.Tiers() {
		for _, name := range t.Nodes {
			tiers[name] = t.Name
		}
	}
	for i, id := range m.physical {
		row := m.portRow(id, tiers[m.setup.names[id.node]])
		// PAUSE frames belong to the port that sends them, the other one of the link.
		back := m.ports[i^1]
		row.PauseSent, row.ResumeSent = back.count.pausesSent, back.count.resumesSent
		run.Ports = append(run.Ports, row)
	}
	m.addFlows(run)
	f := &run.Manifest
	f.Experiment, f.ExperimentSHA256, f.Seed = e.Name, e.Hash(), e.Seed
	f.Scheme = m.setup.scheme.Name
	f.DilationShift, f.Case = e.Dilation.Shift, e.CaseName
	f.DurationNs, f.WarmupNs, f.SampleNs = int64(e.Duration), int64(e.Warmup), int64(e.Sample)
	f.BaseRTTNs = int64(m.setup.rttNs)
	f.Engine, f.Deterministic = string(experiment.EngineFluid), true
	f.LostPackets = map[string]uint64{}
	f.Reasons, f.Verdict = m.reasons, result.Valid
	if len(m.reasons) > 0 {
		f.Verdict = result.Invalid
	}
	return run
}

// addFlows adds a row for each flow, in the order of the experiment.
func (m *model) addFlows(run *result.Run) {
	of := map[string]*source{}
	for _, s := range m.sources {
		for _, name := range s.names {
			of[name] = s
		}
	}
	for _, f := range m.exp.Flows {
		s := of[f.Name]
		row := s.row(m, f.Name, [2]string{f.From, f.To}, result.TCP)
		row.SendRateBps = bps(s.law.rate(s.base + s.waits()))
		run.Flows = append(run.Flows, row)
		if f.Size == 0 {
			continue
		}
		c := result.Completion{
			Flow: f.Name, Group: f.Group, Src: f.From, Dst: f.To, Priority: f.Priority,
			SizeBytes: uint64(f.Size), StartNs: int64(f.Start), IdealNs: s.idealNs(),
		}
		if row.CompletionNs > 0 {
			c.FCTNs = &row.CompletionNs
		}
		run.Completions = append(run.Completions, result.NewCompletion(c))
	}
	for _, s := range m.sources {
		if !s.unresponsive() {
			continue
		}
		for i, name := range s.names {
			run.Flows = append(run.Flows, s.row(m, name, s.ends[i], result.UDP))
		}
	}
}

// row returns a flow's counters. Bytes are those of frames, and packets are full ones.
func (s *source) row(
	m *model, name string, ends [2]string, proto result.Proto,
) result.Flow {
	each := func(x float64) uint64 { return round(x / s.flows) }
	addr := func(host string) string {
		var a netip.Addr = network.HostAddr(m.setup.number[host])
		return a.String()
	}
	r := result.Flow{
		Name: name, Group: s.group, Scheme: m.setup.scheme.Name, Src: ends[0], Dst: ends[1],
		SrcAddr: addr(ends[0]), DstAddr: addr(ends[1]), Proto: proto, Priority: uint8(s.priority),
		StartNs: s.startNs, SentBytes: each(s.sent), ReceivedBytes: each(s.received),
		Packets: each(s.received / m.setup.frame), MarkedPackets: each(s.marked / m.setup.frame),
		SRTTNs: int64(math.Round(s.rtt * 1e9)), ECN: proto == result.TCP,
	}
	if s.done > 0 {
		end := int64(float64(s.done-m.start) * m.stepNs)
		r.EndNs = &end
		r.CompletionNs = end - s.startNs + int64(float64(s.back)*m.stepNs)
	}
	return r
}

// idealNs is the completion time of a flow that is alone and sends at line rate.
func (s *source) idealNs() int64 {
	slowest := math.Inf(1)
	for _, p := range s.path {
		slowest = min(slowest, float64(p.link.RateBps)/8)
	}
	return int64(math.Round((s.base + s.size/slowest) * 1e9))
}

func (d *dctcp) packets() float64 { return d.window }
func (l *ldcp) packets() float64  { return l.window }
