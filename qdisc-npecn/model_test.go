// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"cmp"
	"container/heap"
	"math"
)

// model simulates a layout in ideal time, event by event, as the paper describes a lossless switch:
// strict priority without preemption, PFC by ingress port; NP-ECN, RED with one threshold, QCN
// without jitter, TCD; WRED and limits of queues; and changes of rates. It shares nothing with the
// C but the configuration.
type model struct {
	*layout
	config  Options
	packets []packet
	ports   []modelPort
	used    []uint64 // shared buffer of each node
	usedMax []uint64
	agenda  agenda
	out     []delivery
	cnms    []sampled
	pfc     []PFCEvent
	pauses  []PFCEvent // PAUSE and RESUME that are given; then thresholds post none
	repeats uint64     // PAUSE frames of ports that repeat them
	heldAt  []uint64   // bytes that the sender of each of these held of its class then

	// ambiguous: things happened at one node so close to each other that the qdisc may see them in
	// either order
	ambiguous bool
	starts    []moment // the last packet of each node that started
	arrivals  []moment // and that arrived
}

// moment is when something happens at a port that concerns other ports of the node.
type moment struct {
	ns   uint64
	port uint32
	any  bool
}

type modelPort struct {
	Port
	classes    [Classes]modelClass
	linkFreeNs uint64
	busy       busyPeriod
	queueBytes uint64
	steps      []step
	Stats
}

// busyPeriod is a time in which a link sends without a gap, at one rate. Its packets end at whole
// ns, rounded down from its start, and not from the packet before.
type busyPeriod struct{ fromNs, bytes, rateBps uint64 }

// send returns when a packet ends that starts at ns.
func (b *busyPeriod) send(ns, linkFreeNs, size, rateBps uint64) uint64 {
	if ns != linkFreeNs || rateBps != b.rateBps {
		*b = busyPeriod{fromNs: ns, rateBps: rateBps}
	}
	b.bytes += size
	return b.fromNs + b.bytes*8e9/rateBps
}

// step is a packet that joins or leaves the queue, which then holds queueBytes.
type step struct {
	ns, queueBytes, sentBytes uint64
	marked                    bool
}

type modelClass struct {
	queue   []queued
	paused  bool
	pn      int // NP-ECN's counter
	ingress uint64
	pausing bool
	repeat  int // how often the time of the next PAUSE was put off, which then is another
	// ingressMax: of what came in by this port and is still in the node
	ingressMax uint64
	lastPostNs uint64 // effect of the latest PAUSE or RESUME to this port's class
	pausedAtNs uint64

	credits    uint64 // CBFC: blocks, if the peer lends any
	off        bool   // it has a packet and too few of them
	offSinceNs uint64
	held       uint64 // blocks that came in by this port, and are in the node

	creditLeft int64  // QCN: bytes to the next sample
	qOldBytes  uint64 // and the queue at the last

	tcd modelTCD
}

// modelTCD is TCD's state of a queue: SIGCOMM'21, section 3, with the drain of the authors'
// simulator.
type modelTCD struct {
	state               string // "": neither queue nor OFF so far
	resumed             bool
	onNs, onBytes       uint64 // when OFF ended last, and the queue then
	checkNs, checkBytes uint64 // when the draining queue was looked at last
}

const undetermined = "undetermined"

// judge is whether TCD marks a packet CE that leaves this queue, which ECN would mark if it is
// over.
func (s *modelTCD) judge(ns, bytes, maxTonNs uint64, over bool) (ce bool) {
	switch {
	case s.resumed && ns-s.onNs <= maxTonNs:
		s.state = undetermined
	case s.state == undetermined && bytes < s.onBytes:
		s.state, s.checkNs, s.checkBytes = "draining", ns, bytes
	case s.state == "draining" && (ns-s.checkNs < maxTonNs || bytes < s.checkBytes+900):
		if ns-s.checkNs >= maxTonNs {
			s.checkNs, s.checkBytes = ns, bytes
		}
		if bytes <= 2060 {
			s.state = "none"
		}
	case s.state == undetermined || s.state == "draining" || over:
		s.state, ce = "congestion", over
	default:
		s.state = "none"
	}
	return ce
}

type queued struct {
	packet  int
	size    uint64
	ingress uint32
	atNs    uint64
}

