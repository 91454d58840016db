// SPDX-License-Identifier: Apache-2.0

package sim

// maxBackoff limits how often the retransmission timer doubles.
const maxBackoff = 6

// begin starts a flow.
func (t *transport) begin(f *flow) {
	if f.packets != 0 && f.allowed == 0 {
		return // it waits for others
	}
	f.started = true
	f.nextAt = t.now
	if f.kind == packetUDP {
		t.trySend(f)
		return
	}
	if t.control == nil { // nothing controls it
		f.setRate(uint64(f.spec.InitialRate))
		t.trySend(f)
		return
	}
	c := t.control
	rate := uint64(f.spec.InitialRate)
	if err := c.establish(t.now, f, f.mss, f.ecn != ecnNone, rate); err != nil {
		panic(trap{err})
	}
	t.obey(f)
	t.trySend(f)
}

// obey takes over what the control has decided.
func (t *transport) obey(f *flow) {
	c := t.control
	if c.hasRate() {
		f.setRate(c.rateBps(f))
		return
	}
	f.window = max(c.window(f), 1)
	f.gap, f.rate = 0, 0
	if gap := c.gapNs(f, uint64(f.mss)); gap != 0 {
		f.gap = uint64(gap) << gapShift
	}
	if limit := f.limitRate; limit != 0 && limit < f.lineRate {
		slowest := uint64(f.frame) * (8_000_000_000 << gapShift) / limit
		f.gap = max(f.gap, slowest)
	}
}

// trySend hands the flow's next packet to its host's port, or wakes up when it may.
func (t *transport) trySend(f *flow) {
	if f.lasts != 0 && t.now >= f.start+f.lasts {
		f.stopped = true
	}
	if !f.started || f.stopped || f.queued || !f.hasData() || !f.open() ||
		f.flightBytes != 0 && t.full(f) {
		return
	}
	if f.nextAt > t.now {
		if !f.waking || f.wakeAt > f.nextAt {
			f.waking, f.wakeAt = true, f.nextAt
			t.events.push(f.nextAt, evWake, uint32(f.id))
		}
		return
	}
	t.send(f, t.nextSeq(f))
}

// open reports whether the window lets a packet leave. The first retransmission of a recovery does
// not wait for it, RFC 6675, section 5, (4.3): nothing else tells of a lost flight.
func (f *flow) open() bool {
	return f.window == 0 || f.inFlight() < f.window ||
		f.fastRetransmit && f.board != nil && f.board.lost > 0
}

// full reports whether the flow has in flight what the transport allows.
func (t *transport) full(f *flow) bool {
	most := f.flightBytes
	if t.scaleFlight && f.rate != 0 {
		most = most * (f.rate >> 10) / (f.lineRate >> 10)
	}
	return f.inFlight() > 0 && uint64(f.inFlight())*uint64(f.mss) >= most
}

// wake is the end of a wait.
func (t *transport) wake(f *flow) {
	if f.waking && f.wakeAt <= t.now {
		f.waking = false
	}
	t.trySend(f)
}

// nextSeq returns the first lost packet, or a new one.
func (t *transport) nextSeq(f *flow) uint32 {
	b := f.board
	if b == nil || b.lost == 0 {
		f.nxt++
		if b != nil {
			b.reach(f)
		}
		return f.nxt - 1
	}
	for seq := b.firstLost; ; seq++ {
		if b.at(seq).lost {
			*b.at(seq) = sent{again: true, order: f.segments + 1}
			b.resent = append(b.resent, resend{seq, f.segments + 1, f.nxt})
			b.lost--
			b.firstLost = seq + 1
			f.fastRetransmit = false
			f.retransmissions++
			return seq
		}
	}
}

// send puts a packet into the port of the flow's host.
func (t *transport) send(f *flow, seq uint32) {
	i := t.packets.alloc()
	k := &t.packets.packets[i]
	k.flow, k.kind, k.class, k.ecn = f.id, f.kind, f.class, f.ecn
	k.seq, k.size, k.step = seq, f.frameOf(seq), f.step
	f.queued = true
	f.segments++
	f.payloadBytes += uint64(k.size - (f.frame - f.mss))
	k.order = f.segments
	if f.kind == packetData {
		if t.telemetry != nil {
			t.telemetry.begin(i)
		}
		t.prepareTCP(f, k)
	}
	t.enqueue(f.nic, i, none)
}

