// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"math/bits"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// classes is how many traffic classes a port has; that of the highest rank goes first.
const classes = 8

// queue is a class of a port: what waits there, and what flow control says of it. What each packet
// needs fits one line of the CPU's cache; the rest is elsewhere, so that ports share fewer pages.
type queue struct {
	fifo
	core             uint32 // address of struct port_class; 0: no core looks at it
	lossless, marked bool
	paused           bool
	off              bool   // too few credits for the first packet
	pausing          bool   // the peer was told to pause
	deaf, dropping   bool   // its watchdog has turned PFC off; it drops all packets
	bounded          bool   // alpha bounds it
	calmBytes        uint32 // while it is shorter, the core marks nothing; 0: it is always asked
	readyAt          int64  // when it was last allowed to go on
	held             uint64 // what came in by this port and class and is still in the node
	*queueRest
}

// queueRest is what of a queue not each packet needs.
type queueRest struct {
	ingress uint32 // address of struct port_ingress

	// The sending end.
	pausedSince int64 // or off
	pauseEnd    int64 // when a PAUSE of limited time is over
	credits     []creditUpdate

	// The receiving end.
	frames uint64
	pairs  []portPair // empty unless PAUSE is repeated by pairs of ports
	toldAt int64      // when the peer was told to pause, the last time
	mmu    mmuQueue

	alpha float64 // of a lossy class: its share of the free buffer

	storm    int  // that its watchdog found last, in pfcWatchdog.events
	storming bool // a NIC that sends PAUSE frames without an end

	pausedNs                                             uint64
	pauseSent, resumeSent, pauseReceived, resumeReceived uint64
}

// portPair is a port by which packets leave that came in by the queue's port, with a timer of its
// own for the PAUSE frames of a switch that repeats them.
type portPair struct {
	out  int32
	core uint32 // address of a struct port_ingress
}

// creditUpdate is blocks of which the peer hears.
type creditUpdate struct {
	at     int64
	blocks uint64
}

// port is an egress port and its link. It is written from the papers: strict priority without
// preemption, store and forward; a packet is marked when it starts on the wire, by the queue that
// it leaves behind; ingress ports count what they hold, and pause the port at the other end.
//
// As of a queue, what each packet needs stands first, in two lines of the CPU's cache.
type port struct {
	node, peer int32  // nodes
	back       int32  // port at the other end of the link
	fromHost   bool   // it is a host's
	down       bool   // the link does not work
	unsound    bool   // packets on the wire may be lost
	credits    bool   // the peer lends credits
	core       uint32 // address of struct port_state; 0: it marks nothing
	backlog    uint8  // bit for each class with packets
	deciding   bool   // an evDecide is to come
	weighted   bool   // classes have weights, in rounds
	cut        bool   // the other end of the link is in another part of the run
	rate       uint64
	delay      int64
	freeAt     int64 // when the link is free
	// it is free so much later than freeAt, in ns / rate: packets without a gap between them must
	// not each end up to 1 ns too early
	rest  uint64
	bytes uint64

	wire     list   // packets under way
	calm     uint32 // packets that went since the core was asked, see queue.calmBytes
	counters portCounters
	queueMax uint64 // most bytes in the bin of the series that is not over
	*portRest

	queues [classes]queue
}

// portCounters are those of each packet.
type portCounters struct {
	enqueuedPackets, enqueuedBytes uint64
	sentPackets, sentBytes         uint64
}

// portRest is what of a port not each packet needs.
type portRest struct {
	classes       [classes]queueRest
	bin           portBin
	markedPackets uint64
	longest       uint64 // most bytes in the bins that are over

	droppedBuffer            uint64
	droppedWRED, droppedTail uint64
	droppedReset             uint64 // with a link that failed
	droppedLossy             uint64 // of those above, of lossy classes of a lossless network

	rounds *rounds // nil unless weighted

	wredBytes uint64 // queue at which it drops what is not ECN-capable; 0: none
	doomed    uint32 // first packets on the wire, which were there when the link failed
	deafUntil int64  // PAUSE and RESUME that take effect before were lost

	lastArrival int64 // of a packet that was sent, if the link is cut

	// chances that the link loses a packet, in units of 2^-32: behind one that it did not lose, and
	// behind one that it did
	losesFirst, losesOn uint64
	losing              bool
	jitter              uint64 // packets take less than so much longer
	lastAt              int64  // when the last one arrives
}

