// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// collector takes a run's events as they come, and its counters at the end.
type collector struct {
	f       *fabric
	t       *traffic
	events  *npecn.EventReader
	t0Ns    uint64 // t = 0 on the papers' clock
	endNs   uint64
	queues  []map[uint64]npecn.Sample // of each port, by bin
	flows   []map[uint64]npecn.FlowSample
	sending []map[uint64]result.Sample // of each stream's sender, by bin
	watched []*stream                  // whose senders are looked at in every bin
	pfc     []result.PFCEvent
	repeats map[repeatsBin]uint64 // PAUSE frames
	// detected and offs are of each port, by bin and in the order of time; of switches with detectors.
	detected []map[uint64]npecn.Detections
	offs     [][]npecn.Off
	latest   []tc.Arrival // of each flow, at the end
	senders  []sender
	lost     map[string]uint64 // packets, by place, before the flows are closed

	// of the measured time
	late      []npecn.Lateness // of each port
	causality uint64           // packets that came after their ideal time had been decided

	pfcOverflow uint64   // PFC events that a port lost
	creditsLost []string // ports that do not have all of their credits at the end

	paused   pausedPorts
	deadlock *result.Deadlock // nil: there is none yet
}

// repeatsBin is a bin of the PAUSE frames of a class that a port's node sends to the node at its other end.
type repeatsBin struct {
	port  uint32
	class uint8
	bin   uint64
}

// sender is what a stream's sender knew at the end.
type sender struct {
	flow            loader.Flow
	sentBytes       uint64
	ackedBytes      uint64 // and SYN and FIN
	cwndPackets     uint64 // 0: the control has a rate
	srttNs          int64
	retransmissions uint64
	timeouts        uint64
	completedNs     uint64 // when it heard that all it had to send had arrived, on the papers' clock; 0: it has not
	ecn             bool
}

func newCollector(f *fabric, t *traffic, t0Ns uint64) (*collector, error) {
	events, err := f.qdisc.NewEventReader()
	if err != nil {
		return nil, err
	}
	c := &collector{f: f, t: t, events: events, t0Ns: t0Ns, endNs: t0Ns + uint64(f.plan.exp.Duration), paused: pausedPorts{}}
	c.late = make([]npecn.Lateness, len(f.plan.ports))
	c.repeats = map[repeatsBin]uint64{}
	c.queues = make([]map[uint64]npecn.Sample, len(f.plan.ports))
	for id := range c.queues {
		c.queues[id] = map[uint64]npecn.Sample{}
	}
	c.detected, c.offs = make([]map[uint64]npecn.Detections, len(f.plan.ports)), make([][]npecn.Off, len(f.plan.ports))
	for id := range c.detected {
		c.detected[id] = map[uint64]npecn.Detections{}
	}
	c.flows = make([]map[uint64]npecn.FlowSample, len(t.streams)+len(t.shots))
	for id := range c.flows {
		c.flows[id] = map[uint64]npecn.FlowSample{}
	}
	c.sending = make([]map[uint64]result.Sample, len(t.streams))
	for id := range c.sending {
		c.sending[id] = map[uint64]result.Sample{}
	}
	needed := f.plan.exp.SentSeries()
	for _, s := range t.streams {
		if len(t.streams) <= maxInSeries || f.plan.exp.Switch.Detectors || needed[s.Name] {
			c.watched = append(c.watched, s)
		}
	}
	return c, nil
}

func (c *collector) close() error { return c.events.Close() }

// drain takes the events there are.
func (c *collector) drain() error {
	return c.events.Drain(npecn.Sink{
		PFC: func(e npecn.PFCEvent) {
			c.paused.see(e)
			c.pfc = append(c.pfc, c.pfcEvent(e))
		},
		Repeats:  c.addRepeats,
		Queue:    func(s npecn.QueueSample) { c.queues[s.Port][s.Bin] = s.Sample },
		Flow:     func(s npecn.FlowSample) { c.flows[s.Flow][s.Bin] = s },
		Off:      func(o npecn.Off) { c.offs[o.Port] = append(c.offs[o.Port], o) },
		Detected: func(d npecn.Detected) { c.detected[d.Port][d.Bin] = d.Detections },
	})
}

// addRepeats notes a bin. The last one is read before its event comes, which may know of fewer.
func (c *collector) addRepeats(r npecn.PauseRepeats) {
	at := repeatsBin{r.Port, r.Class, r.Bin}
	c.repeats[at] = max(c.repeats[at], r.Frames)
}