// happening is one event of the simulation; of those at one time arrivals come first, then PFC,
// then departures.
type happening struct {
	atNs  uint64
	order int
	seq   uint64
	do    func()
}

const (
	orderArrival = iota
	orderPFC
	orderStart
	orderLook
)

type agenda struct {
	h   []happening
	seq uint64
}

func (a *agenda) Len() int { return len(a.h) }
func (a *agenda) Less(i, j int) bool {
	x, y := a.h[i], a.h[j]
	return cmp.Or(cmp.Compare(x.atNs, y.atNs), cmp.Compare(x.order, y.order),
		cmp.Compare(x.seq, y.seq)) < 0
}
func (a *agenda) Swap(i, j int) { a.h[i], a.h[j] = a.h[j], a.h[i] }
func (a *agenda) Push(x any)    { a.h = append(a.h, x.(happening)) }
func (a *agenda) Pop() any {
	last := a.h[len(a.h)-1]
	a.h = a.h[:len(a.h)-1]
	return last
}

func (m *model) at(ns uint64, order int, do func()) {
	m.agenda.seq++
	heap.Push(&m.agenda, happening{ns, order, m.agenda.seq, do})
}

// simulate runs the packets through the layout, up to the first thing that is ambiguous: nobody
// wants the rest, and most draws of packets are ambiguous early.
func simulate(l *layout, packets []packet) *model {
	m := newModel(l, packets, nil)
	for !m.ambiguous && m.next() {
	}
	return m
}

// simulatePaused runs them to their end, with these PAUSE and RESUME events instead of PFC's
// thresholds.
func simulatePaused(l *layout, packets []packet, pauses []PFCEvent) *model {
	m := newModel(l, packets, pauses)
	for m.next() {
	}
	return m
}

// next lets the next thing happen, and tells whether there was one.
func (m *model) next() bool {
	if m.agenda.Len() == 0 {
		return false
	}
	heap.Pop(&m.agenda).(happening).do()
	return true
}

func newModel(l *layout, packets []packet, pauses []PFCEvent) *model {
	m := &model{
		layout: l, config: l.configure(), packets: packets, out: make([]delivery, len(packets)),
		pauses: pauses,
		used:   make([]uint64, len(l.nodes())), usedMax: make([]uint64, len(l.nodes())),
		starts: make([]moment, len(l.nodes())), arrivals: make([]moment, len(l.nodes())),
	}
	for _, p := range m.config.Ports {
		mp := modelPort{Port: p}
		for class := range mp.classes {
			mp.classes[class].creditLeft = int64(p.QCN.SampleBaseBytes)
			mp.classes[class].credits = m.config.Ports[p.Peer].CBFC.BufferBytes / 64
		}
		m.ports = append(m.ports, mp)
	}
	m.heldAt = make([]uint64, len(pauses))
	for i, e := range pauses {
		m.at(e.EffectNs, orderPFC, func() { m.applyPFC(e) })
		m.at(e.SentNs, orderLook,
			func() { m.heldAt[i] = m.ports[m.ports[e.Port].Peer].classes[e.Class].ingress })
	}
	for i, p := range packets {
		q := queued{packet: i, size: uint64(p.size), atNs: p.atNs}
		port := l.towards(p.from, p.to)
		m.at(p.atNs, orderArrival, func() { m.arrive(port, p, q) })
	}
	return m
}

// noteStart notes that a packet starts. Two ports of a node that start one at a time are ambiguous.
func (m *model) noteStart(ns uint64, port uint32) {
	node, _ := m.ends(port)
	m.ambiguous = m.ambiguous || m.starts[node].meets(ns, 0, port) && !m.isHost(node)
	m.starts[node] = moment{ns, port, true}
}

// noteArrival notes that a packet arrives. Two that come at a time by different ports are
// ambiguous, and so is what the node holds while the qdisc waits, for its lag, to decide on a
// start.
func (m *model) noteArrival(ns uint64, port uint32) {
	node, _ := m.ends(port)
	lag := 2 * m.config.QuantumNs
	if m.config.QuantumNs > 1 {
		lag = 0 // what is tested with rounded timers does not depend on what a node holds
	}
	const anyPort = 0
	m.ambiguous = m.ambiguous || !m.isHost(node) && (m.arrivals[node].meets(ns, 0, port) ||
		ns > m.starts[node].ns && m.starts[node].meets(ns, lag, anyPort))
	m.arrivals[node] = moment{ns, port, true}
}