// thresholds returns the address of a struct port_ingress: those of all classes have the same
// thresholds.
func (p *port) thresholds() uint32 {
	for c := range p.queues {
		if at := p.queues[c].ingress; at != 0 {
			return at
		}
	}
	return 0
}

// portBin is what was counted when the bin of the series began that is not over.
type portBin struct {
	queueBytes, sentPackets, sentBytes, markedPackets uint64
}

// beginBin begins a bin.
func (p *port) beginBin() {
	p.longest = max(p.longest, p.queueMax)
	p.queueMax = p.bytes
	c := &p.counters
	p.bin = portBin{p.bytes, c.sentPackets, c.sentBytes, p.markedPackets}
}

// node is a host or a switch.
type node struct {
	isHost      bool
	arrivals    uint32 // packets that came
	used        uint64 // bytes in its buffer
	bufferBytes uint64 // its size
	// Where parts of it are not shared: the shared part's size, and what is in it.
	sharedBytes, sharedUsed uint64
	own                     *experiment.OwnSwitch
}

// enqueue puts a packet into a port's queue, and has the port send it when it may. ingress is the
// port of the node by which it came in; none if the node made it.
func (w *world) enqueue(id, i, ingress int32) {
	if w.waits(id, i, ingress) {
		w.decideAt(id, &w.ports[id])
	}
}

// waits puts a packet into a port's queue. It reports whether it waits there for no other.
func (w *world) waits(id, i, ingress int32) bool {
	p, k := &w.ports[id], &w.packets.packets[i]
	n := &w.nodes[p.node]
	if w.acksAsData && k.kind == packetACK || w.cnpsAsData && k.kind == packetCNP {
		w.classify(n, k)
	}
	q := &p.queues[k.class]
	k.ingress = ingress
	k.arrived = w.now
	if !p.fromHost {
		if w.pfcDog != nil && w.watchdogDrops(p, q, ingress, k) {
			w.dropped(id, i)
			return false
		}
		drop := w.dropCounter(p, q, n, k)
		if w.mmu && drop == nil && ingress != none && !w.admits(ingress, k, n) {
			drop = &p.droppedBuffer
		}
		if drop != nil {
			*drop++
			if w.lossless && w.plan.exp.Switch.ClassOf(w.ranks.class[k.class]).Lossy {
				p.droppedLossy++
			}
			w.dropAtIngress(ingress, k)
			w.dropped(id, i)
			return false
		}
		n.used += uint64(k.size)
		if ingress != none {
			w.leavesBy = id
			w.account(ingress, k.class, k.size, true, n)
		}
	}
	p.counters.enqueuedPackets++
	p.counters.enqueuedBytes += uint64(k.size)
	q.push(&w.packets, i)
	p.backlog |= 1 << k.class
	p.bytes += uint64(k.size)
	p.queueMax = max(p.queueMax, p.bytes)
	if w.trace != nil {
		w.traced(PacketEnqueued, id, i)
	}
	return !p.deciding && !q.paused && !q.off
}

// dropped releases a packet that a port does not take in.
func (w *world) dropped(id, i int32) {
	if w.trace != nil {
		w.traced(PacketDropped, id, i)
	}
	w.packets.release(i)
}

// classify gives an ACK or a CNP the class of its flow's data in a switch. Its host has sent it
// before all data, and nothing has paused it there.
func (w *world) classify(n *node, k *packet) {
	if !n.isHost {
		k.class = w.transport.flows[k.flow].class
	}
}

// dropCounter returns the counter of packets that the port drops for this packet's reason; nil if
// it takes the packet.
func (w *world) dropCounter(p *port, q *queue, n *node, k *packet) *uint64 {
	if n.used+uint64(k.size) > n.bufferBytes {
		return &p.droppedBuffer
	}
	if !q.marked || q.packets == 0 {
		return nil
	}
	if w.limitBytes != 0 && q.bytes+uint64(k.size) > w.limitBytes ||
		q.bounded && w.fillsItsShare(q, n, uint64(k.size)) {
		return &p.droppedTail
	}
	if p.wredBytes != 0 && k.ecn == ecnNone && q.bytes >= p.wredBytes {
		return &p.droppedWRED
	}
	return nil
}

