// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"cmp"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
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
	toldPFC int                 // how many events of pfc were there at the end of the last bin

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
	r.watched = make([]bool, len(w.transport.flows))
	if w.watch {
		r.offs = make([][]offTimes, len(w.ports))
		r.said = make([][]said, len(w.ports))
		r.rates = make([][]uint64, w.transport.streams)
	}
	all := w.transport.streams <= experiment.MaxInSeries
	received, sent := e.ReceivedSeries(), e.SentSeries()
	groups := map[string]int{}
	var sums []flowRow
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		if i >= w.transport.streams || all || received[f.spec.Name] || f.spec.Name == f.spec.Group {
			r.rows = append(r.rows, flowRow{name: f.spec.Name, flows: []int32{f.id}, first: true})
		}
		if i >= w.transport.streams {
			continue
		}
		r.watched[i] = all || w.watch || sent[f.spec.Name]
		if all || f.spec.Name == f.spec.Group {
			continue
		}
		k, ok := groups[f.spec.Group]
		if !ok {
			k = len(sums)
			groups[f.spec.Group] = k
			sums = append(sums, flowRow{name: f.spec.Group, first: true})
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
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		f.binBytes, f.binMarked = 0, 0
		if r.watched[i] {
			s := w.home(f.key.src).transport.senderSample(f, at)
			r.series = append(r.series, s)
			if w.watch {
				r.rates[i] = append(r.rates[i], s.RateBps)
			}
		}
	}
	r.gatherPFC(w)
	if r.watch != nil {
		r.watch(result.Moment{TimeNs: at, Samples: r.series[before:], PFC: r.pfc[r.toldPFC:]})
	}
	r.toldPFC = len(r.pfc)
	r.bin = w.now
	if w.now < w.end {
		w.pushWhole(w.now+int64(width), evBin)
	}
}

// gatherPFC takes what all parts have logged of PFC since the end of the last bin. Events at one ns
// are in the order of the names of their ends: parts have no other in common.
func (r *recorder) gatherPFC(w *world) {
	for _, x := range w.worlds() {
		if log := &x.record.pfc; log != &r.pfc {
			r.pfc = append(r.pfc, *log...)
			*log = (*log)[:0]
		}
	}
	slices.SortStableFunc(r.pfc[r.toldPFC:], func(a, b result.PFCEvent) int {
		return cmp.Or(cmp.Compare(a.SentNs, b.SentNs), cmp.Compare(a.From, b.From),
			cmp.Compare(a.To, b.To))
	})
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
		r.said[id] = append(r.said[id], w.home(p.node).core.takeSaid(p))
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
		bytes += w.transport.flows[id].binBytes
		marked += uint64(w.transport.flows[id].binMarked)
	}
	if bytes == 0 && !row.first && w.transport.streams > experiment.MaxInSeries {
		return // the one at the start says that the flow is there
	}
	row.first = false
	r.series = append(r.series, result.Sample{
		TimeNs: at, Kind: result.KindFlow, Name: row.name,
		RateBps: bytes * 8_000_000_000 / width, MarkedPackets: marked,
	})
}

// senderSample is the state of a flow's sender.
func (t *transport) senderSample(f *flow, at int64) result.Sample {
	s := result.Sample{
		TimeNs: at, Kind: result.KindSender, Name: f.spec.Name, SRTTNs: f.srttNs,
		CNPs: uint64(f.cnps),
	}
	c := t.control
	switch {
	case c == nil:
	case c.hasRate() && f.entry == 0: // it has not started
		s.RateBps = uint64(f.spec.InitialRate)
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

// snapshot makes the rows of flows at the end of the measured time.
func (r *recorder) snapshot(w *world) {
	r.flows = w.transport.rows
	if r.flows == nil {
		r.flows = make([]result.Flow, len(w.transport.flows))
	}
	r.complete = make([]result.Completion, 0, w.transport.streams)
	for i := range w.transport.flows {
		f := &w.transport.flows[i]
		if !f.retired {
			r.flows[i] = w.home(f.key.src).transport.flowRow(f)
		}
		if f.kind == packetData && f.size != 0 {
			r.complete = append(r.complete, w.transport.completion(f))
		}
	}
}

func (t *transport) flowRow(f *flow) result.Flow {
	row := result.Flow{
		Name: f.spec.Name, Group: f.spec.Group, Scheme: t.plan.scheme.Name,
		Src: f.spec.From, Dst: f.spec.To,
		SrcAddr: t.plan.addrs[f.key.src], SrcPort: f.key.srcPort,
		DstAddr: t.plan.addrs[f.key.dst], DstPort: f.key.dstPort,
		Priority: uint8(f.spec.Priority), StartNs: t.sinceStart(f.start),
		ReceivedBytes: f.received, Packets: uint64(f.arrived), MarkedPackets: uint64(f.marked),
	}
	if f.packets != 0 && f.received >= f.size {
		row.EndNs = new(t.sinceStart(f.lastAt))
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
	if t.control != nil && f.started {
		t.addControlled(f, &row)
	}
	return row
}

// addControlled adds what the flow's control knows.
func (t *transport) addControlled(f *flow, row *result.Flow) {
	c := t.control
	row.CNPDecrease = c.u64(f.entry + c.entry.decreases)
	row.CNPIncrease = c.u64(f.entry + c.entry.increases)
	row.SendRateBps = c.u64(f.entry + c.entry.rate)
	row.RecRateBps = c.u64(f.entry + c.entry.recRate)
	row.EchoedPackets = uint64(c.u32(f.entry + c.entry.marked))
	if !c.hasRate() {
		row.CwndPackets = uint64(f.window)
	}
	entry := c.bytes(f.entry, uint32(len(c.entries.zeros)))
	for _, s := range t.plan.scheme.Object.Stats {
		row.Stats = append(row.Stats, result.Stat{Key: s.Key, Value: s.Read(entry)})
	}
}

func (t *transport) completion(f *flow) result.Completion {
	row := result.Completion{
		Flow: f.spec.Name, Group: f.spec.Group, Src: f.spec.From, Dst: f.spec.To,
		Priority:  f.spec.Priority,
		SizeBytes: f.size, StartNs: t.sinceStart(f.start),
		IdealNs: t.plan.idealNs(f.spec.From, f.spec.To, f.size),
	}
	if f.completed != 0 {
		row.FCTNs = new(f.completed - f.start)
	}
	return result.NewCompletion(row)
}