// repeatRows are the bins of the measured time.
func (c *collector) repeatRows() []result.PauseRepeats {
	var rows []result.PauseRepeats
	first, last := c.bins()
	for at, frames := range c.repeats {
		if at.bin < first || at.bin >= last {
			continue
		}
		rows = append(rows, result.PauseRepeats{
			TimeNs: c.since(at.bin * uint64(c.f.plan.exp.Sample)), From: c.f.plan.nodes[c.f.plan.ports[at.port].node].name, To: c.f.plan.device(at.port),
			Class: at.class, Frames: frames,
		})
	}
	return rows
}

func (c *collector) pfcEvent(e npecn.PFCEvent) result.PFCEvent {
	p := c.f.plan.ports[e.Port]
	out := result.PFCEvent{
		SentNs: c.since(e.SentNs), EffectNs: c.since(e.EffectNs),
		From: c.f.plan.nodes[p.peer].name, To: c.f.plan.device(p.back),
		Class: e.Class, Kind: result.Resume,
	}
	if e.Pause {
		out.Kind = result.Pause
	}
	return out
}

// since is a time counted from t = 0.
func (c *collector) since(ns uint64) int64 { return int64(ns - c.t0Ns) }

// snapshot reads the flows and the bins that are not over, at the end of the measured time. Ports come first: what is
// read, and closed, after them keeps the CPU from packets, which are late then.
func (c *collector) snapshot() error {
	sampleNs := uint64(c.f.plan.exp.Sample)
	for id := 1; id < len(c.f.plan.ports); id++ {
		s, err := c.f.qdisc.Stats(uint32(id))
		if err != nil {
			return err
		}
		c.late[id] = s.Lateness
		c.causality += s.Causality
		c.queues[id][s.Bin] = s.InBin
		c.detected[id][s.Bin] = s.Detected
		repeats, err := c.f.qdisc.PauseRepeats(uint32(id), c.endNs)
		if err != nil {
			return err
		}
		for _, r := range repeats {
			c.addRepeats(r)
		}
	}
	for _, k := range c.keys() {
		a, err := c.f.arrive.Flow(k, sampleNs)
		if err != nil {
			return err
		}
		if a.BinPackets > 0 {
			c.flows[len(c.latest)][a.BinNs/sampleNs] = npecn.FlowSample{
				Bytes: a.BinBytes, Packets: a.BinPackets, MarkedPackets: a.BinMarkedPackets,
			}
		}
		c.latest = append(c.latest, a)
	}
	for _, s := range c.t.streams {
		sender, err := c.sender(s)
		if err != nil {
			return err
		}
		const syn = 1 // counts as a byte
		if s.Size != 0 && sender.ackedBytes >= uint64(s.Size)+syn {
			if sender.completedNs, err = s.completedNs(c.f.clock); err != nil {
				return fmt.Errorf("flow %s: %w", s.Name, err)
			}
			if sender.completedNs > c.endNs {
				sender.completedNs = 0
			}
		}
		c.senders = append(c.senders, sender)
	}
	var err error
	c.lost, err = c.countLost()
	return err
}

// maxInSeries is how many TCP flows are all in the series. Of more, only what metrics and figures need is.
const maxInSeries = 64

// sampleSenders looks at what senders know at the end of a bin.
func (c *collector) sampleSenders(bin uint64) error {
	for _, s := range c.watched {
		x, err := c.sender(s)
		if err != nil {
			return err
		}
		c.sending[s.id][bin] = result.Sample{
			RateBps: x.rateBps(c.f), CwndPackets: x.cwndPackets, SRTTNs: x.srttNs, CNPs: x.flow.CNPDecrease + x.flow.CNPIncrease,
		}
	}
	return nil
}

// rateBps is what the sender paces by, or a window a round trip.
func (s *sender) rateBps(f *fabric) uint64 {
	switch {
	case f.control.HasRate():
		return s.flow.SendRateBps
	case f.scheme == schemePFC || s.srttNs == 0:
		return 0
	default:
		return s.cwndPackets * uint64(f.plan.exp.Frame) * 8e9 / uint64(s.srttNs)
	}
}

// keys are the flows by id.
func (c *collector) keys() []loader.FlowKey {
	var keys []loader.FlowKey
	for _, s := range c.t.streams {
		keys = append(keys, s.key)
	}
	for _, s := range c.t.shots {
		keys = append(keys, s.key)
	}
	return keys
}

const tcpInfoECN = 8 // TCPI_OPT_ECN