// meets reports whether the moment was up to so long before ns, at another port.
func (l *moment) meets(ns, before uint64, port uint32) bool {
	return l.any && ns-l.ns <= before && l.port != port
}

func (m *model) arrive(port uint32, p packet, q queued) {
	m.noteArrival(q.atNs, port)
	mp := &m.ports[port]
	k := &mp.classes[p.class]
	node := mp.Node
	switch buffer := m.config.Nodes[node].BufferBytes; {
	case mp.Classes[p.class].Slots == 0:
		mp.Drops[DropClass]++
		m.refuse(p.class, q)
		return
	case len(k.queue) == int(slotsFor(mp.Classes[p.class].Slots)):
		mp.Drops[DropRing]++
		m.refuse(p.class, q)
		return
	case buffer != 0 && m.used[node]+q.size > buffer:
		mp.Drops[DropBuffer]++
		m.refuse(p.class, q)
		return
	}
	if n := len(k.queue); n > 0 && k.queue[n-1].atNs == q.atNs &&
		k.queue[n-1].ingress != q.ingress {
		m.ambiguous = true // first come, first served, but who comes first?
	}
	mp.EnqueuedPackets++
	mp.EnqueuedBytes += q.size
	if m.drops(mp, p, q) {
		m.refuse(p.class, q)
		return
	}
	k.queue = append(k.queue, q)
	mp.queueBytes += q.size
	mp.QueueMaxBytes = max(mp.QueueMaxBytes, mp.queueBytes)
	mp.steps = append(mp.steps, step{ns: q.atNs, queueBytes: mp.queueBytes})
	m.hold(node, p.class, q, int64(q.size), q.atNs)
	m.startAt(port, max(q.atNs, mp.linkFreeNs))
}

// refuse loses a packet, and its credits go back.
func (m *model) refuse(class int, q queued) {
	m.out[q.packet] = delivery{lost: true}
	if in := &m.ports[q.ingress]; q.ingress != 0 && in.Classes[class].Lossless &&
		in.CBFC.BufferBytes > 0 {
		m.lend(in, class, q.size, q.atNs)
	}
}

// lend tells the peer, when the period ends, that the blocks of a packet are free.
func (m *model) lend(in *modelPort, class int, size, ns uint64) {
	period := in.CBFC.PeriodNs
	effectNs := (ns+period-1)/period*period + in.PFCDelayNs
	m.at(effectNs, orderPFC, func() {
		up := &m.ports[in.Peer]
		k := &up.classes[class]
		k.credits += (size + 63) / 64
		if k.off && m.mayStart(up, class) {
			k.off = false
			k.resume(effectNs)
			up.PausedNs += effectNs - k.offSinceNs
		}
		m.startAt(in.Peer, effectNs)
	})
}

// mayStart says whether there are credits for the first packet of a class.
func (m *model) mayStart(mp *modelPort, class int) bool {
	if !mp.Classes[class].Lossless || m.config.Ports[mp.Peer].CBFC.BufferBytes == 0 {
		return true
	}
	return mp.classes[class].credits >= (mp.classes[class].queue[0].size+63)/64
}

// drops is WRED and the limit of the class's queue, by what waits in it. An empty queue takes every
// packet.
func (m *model) drops(mp *modelPort, p packet, q queued) bool {
	waiting := mp.classes[p.class].bytes()
	switch {
	case !mp.Classes[p.class].Marked || waiting == 0:
		return false
	case mp.LimitBytes > 0 && waiting+q.size > mp.LimitBytes:
		mp.Drops[DropTail]++
		return true
	case mp.WREDBytes > 0 && waiting >= mp.WREDBytes && m.notCapable(p):
		mp.Drops[DropWRED]++
		return true
	}
	return false
}

