// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"net/netip"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/network"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// recorder keeps what the result needs.
type recorder struct {
	bin      int64 // start of the bin that is not over
	series   []result.Sample
	pfc      []result.PFCEvent
	repeats  []result.PauseRepeats
	flows    []result.Flow
	complete []result.Completion
	deadlock *result.Deadlock

	watched []bool    // flows whose senders are in the series
	rows    []flowRow // of the series

	watch   func(result.Moment) // nil if nobody watches
	toldPFC int                 // how many events of pfc watch has got

	// If detectors are judged:
	offs  [][]offTimes // of each port, in the order of time
	said  [][]said     // of each port, by bin
	rates [][]uint64   // of each controlled flow's sender, by bin
}

// flowRow is a flow of the series, or the sum of several.
type flowRow struct {
	name  string
	flows []int32
	first bool // no row yet
}

// offTimes is when a queue of a port was OFF.
type offTimes struct{ from, to int64 }

// within returns how much of it is in a period.
func (o offTimes) within(from, to int64) int64 { return max(min(o.to, to)-max(o.from, from), 0) }

// begin chooses what is recorded.
func (r *recorder) begin(w *world) {
	r.bin = w.now
	e := w.plan.exp
	r.watched = make([]bool, len(w.flows))
	if w.watch {
		r.offs = make([][]offTimes, len(w.ports))
		r.said = make([][]said, len(w.ports))
		r.rates = make([][]uint64, w.streams)
	}
	all := w.streams <= experiment.MaxInSeries
	received, sent := e.ReceivedSeries(), e.SentSeries()
	groups := map[string]int{}
	var sums []flowRow
	for i := range w.flows {
		f := &w.flows[i]
		if i >= w.streams || all || received[f.name] || f.name == f.group {
			r.rows = append(r.rows, flowRow{name: f.name, flows: []int32{f.id}, first: true})
		}
		if i >= w.streams {
			continue
		}
		r.watched[i] = all || w.watch || sent[f.name]
		if all || f.name == f.group {
			continue
		}
		k, ok := groups[f.group]
		if !ok {
			k = len(sums)
			groups[f.group] = k
			sums = append(sums, flowRow{name: f.group, first: true})
		}
		sums[k].flows = append(sums[k].flows, f.id)
	}
	r.rows = append(r.rows, sums...)
}

// endBin ends a bin of the series.
func (r *recorder) endBin(w *world) {
	if w.draining {
		return
	}
	width := uint64(w.plan.exp.Sample)
	at, before := w.sinceStart(r.bin), len(r.series)
	for id := range w.ports {
		r.endPortBin(w, id, at, width)
	}
	for i := range r.rows {
		r.endFlowBin(w, &r.rows[i], at, width)
	}
	for i := range w.flows {
		f := &w.flows[i]
		f.binBytes, f.binMarked = 0, 0
		if r.watched[i] {
			s := w.senderSample(f, at)
			r.series = append(r.series, s)
			if w.watch {
				r.rates[i] = append(r.rates[i], s.RateBps)
			}
		}
	}
	if r.watch != nil {
		r.watch(result.Moment{TimeNs: at, Samples: r.series[before:], PFC: r.pfc[r.toldPFC:]})
		r.toldPFC = len(r.pfc)
	}
	r.bin = w.now
	if w.now < w.end {
		w.events.push(w.now+int64(width), evBin, 0)
	}
}

func (r *recorder) endPortBin(w *world, id int, at int64, width uint64) {
	p := &w.ports[id]
	b, c := &p.bin, &p.counters
	r.series = append(r.series, result.Sample{
		TimeNs: at, Kind: result.KindPort, Name: w.plan.portNames[id],
		RateBps:    (c.sentBytes - b.sentBytes) * 8_000_000_000 / width,
		QueueBytes: b.queueBytes, QueueMaxBytes: p.queueMax,
		MarkedPackets: p.markedPackets - b.markedPackets,
	})
	r.endRepeats(w, id, at)
	if w.watch {
		r.said[id] = append(r.said[id], w.core.takeSaid(p))
	}
	p.beginBin()
}

// endRepeats notes the PAUSE frames of switches that repeat them.
func (r *recorder) endRepeats(w *world, id int, at int64) {
	p := &w.ports[id]
	for c := range p.queues {
		if q := &p.queues[c]; q.frames > 0 {
			r.repeats = append(r.repeats, result.PauseRepeats{
				TimeNs: at, From: w.plan.nodeNames[p.node], To: w.plan.devices[id],
				Class: w.ranks.class[c], Frames: q.frames,
			})
			q.frames = 0
		}
	}
}