func (c *collector) sender(s *stream) (sender, error) {
	info, err := s.tcpInfo()
	if err != nil {
		return sender{}, err
	}
	out := sender{
		sentBytes:       info.Bytes_sent - info.Bytes_retrans - s.primed,
		ackedBytes:      info.Bytes_acked - s.primed,
		srttNs:          int64(info.Rtt) * 1000 >> c.f.plan.exp.Dilation,
		retransmissions: uint64(info.Total_retrans),
		timeouts:        uint64(info.Total_rto),
		ecn:             info.Options&tcpInfoECN != 0,
	}
	if !c.f.control.HasRate() && c.f.scheme != schemePFC {
		out.cwndPackets = uint64(info.Snd_cwnd)
	}
	// a control without a flow table, and a flow that has ended, have no more to tell
	if out.flow, err = c.f.control.Flow(s.key); err != nil && !errors.Is(err, loader.ErrNoFlow) {
		return sender{}, err
	}
	return out, nil
}

// run puts everything together as a result.
func (c *collector) run() (*result.Run, error) {
	r := &result.Run{
		PFC: c.pfc, PauseRepeats: c.repeatRows(), Experiment: c.f.plan.exp.Source(), Flows: c.flowRows(), Completions: c.completions(), Trace: c.f.plan.exp.TracedFlows(),
	}
	var late npecn.Lateness
	for id := 1; id < len(c.f.plan.ports); id++ {
		s, err := c.f.qdisc.Stats(uint32(id))
		if err != nil {
			return nil, err
		}
		late.Add(c.late[id])
		c.pfcOverflow += s.PFCOverflow
		if s.FreeCreditBlocks != s.CreditBlocks {
			c.creditsLost = append(c.creditsLost, fmt.Sprintf("port %s has %d of %d credits when nothing is under way", c.f.plan.ports[id].name, s.FreeCreditBlocks, s.CreditBlocks))
		}
		r.Ports = append(r.Ports, c.portRow(id, &s))
		r.Series = append(r.Series, c.portSeries(id)...)
	}
	r.Series = append(r.Series, c.streamSeries()...)
	for id := len(c.t.streams); id < len(c.flows); id++ {
		r.Series = append(r.Series, c.flowSeries(r.Flows[id].Name, uint32(id))...)
	}
	for _, s := range c.watched {
		r.Series = append(r.Series, c.senderSeries(s)...)
	}
	var err error
	if r.States, err = c.states(); err != nil {
		return nil, err
	}
	e, m := c.f.plan.exp, &r.Manifest
	m.Experiment, m.ExperimentSHA256, m.Scheme, m.Seed = e.Name, e.Hash(), c.f.scheme, e.Seed
	m.DilationShift, m.Case = e.Dilation, e.CaseName
	m.DurationNs, m.WarmupNs, m.SampleNs = int64(e.Duration), int64(e.Warmup), int64(e.Sample)
	m.Deadlock = c.deadlock
	m.BaseRTTNs = int64(c.f.plan.baseRTTNs())
	m.LatenessP50Ns, m.LatenessP99Ns, m.LatenessMaxNs =
		int64(late.QuantileNs(0.5)), int64(late.QuantileNs(0.99)), int64(late.MaxNs)
	m.CausalityViolations = c.causality
	return r, nil
}

func (c *collector) flowRows() []result.Flow {
	var rows []result.Flow
	for i, s := range c.t.streams {
		row := c.flowRow(s.Name, s.From, s.To, s.key, c.latest[i])
		x := c.senders[i]
		row.Group, row.Priority = s.Group, uint8(s.Priority)
		row.Scheme, row.Proto, row.StartNs = c.f.scheme, result.TCP, c.since(s.startNs)
		row.SentBytes, row.EchoedPackets = x.sentBytes, uint64(x.flow.MarkedPackets)
		row.CNPDecrease, row.CNPIncrease = x.flow.CNPDecrease, x.flow.CNPIncrease
		row.SendRateBps, row.RecRateBps, row.W = x.flow.SendRateBps, x.flow.RecRateBps, x.flow.W
		row.Alpha, row.CwndPackets = x.flow.Alpha, x.cwndPackets
		row.SRTTNs, row.Retransmissions, row.Timeouts, row.ECN = x.srttNs, x.retransmissions, x.timeouts, x.ecn
		if x.completedNs != 0 {
			row.CompletionNs = int64(x.completedNs - s.startNs)
		}
		if s.Size != 0 && x.sentBytes >= uint64(s.Size) && row.ReceivedBytes >= uint64(s.Size) {
			row.EndNs = c.end(c.latest[i])
		}
		rows = append(rows, row)
	}
	for i, s := range c.t.shots {
		a := c.latest[len(c.t.streams)+i]
		row := c.flowRow(s.name, s.from, s.to, s.key, a)
		row.Group, row.Priority = s.group, uint8(s.priority)
		row.Scheme, row.Proto, row.StartNs = c.f.scheme, result.UDP, int64(s.startNs)
		row.SentBytes = s.bytes
		if a.Packets >= uint64(s.frames) {
			row.EndNs = c.end(a)
		}
		rows = append(rows, row)
	}
	return rows
}