// prepareTCP sets what only packets of controlled flows have.
func (t *transport) prepareTCP(f *flow, k *packet) {
	f.reduce.out++
	if f.cwr {
		k.flags |= flagCWR
		f.cwr = false
	}
	if t.dropFirstRTT && !f.last(k.seq) && t.control.inFirstRTT(f, (k.seq+1)*f.mss) {
		k.ecn = ecnNone
	}
	if !f.timing {
		t.startTimer(f)
	}
}

// handedOver is called when a packet of the flow starts on its host's link.
func (t *transport) handedOver(f *flow, i int32) {
	k := &t.packets.packets[i]
	k.sent = t.now
	f.queued = false
	if f.kind == packetUDP {
		f.nextAt += int64(f.gap >> gapShift) // it was due then, whenever the link was free
	} else {
		f.pace(t.now, k.size)
	}
	t.trySend(f)
}

// acknowledged handles an ACK.
func (t *transport) acknowledged(f *flow, k *packet) {
	before := f.inFlight()
	acked := f.advance(k.cum)
	if t.goBackN {
		if t.goBackZero && k.flags&flagNACK != 0 {
			f.una = 0
		}
		if k.flags&flagNACK != 0 || int32(f.nxt-f.una) < 0 {
			f.goBack()
		}
	} else {
		acked += f.note(k.seq)
	}
	if int32(k.order-f.ackedOrder) > 0 {
		f.ackedOrder = k.order
	}
	f.delivered += acked
	if k.flags&flagECE != 0 {
		f.deliveredCE += acked
		t.answerECE(f)
	}
	f.deliveredCE += uint32(k.marked)
	var rtt int64
	if k.sent != 0 {
		rtt = t.now - k.sent
		f.measure(rtt)
	}
	if acked > 0 {
		f.backoff = 0
		f.timer = t.now + t.timeoutNs(f)
	}
	lost := !t.reorders && f.findLost()
	if f.packets != 0 && f.una >= f.packets && f.completed == 0 {
		f.completed = t.now
	}
	if t.control == nil {
		if lost {
			t.enterRecovery(f)
		}
		t.leaveRecovery(f)
		t.trySend(f)
		return
	}
	f.limited = f.window != 0 && before >= f.window
	if lost {
		t.enterRecovery(f)
	}
	t.control.ack(t.now, f, acked, before, rtt)
	if t.control.congControl == nil {
		t.manageWindow(f, acked, k.marked > 0)
	}
	t.leaveRecovery(f)
	t.obey(f)
	t.trySend(f)
}

// answerECE is RFC 3168: the first ECE of a round trip is answered by CWR.
func (t *transport) answerECE(f *flow) {
	if int32(f.una-f.cwrEnd) >= 0 {
		f.cwrEnd = f.nxt
		f.cwr = true
	}
}

// advance acknowledges all packets before cum, and returns how many were not acknowledged before.
func (f *flow) advance(cum uint32) uint32 {
	if int32(cum-f.una) <= 0 {
		return 0
	}
	acked := cum - f.una
	b := f.board
	if b == nil {
		f.una = cum
		return acked
	}
	for seq := f.una; seq != cum; seq++ {
		x := b.at(seq)
		if x.sacked {
			b.sacked--
			acked--
		}
		if x.lost {
			b.lost--
		}
		*x = sent{}
	}
	f.una = cum
	if int32(cum-b.firstLost) > 0 {
		b.firstLost = cum
	}
	if b.sacked+b.lost == 0 && len(b.resent) == 0 && int32(cum-b.highest) > 0 {
		f.board = nil
	}
	return acked
}

// note acknowledges a packet out of order. Returns 1 if it was not acknowledged before.
func (f *flow) note(seq uint32) uint32 {
	if int32(seq-f.una) < 0 || int32(f.nxt-seq) <= 0 {
		return 0
	}
	if f.board == nil {
		f.board = f.newBoard()
	}
	b := f.board
	x := b.at(seq)
	if x.sacked {
		return 0
	}
	if x.lost {
		b.lost--
	}
	*x = sent{sacked: true}
	b.sacked++
	if int32(seq-b.highest) > 0 {
		b.highest = seq
	}
	return 1
}

// findLost takes packets for lost of which a later transmission has arrived: a flow's packets keep
// their order. Returns whether there are new ones.
func (f *flow) findLost() bool {
	b := f.board
	if b == nil {
		return false
	}
	before := b.lost
	f.findLostAgain()
	seq := b.scanned
	if int32(f.una-seq) > 0 {
		seq = f.una
	}
	for ; int32(b.highest-seq) > 0; seq++ {
		if x := b.at(seq); !x.sacked && !x.lost && !x.again {
			b.lose(seq)
		}
	}
	b.scanned = seq
	return b.lost > before
}