// hold accounts for bytes that enter or leave a node, and pauses or resumes who sent them.
func (m *model) hold(node uint32, class int, q queued, bytes int64, ns uint64) {
	m.used[node] = uint64(int64(m.used[node]) + bytes)
	m.usedMax[node] = max(m.usedMax[node], m.used[node])
	if q.ingress == 0 || !m.ports[q.ingress].Classes[class].Lossless {
		return
	}
	in := &m.ports[q.ingress]
	k := &in.classes[class]
	k.ingress = uint64(int64(k.ingress) + bytes)
	k.ingressMax = max(k.ingressMax, k.ingress)
	if in.CBFC.BufferBytes > 0 {
		if blocks := (q.size + 63) / 64; bytes > 0 {
			k.held += blocks
			in.HeldMaxBlocks = max(in.HeldMaxBlocks, k.held)
		} else {
			k.held -= blocks
			m.lend(in, class, q.size, ns)
		}
		return
	}
	if m.pauses != nil {
		return
	}
	xoff := m.xoff(in)
	if bytes > 0 {
		m.repeatPause(in, k, ns)
	}
	if pause := !k.pausing; pause && k.ingress > xoff ||
		!pause && (k.ingress == 0 || k.ingress+in.PFC.XONOffsetBytes <= xoff) {
		k.pausing = pause
		m.post(in, class, pause, ns)
	}
}

// xoff is the threshold of a port now.
func (m *model) xoff(in *modelPort) uint64 {
	if in.PFC.Alpha == 0 {
		return in.PFC.XOFFBytes
	}
	var free uint64
	if b := m.config.Nodes[in.Node].BufferBytes; b > m.used[in.Node] {
		free = b - m.used[in.Node]
	}
	return uint64(in.PFC.Alpha * float64(free))
}

// repeatPause sends a PAUSE, as ns3-rdma would, if the class is over XOFF, and looks again after
// half of the 5 us that one holds.
func (m *model) repeatPause(in *modelPort, k *modelClass, ns uint64) {
	if k.ingress <= m.xoff(in) {
		return
	}
	m.repeats++
	k.repeat++
	turn := k.repeat
	m.at(ns+2500, orderPFC, func() {
		if k.repeat == turn {
			m.repeatPause(in, k, ns+2500)
		}
	})
}

// post sends a PAUSE or RESUME to the port at the other end of `in`.
func (m *model) post(in *modelPort, class int, pause bool, ns uint64) {
	if pause {
		in.PauseSent++
	} else {
		in.ResumeSent++
	}
	up := &m.ports[in.Peer].classes[class]
	e := PFCEvent{Port: in.Peer, Class: uint8(class), Pause: pause, SentNs: ns,
		EffectNs: max(ns+in.PFCDelayNs, up.lastPostNs)}
	up.lastPostNs = e.EffectNs
	m.pfc = append(m.pfc, e)
	m.at(e.EffectNs, orderPFC, func() { m.applyPFC(e) })
}

func (m *model) applyPFC(e PFCEvent) {
	mp := &m.ports[e.Port]
	k := &mp.classes[e.Class]
	k.paused = e.Pause
	if e.Pause {
		k.pausedAtNs = e.EffectNs
		return
	}
	mp.PausedNs += e.EffectNs - k.pausedAtNs
	k.resume(e.EffectNs)
	m.startAt(e.Port, e.EffectNs)
}

func (m *model) startAt(port uint32, ns uint64) {
	m.at(ns, orderStart, func() { m.start(port, ns) })
}

// start sends the first packet of the highest class that may go, if the link is free.
func (m *model) start(port uint32, ns uint64) {
	mp := &m.ports[port]
	if mp.linkFreeNs > ns {
		return // it looks again when it is
	}
	for class := range mp.classes {
		k := &mp.classes[class]
		if len(k.queue) > 0 && !k.off && !m.mayStart(mp, class) {
			k.off, k.offSinceNs = true, ns
		}
	}
	for class := Classes - 1; class >= 0; class-- {
		k := &mp.classes[class]
		if len(k.queue) == 0 || k.paused || k.off {
			continue
		}
		m.transmit(port, class, ns)
		return
	}
}