// dropAtIngress returns the credits of a packet that does not get into the node's queues.
func (w *world) dropAtIngress(ingress int32, k *packet) {
	if ingress == none || !w.cbfc || !w.ports[ingress].queues[k.class].lossless {
		return
	}
	w.account(ingress, k.class, k.size, true, nil)
	w.account(ingress, k.class, k.size, false, nil)
}

// decideAt has the port choose a packet as soon as its link is free.
func (w *world) decideAt(id int32, p *port) {
	p.deciding = true
	if at := max(w.now, p.freeAt); at > w.now || !p.fromHost {
		w.events.push(at, evDecide, uint32(id))
		return
	}
	w.decide(id) // a host's packets come one by one
}

// decideLast is decideAt as the last that an event does. If no other event happens at this ns, the
// port's decision would be the next: it needs no event.
func (w *world) decideLast(id int32, p *port) {
	if p.freeAt <= w.now && w.events.alone(w.now) {
		w.decide(id)
		return
	}
	w.decideAt(id, p)
}

// decide starts the first packet of the highest class that may send. A lower class that lacks
// credits is OFF all the same.
func (w *world) decide(id int32) {
	p := &w.ports[id]
	p.deciding = false
	if p.down {
		return
	}
	if p.weighted {
		if class, ok := w.decideByRounds(p); ok {
			w.transmit(id, p, &p.queues[class], uint8(class))
		}
		return
	}
	chosen := -1
	for left := p.backlog; left != 0; {
		class := bits.Len8(left) - 1
		left &^= 1 << class
		q := &p.queues[class]
		if q.paused || q.off || q.lossless && p.credits && !w.hasCredits(q) {
			continue
		}
		chosen = max(chosen, class)
		if !p.credits {
			break
		}
	}
	if chosen >= 0 {
		w.transmit(id, p, &p.queues[chosen], uint8(chosen))
	}
}

// hasCredits reports whether the first packet may go. If not, the queue is OFF from now on.
func (w *world) hasCredits(q *queue) bool {
	if w.core.may(q, w.packets.packets[q.head].size) {
		return true
	}
	q.off = true
	q.pausedSince = w.now
	return false
}

// transmit starts the first packet of a class on the wire.
func (w *world) transmit(id int32, p *port, q *queue, class uint8) {
	waited := q.readyAt > p.freeAt
	i := q.pop(&w.packets)
	k := &w.packets.packets[i]
	waited = waited && q.readyAt > k.arrived
	if q.packets == 0 {
		p.backlog &^= 1 << class
	}
	size := uint64(k.size)
	p.bytes -= size
	p.occupy(w.now, size)
	if w.transport.telemetry != nil && k.kind == packetData && !p.fromHost {
		w.transport.telemetry.stamp(i, w.now, p, w.transport.flows[k.flow].intMulti)
	}
	p.counters.sentPackets++
	p.counters.sentBytes += size
	if q.lossless && p.credits {
		w.core.spend(q, k.size)
	}
	if q.marked {
		w.mark(p, q, k, waited)
		k = &w.packets.packets[i] // the slab moves when it grows
	}
	if w.trace != nil {
		w.traced(PacketSent, id, i)
	}
	if p.backlog != 0 {
		p.deciding = true
		w.events.push(p.freeAt, evDecide, uint32(id))
	}
	if !p.fromHost {
		n := &w.nodes[p.node]
		n.used -= size
		if k.ingress != none {
			w.account(k.ingress, class, k.size, false, n)
		}
	} else if k.kind <= packetUDP && k.ingress == none { // it is the host's own
		w.transport.handedOver(&w.transport.flows[k.flow], i)
	}
	k = &w.packets.packets[i]
	k.arrived = p.freeAt + p.delay
	if w.jitter != nil && p.jitter != 0 {
		k.arrived = w.delayed(p, k.arrived)
	}
	if w.noise != nil && w.nodes[p.peer].isHost {
		k.arrived = w.noise.seen(id, k.arrived)
	}
	if p.cut {
		w.handOver(id, p, i)
		return
	}
	w.putOnWire(id, p, i, w.now)
}