// findLostAgain finds what was sent again, and lost again. When a packet that was sent again has
// arrived, all that was sent before it has arrived too, or is lost.
func (f *flow) findLostAgain() {
	b := f.board
	done := 0
	for ; done < len(b.resent) && int32(f.ackedOrder-b.resent[done].order) >= 0; done++ {
		r := b.resent[done]
		if int32(r.next-b.highest) > 0 {
			b.highest = r.next
		}
		if int32(r.seq-f.una) < 0 {
			continue // it arrived
		}
		if x := b.at(r.seq); x.again && x.order == r.order && r.order != f.ackedOrder {
			b.lose(r.seq)
		}
	}
	b.resent = b.resent[:copy(b.resent, b.resent[done:])]
}

// enterRecovery starts a recovery, unless one is under way.
func (t *transport) enterRecovery(f *flow) {
	if f.state == stateRecovery || f.state == stateLoss {
		return
	}
	f.fastRetransmit = true
	t.reduceWindow(f, stateRecovery)
}

// reduceWindow has the control choose a window, and brings it down within a round trip.
func (t *transport) reduceWindow(f *flow, state uint8) {
	f.recover = f.nxt
	f.state = state
	if t.control == nil {
		return
	}
	f.reduce = reduction{before: t.control.window(f)}
	if t.control.congControl == nil {
		t.control.setThreshold(f, t.control.threshold(t.now, f))
	}
	t.control.changeState(t.now, f, state)
	f.reduce.threshold = t.control.slowStartThreshold(f)
}

// leaveRecovery ends a recovery when all is acknowledged that was sent before it.
func (t *transport) leaveRecovery(f *flow) {
	if f.state == stateOpen || int32(f.una-f.recover) < 0 {
		return
	}
	if t.control != nil && t.control.congControl == nil && f.state != stateLoss {
		t.control.setWindow(f, f.reduce.threshold)
	}
	f.state = stateOpen
	if t.control != nil {
		t.control.changeState(t.now, f, stateOpen)
	}
}

// manageWindow is what TCP does with the window of a control that leaves it to TCP.
func (t *transport) manageWindow(f *flow, acked uint32, marked bool) {
	if marked && f.state == stateOpen {
		t.reduceWindow(f, stateCWR)
	}
	switch f.state {
	case stateCWR, stateRecovery:
		f.reduce.delivered += acked
		t.control.setWindow(f, max(f.reduce.window(f.inFlight(), acked), 1))
	default:
		t.control.grow(t.now, f, acked)
	}
}

// measure smooths a round trip, RFC 6298.
func (f *flow) measure(rtt int64) {
	if f.srttNs == 0 {
		f.srttNs, f.rttvarNs = rtt, rtt/2
		return
	}
	diff := rtt - f.srttNs
	f.srttNs += diff / 8
	f.rttvarNs += (max(diff, -diff) - f.rttvarNs) / 4
}

// timeoutNs returns the retransmission timeout.
func (t *transport) timeoutNs(f *flow) int64 {
	return max(f.srttNs+4*f.rttvarNs, t.minTimeoutNs) << f.backoff
}

func (t *transport) startTimer(f *flow) {
	f.timing = true
	f.timer = t.now + t.timeoutNs(f)
	t.events.push(f.timer, evTimeout, uint32(f.id))
}

// timeout is the end of the retransmission timer, or when it was to end before an ACK moved it.
func (t *transport) timeout(f *flow) {
	f.timing = false
	if f.una == f.nxt || f.stopped {
		return
	}
	if f.timer > t.now {
		f.timing = true
		t.events.push(f.timer, evTimeout, uint32(f.id))
		return
	}
	f.timeouts++
	f.backoff = min(f.backoff+1, maxBackoff)
	if t.goBackN {
		f.goBack()
		t.startTimer(f)
		t.trySend(f)
		return
	}
	t.loseAll(f)
	t.reduceWindow(f, stateLoss)
	if t.control != nil {
		if t.control.congControl == nil {
			t.control.setWindow(f, 1)
		}
		t.obey(f)
	}
	t.startTimer(f)
	t.trySend(f)
}

// loseAll takes all packets under way for lost.
func (t *transport) loseAll(f *flow) {
	if f.board == nil {
		f.board = f.newBoard()
	}
	b := f.board
	b.scanned = f.nxt
	b.resent = b.resent[:0]
	for seq := f.una; seq != f.nxt; seq++ {
		if x := b.at(seq); !x.sacked && !x.lost {
			b.lose(seq)
		}
	}
}