func (c *collector) end(a tc.Arrival) *int64 {
	ns := c.since(a.LastNs)
	return &ns
}

func (c *collector) flowRow(name, from, to string, k loader.FlowKey, a tc.Arrival) result.Flow {
	return result.Flow{
		Name: name, Src: from, Dst: to,
		SrcAddr: k.Src.Addr().String(), SrcPort: k.Src.Port(),
		DstAddr: k.Dst.Addr().String(), DstPort: k.Dst.Port(),
		ReceivedBytes: a.PayloadBytes, Packets: a.Packets, MarkedPackets: a.MarkedPackets,
	}
}

func (c *collector) portRow(id int, s *npecn.Stats) result.Port {
	p, o := c.f.plan.ports[id], c.f.options.Ports[id]
	return result.Port{
		Name: p.name, Node: c.f.plan.nodes[p.node].name, Peer: c.f.plan.nodes[p.peer].name,
		Tier: c.f.plan.nodes[p.node].tier, RateBps: o.RateBps, DelayNs: int64(o.DelayNs),
		EnqueuedPackets: s.EnqueuedPackets, EnqueuedBytes: s.EnqueuedBytes,
		SentPackets: s.SentPackets, SentBytes: s.SentBytes,
		QueuedPackets: s.QueuedPackets, MarkedPackets: s.MarkedPackets,
		DroppedWREDPackets: s.DroppedWRED, DroppedTailPackets: s.DroppedTail,
		DroppedBufferPackets: s.DroppedBuffer, DroppedRingPackets: s.DroppedRing,
		DroppedNoClassPackets: s.DroppedClass, DroppedResetPackets: s.DroppedReset,
		PauseSent: s.PauseSent, ResumeSent: s.ResumeSent,
		PauseReceived: s.PauseReceived, ResumeReceived: s.ResumeReceived, PausedNs: int64(s.PausedNs),
		QueueMaxBytes: s.QueueMaxBytes,
		LatenessP50Ns: int64(c.late[id].QuantileNs(0.5)), LatenessP99Ns: int64(c.late[id].QuantileNs(0.99)),
		LatenessMaxNs: int64(c.late[id].MaxNs),
	}
}

// bins are those of the measured time: from the warm-up on.
func (c *collector) bins() (first, last uint64) {
	e := c.f.plan.exp
	sampleNs := uint64(e.Sample)
	return (c.t0Ns - uint64(e.Warmup)) / sampleNs, c.endNs / sampleNs
}

// portSeries has a row for each bin; in one without events the queue is as it was.
func (c *collector) portSeries(id int) []result.Sample {
	sampleNs := uint64(c.f.plan.exp.Sample)
	var rows []result.Sample
	var queue uint64
	first, last := c.bins()
	for bin := first; bin < last; bin++ {
		s, ok := c.queues[id][bin]
		if !ok {
			s = npecn.Sample{QueueBytes: queue, QueueMaxBytes: queue}
		}
		rows = append(rows, result.Sample{
			TimeNs: c.since(bin * sampleNs), Kind: result.KindPort, Name: c.f.plan.ports[id].name,
			RateBps: s.SentBytes * 8e9 / sampleNs, QueueBytes: queue, QueueMaxBytes: s.QueueMaxBytes,
			MarkedPackets: uint64(s.MarkedPackets),
		})
		queue = s.QueueBytes
	}
	return rows
}

// streamSeries are those of TCP flows: of too many, the sum of each group, and the flows that are needed one by one.
func (c *collector) streamSeries() []result.Sample {
	all, needed := len(c.t.streams) <= maxInSeries, c.f.plan.exp.ReceivedSeries()
	groups := make(map[string][]uint32)
	var names []string // of groups, in order
	var rows []result.Sample
	for _, s := range c.t.streams {
		if all || needed[s.Name] || s.Name == s.Group {
			rows = append(rows, c.flowSeries(s.Name, s.id)...)
		}
		if all || s.Name == s.Group {
			continue
		}
		if groups[s.Group] == nil {
			names = append(names, s.Group)
		}
		groups[s.Group] = append(groups[s.Group], s.id)
	}
	for _, name := range names {
		rows = append(rows, c.flowSeries(name, groups[name]...)...)
	}
	return rows
}