// putOnWire puts a packet on a port's wire. Its arrival is pushed by that of the packet before it;
// if none is on the wire, at the time pushed.
func (w *world) putOnWire(id int32, p *port, i int32, pushed int64) {
	p.wire.push(&w.packets, i)
	if p.wire.packets == 1 {
		w.pushArrival(id, p, pushed)
	}
}

// pushArrival pushes the arrival of the first packet on a port's wire.
func (w *world) pushArrival(id int32, p *port, pushed int64) {
	at := w.packets.packets[p.wire.head].arrived
	w.events.add(newEvent(pushed, at, evArrive, w.turns[id], uint32(id)))
}

// occupy has the link taken by a packet that starts.
func (p *port) occupy(now int64, size uint64) {
	work := size * 8_000_000_000
	if now == p.freeAt {
		work += p.rest
	}
	p.freeAt = now + int64(work/p.rate)
	p.rest = work % p.rate
}

// mark asks the core what becomes of a packet that starts.
func (w *world) mark(p *port, q *queue, k *packet, waited bool) {
	if q.bytes < uint64(q.calmBytes) && p.calm < mostCalm {
		if w.wredBytes == 0 || k.ecn != ecnNone { // the core draws no number for others
			p.calm++
		}
		return
	}
	verdict := w.core.judge(w.now, p, q, k, waited, w.wredBytes != 0)
	if verdict == 0 {
		return
	}
	switch {
	case verdict&w.core.ce != 0:
		p.markedPackets++
		if k.ecn != ecnNone {
			k.ecn = ecnCE
		}
	case verdict&w.core.ue != 0:
		if k.ecn == ecnECT {
			k.ecn = ecnUE
		}
	default:
		w.sendCNM(p, k, verdict>>w.core.feedbackShift)
	}
}

// relayed reports whether a packet is for another host than that which it comes to.
func (w *world) relayed(host, i int32) bool {
	if !w.relays {
		return false
	}
	k := &w.packets.packets[i]
	return w.transport.flows[k.flow].keyOf(k.kind).dst != host
}

// arrive takes the first packet off a port's wire and hands it to the node at the other end.
func (w *world) arrive(id int32) {
	p := &w.ports[id]
	i := p.wire.pop(&w.packets)
	n := &w.nodes[p.peer]
	n.arrivals++
	w.turns[id] = n.arrivals
	if p.wire.packets > 0 {
		w.pushArrival(id, p, w.now)
	}
	if p.unsound && w.lost(p) {
		w.loseOnLink(id, i)
		return
	}
	if w.nodes[p.peer].isHost && !w.relayed(p.peer, i) {
		if w.trace != nil {
			w.traced(PacketReceived, id, i)
		}
		w.transport.receive(i)
		return
	}
	k := &w.packets.packets[i]
	k.step++
	out := w.nextPort(p.peer, k)
	if out == none {
		w.loseOnLink(id, i)
		return
	}
	if w.waits(out, i, p.back) {
		w.decideLast(out, &w.ports[out])
	}
}

// sendCNM has a switch tell the sender of a packet how long its queue is.
func (w *world) sendCNM(p *port, sampled *packet, feedback uint64) {
	id, seq := sampled.flow, sampled.seq // the slab may move below
	i := w.packets.alloc()
	k := &w.packets.packets[i]
	k.flow, k.kind, k.class, k.size = id, packetCNM, w.ranks.control, cnmBytes
	k.note, k.seq, k.cum = notification(feedback), seq, uint32(w.ports[p.back].back)
	if out := w.nextPort(p.node, k); out != none {
		w.enqueue(out, i, none)
		return
	}
	w.packets.release(i)
}

// nextPort returns the port by which a packet leaves a switch.
func (w *world) nextPort(node int32, k *packet) int32 {
	if w.unfixed {
		return w.routed(node, k)
	}
	if k.kind == packetCNM {
		return int32(w.plan.routes.Ports(int(node), int(w.transport.flows[k.flow].key.src))[0])
	}
	return w.transport.steps[k.step]
}