func (r *recorder) endFlowBin(w *world, row *flowRow, at int64, width uint64) {
	var bytes, marked uint64
	for _, id := range row.flows {
		bytes += w.flows[id].binBytes
		marked += w.flows[id].binMarked
	}
	if bytes == 0 && !row.first && w.streams > experiment.MaxInSeries {
		return // the one at the start says that the flow is there
	}
	row.first = false
	r.series = append(r.series, result.Sample{
		TimeNs: at, Kind: result.KindFlow, Name: row.name,
		RateBps: bytes * 8_000_000_000 / width, MarkedPackets: marked,
	})
}

// senderSample is the state of a flow's sender.
func (w *world) senderSample(f *flow, at int64) result.Sample {
	s := result.Sample{
		TimeNs: at, Kind: result.KindSender, Name: f.name, SRTTNs: f.srttNs, CNPs: f.cnps,
	}
	c := w.control
	switch {
	case c == nil:
	case c.hasRate() && f.entry == 0: // it has not started
		s.RateBps = f.initialRate
	case c.hasRate():
		s.RateBps = c.rateBps(f)
	default:
		s.CwndPackets = uint64(f.window)
		if f.srttNs > 0 {
			s.RateBps = uint64(f.window) * uint64(f.frame) * 8_000_000_000 / uint64(f.srttNs)
		}
	}
	return s
}

// off notes an OFF period of a port.
func (r *recorder) off(id int32, from, to int64) {
	r.offs[id] = append(r.offs[id], offTimes{from, to})
}

// snapshot makes the rows of flows at the end of the measured time.
func (r *recorder) snapshot(w *world) {
	r.flows = make([]result.Flow, 0, len(w.flows))
	r.complete = make([]result.Completion, 0, w.streams)
	for i := range w.flows {
		f := &w.flows[i]
		r.flows = append(r.flows, w.flowRow(f))
		if f.kind == packetData && f.size != 0 {
			r.complete = append(r.complete, w.completion(f))
		}
	}
}

func (w *world) flowRow(f *flow) result.Flow {
	row := result.Flow{
		Name: f.name, Group: f.group, Scheme: w.scheme.Name, Src: f.from, Dst: f.to,
		SrcAddr: hostAddr(f.key.src), SrcPort: f.key.srcPort,
		DstAddr: hostAddr(f.key.dst), DstPort: f.key.dstPort,
		Priority: uint8(f.priority), StartNs: w.sinceStart(f.start),
		ReceivedBytes: f.received, Packets: f.arrived, MarkedPackets: f.marked,
	}
	if f.packets != 0 && f.received >= f.size {
		row.EndNs = new(w.sinceStart(f.lastAt))
	}
	if f.kind == packetUDP {
		row.Proto, row.SentBytes = result.UDP, f.size
		return row
	}
	row.Proto, row.ECN = result.TCP, f.ecn != ecnNone
	row.SentBytes = uint64(f.nxt) * uint64(f.mss)
	if f.packets != 0 && f.nxt >= f.packets {
		row.SentBytes = f.size
	}
	row.SRTTNs = f.srttNs
	row.Retransmissions, row.Timeouts = uint64(f.retransmissions), uint64(f.timeouts)
	if f.completed != 0 {
		row.CompletionNs = f.completed - f.start
	}
	if w.control != nil && f.started {
		w.addControlled(f, &row)
	}
	return row
}

// addControlled adds what the flow's control knows.
func (w *world) addControlled(f *flow, row *result.Flow) {
	c := w.control
	row.CNPDecrease = c.u64(f.entry + c.entry.decreases)
	row.CNPIncrease = c.u64(f.entry + c.entry.increases)
	row.SendRateBps = c.u64(f.entry + c.entry.rate)
	row.RecRateBps = c.u64(f.entry + c.entry.recRate)
	row.EchoedPackets = uint64(c.u32(f.entry + c.entry.marked))
	if !c.hasRate() {
		row.CwndPackets = uint64(f.window)
	}
	entry := c.memory[f.entry : f.entry+c.flowBytes]
	for _, s := range w.scheme.Object.Stats {
		row.Stats = append(row.Stats, result.Stat{Key: s.Key, Value: s.Read(entry)})
	}
}

func (w *world) completion(f *flow) result.Completion {
	row := result.Completion{
		Flow: f.name, Group: f.group, Src: f.from, Dst: f.to, Priority: f.priority,
		SizeBytes: f.size, StartNs: w.sinceStart(f.start),
		IdealNs: w.plan.idealNs(f.from, f.to, f.size),
	}
	if f.completed != 0 {
		row.FCTNs = new(f.completed - f.start)
	}
	return result.NewCompletion(row)
}

func hostAddr(host int32) string {
	var a netip.Addr = network.HostAddr(int(host))
	return a.String()
}