func (m *model) transmit(port uint32, class int, ns uint64) {
	mp := &m.ports[port]
	k := &mp.classes[class]
	q := k.queue[0]
	k.queue = k.queue[1:]
	m.noteStart(ns, port)
	marked := mp.MarkedPackets
	if mp.Classes[class].Lossless && m.config.Ports[mp.Peer].CBFC.BufferBytes > 0 {
		k.credits -= (q.size + 63) / 64
	}
	mp.SentPackets++
	mp.SentBytes += q.size
	mp.queueBytes -= q.size
	if mp.Classes[class].Marked && m.judge(port, k, q, ns) {
		mp.MarkedPackets++
		if _, peer := m.ends(port); m.isHost(peer) || !m.notCapable(m.packets[q.packet]) {
			// what is not ECN-capable can't carry a mark on to the next switch
			m.out[q.packet].marked = true
		}
	}
	mp.steps = append(mp.steps, step{ns, mp.queueBytes, q.size, mp.MarkedPackets > marked})
	mp.linkFreeNs = mp.busy.send(ns, mp.linkFreeNs, q.size, m.rateBps(mp, ns))
	m.hold(mp.Node, class, q, -int64(q.size), ns)
	m.startAt(port, mp.linkFreeNs)
	m.deliver(port, class, q, mp.linkFreeNs+mp.DelayNs)
}

// rateBps is the port's rate at this time.
func (m *model) rateBps(mp *modelPort, ns uint64) uint64 {
	rate := mp.RateBps
	for _, c := range m.rates[mp.Name] {
		if c.AtNs <= ns {
			rate = c.RateBps
		}
	}
	return rate
}

// judge is what the port's marker does to a packet that leaves this queue: whether it is marked.
func (m *model) judge(port uint32, k *modelClass, q queued, ns uint64) bool {
	mp := &m.ports[port]
	if mp.Detect.TCD {
		waiting := k.bytes()
		ce := k.tcd.judge(ns, waiting, mp.Detect.MaxTonNs, waiting > mp.RED.KMinBytes)
		if ce {
			mp.Detected.TCDCE++
		}
		if k.tcd.state == undetermined {
			mp.Detected.TCDUE++
		}
		return ce
	}
	switch mp.Marker {
	case NPECN:
		return m.marks(k)
	case RED: // WRED drops what is not ECN-capable, or lets it pass
		return k.bytes() > mp.RED.KMinBytes &&
			(mp.WREDBytes == 0 || !m.notCapable(m.packets[q.packet]))
	case QCN:
		m.sample(port, k, q)
	}
	return false
}

// resume ends OFF: NP-ECN and TCD remember the queue of then.
func (k *modelClass) resume(ns uint64) {
	k.pn = len(k.queue)
	k.tcd.resumed, k.tcd.onNs, k.tcd.onBytes = true, ns, k.bytes()
}

// bytes are in the queue.
func (k *modelClass) bytes() (sum uint64) {
	for _, q := range k.queue {
		sum += q.size
	}
	return sum
}

// sample is QCN's congestion point, 802.1Qau in floating point.
func (m *model) sample(port uint32, k *modelClass, q queued) {
	mp, queueBytes := &m.ports[port], k.bytes()
	if k.creditLeft -= int64(q.size); k.creditLeft > 0 {
		return
	}
	off, delta := float64(queueBytes)-float64(mp.QCN.QeqBytes),
		float64(queueBytes)-float64(k.qOldBytes)
	k.qOldBytes = queueBytes
	fb := math.Floor((off + mp.QCN.W*delta) * 63 / (float64(mp.QCN.QeqBytes) * (2*mp.QCN.W + 1)))
	fb = max(0, min(63, fb))
	k.creditLeft = int64(mp.QCN.SampleBaseBytes) / (1 + int64(fb)/8)
	if fb > 0 {
		m.cnms = append(m.cnms,
			sampled{q.packet, port, uint8(fb), int16(math.Floor(off / 64)),
				int16(math.Floor(delta / 64))})
	}
}

// marks is NP-ECN, Fig. 7 of the paper.
func (m *model) marks(k *modelClass) bool {
	if k.pn > 0 {
		k.pn--
		return false
	}
	return len(k.queue) > 0
}

// deliver takes the packet to the next port, or to its host.
func (m *model) deliver(port uint32, class int, q queued, ns uint64) {
	mp := &m.ports[port]
	mp.DeliveredPackets++
	_, peer := m.ends(port)
	if m.isHost(peer) {
		m.out[q.packet].atNs = ns
		return
	}
	q.ingress, q.atNs = mp.Peer, ns
	m.at(ns, orderArrival, func() {
		p := m.packets[q.packet]
		m.arrive(m.towards(peer, p.to), p, q)
	})
}