// flowSeries is that of a flow, or the sum of several.
func (c *collector) flowSeries(name string, ids ...uint32) []result.Sample {
	sampleNs := uint64(c.f.plan.exp.Sample)
	var rows []result.Sample
	first, last := c.bins()
	for bin := first; bin < last; bin++ {
		var bytes, marked uint64
		for _, id := range ids {
			s := c.flows[id][bin]
			bytes += s.Bytes
			marked += uint64(s.MarkedPackets)
		}
		if bytes == 0 && bin > first && len(c.t.streams) > maxInSeries {
			continue // the one at the start says that the flow is there
		}
		rows = append(rows, result.Sample{
			TimeNs: c.since(bin * sampleNs), Kind: result.KindFlow, Name: name,
			RateBps: bytes * 8e9 / sampleNs, MarkedPackets: marked,
		})
	}
	return rows
}

func (c *collector) senderSeries(stream *stream) []result.Sample {
	sampleNs := uint64(c.f.plan.exp.Sample)
	var rows []result.Sample
	first, last := c.bins()
	for bin := first; bin < last; bin++ {
		s, ok := c.sending[stream.id][bin]
		if !ok {
			continue
		}
		s.TimeNs, s.Kind, s.Name = c.since(bin*sampleNs), result.KindSender, stream.Name
		rows = append(rows, s)
	}
	return rows
}

// countLost counts the packets lost outside the ports, by place. A lossless run has none.
func (c *collector) countLost() (map[string]uint64, error) {
	d, err := c.f.sw.Drops()
	if err != nil {
		return nil, err
	}
	cnms, err := c.f.cnms()
	if err != nil {
		return nil, err
	}
	kernel, err := c.f.kernelDrops()
	if err != nil {
		return nil, err
	}
	var retransmissions uint64
	for _, s := range c.senders {
		retransmissions += s.retransmissions
	}
	lost := map[string]uint64{
		"switch: not IPv4":    d.NotIP,
		"switch: no route":    d.NoRoute,
		"switch: no port":     d.NoPort,
		"switch: redirect":    d.Redirect,
		"CNM":                 cnms.Lost,
		"tcp retransmissions": retransmissions,
	}
	for place, n := range kernel {
		lost[place] += n
	}
	return lost, nil
}

// cnms are those that were sent for samples of QCN, and not sent.
func (f *fabric) cnms() (tc.CNMCounts, error) {
	switches, err := f.sw.CNMs()
	if err != nil {
		return tc.CNMCounts{}, err
	}
	hosts, err := f.arrive.CNMs()
	return tc.CNMCounts{Sent: switches.Sent + hosts.Sent, Lost: switches.Lost + hosts.Lost}, err
}

// linkConservation compares the ends of every link, when no packet is under way: what a switch's ports took in is
// what the ports towards it handed over and the CNMs that it made itself, less what the switch dropped.
func (f *fabric) linkConservation(run *result.Run) ([]string, error) {
	cnms, err := f.sw.CNMs()
	if err != nil {
		return nil, err
	}
	in, out := map[string]uint64{}, map[string]uint64{} // of each switch
	var made uint64
	for _, p := range run.Ports {
		in[p.Peer] += p.SentPackets
		out[p.Node] += p.EnqueuedPackets + p.RefusedPackets()
	}
	var wrong []string
	for _, n := range f.plan.nodes[f.plan.hosts:] {
		own := out[n.name] - in[n.name]
		if f.scheme == schemeQCN && out[n.name] >= in[n.name] {
			made += own
		} else if own != 0 {
			wrong = append(wrong, fmt.Sprintf("switch %s was sent %d packets, but its ports took in %d", n.name, in[n.name], out[n.name]))
		}
	}
	if made != cnms.Sent {
		wrong = append(wrong, fmt.Sprintf("switches' ports took in %d packets of their own, but they made %d CNMs", made, cnms.Sent))
	}
	return wrong, nil
}

// eventsLost fails if the series are not whole.
func (c *collector) eventsLost() error {
	ports, err := c.f.qdisc.EventsLost()
	if err != nil {
		return err
	}
	flows, err := c.f.arrive.EventsLost()
	if err != nil {
		return err
	}
	if ports+flows > 0 {
		return fmt.Errorf("%d events found the ring buffer full: the run is too dense for it (raise `sample`)", ports+flows)
	}
	return nil
}
