// SPDX-License-Identifier: Apache-2.0

package sim

// delayedACKNs is how long an ACK waits for a second packet: Linux's least, at the lab's usual
// dilation.
const delayedACKNs = 40_000_000 >> dilation

// receive hands a packet to a host.
func (t *transport) receive(i int32) {
	k := &t.packets.packets[i]
	f := &t.flows[k.flow]
	switch k.kind {
	case packetData:
		if t.telemetry != nil {
			t.telemetry.arrived(i, k.flow)
		}
		t.receiveData(f, k)
	case packetUDP:
		t.count(f, k, ethHeader+udpIPHeader)
	case packetACK:
		if t.telemetry != nil {
			t.telemetry.deliver(i)
		}
		if k.note.send() {
			f.cnps++
			t.control.hearCNP(t.now, f, k.note)
			t.obey(f)
		}
		t.acknowledged(f, k)
		t.heardAnswer(f)
	case packetCNP:
		f.cnps++
		t.control.hearCNP(t.now, f, k.note)
		t.heard(f)
		t.heardAnswer(f)
	case packetCNM:
		if f.kind == packetData && f.started {
			f.cnps++
			t.control.hearCNM(t.now, f, uint32(k.note))
			t.heard(f)
		}
	}
	t.packets.release(i)
}

// heardAnswer counts an ACK or a CNP.
func (t *transport) heardAnswer(f *flow) {
	f.answersHeard++
	if f.retires && f.completed != 0 {
		t.retireSoon(f)
	}
}

// heard follows a notification: the rate may have changed.
func (t *transport) heard(f *flow) {
	t.obey(f)
	t.trySend(f)
}

// count counts a data packet at its receiver.
func (t *transport) count(f *flow, k *packet, header uint64) {
	f.arrived++
	f.received += uint64(k.size) - header
	f.binBytes += uint64(k.size)
	f.lastAt = t.now
	if k.ecn == ecnCE {
		f.marked++
		f.binMarked++
	}
}

// receiveData counts a packet of a controlled flow, has the notification point look at it, and
// acknowledges it.
func (t *transport) receiveData(f *flow, k *packet) {
	// the slab may move below
	seq, size, ecn, sentAt, flags := k.seq, k.size, k.ecn, k.sent, k.flags
	f.ackOrder = k.order
	inPlace := !t.goBackN || seq == f.expected
	if inPlace && (!t.goBackZero || seq >= f.had) {
		t.count(f, k, uint64(f.frame-f.mss))
	} else {
		f.arrived++
	}
	if t.notifier != nil {
		if n := t.notifier.receive(t.now, f, size, uint64(ecn)); n.send() {
			t.notify(f, n)
		}
		t.waitForWindow(f)
	}
	if !inPlace {
		t.refuse(f, seq, sentAt)
		return
	}
	inOrder := f.take(seq)
	if f.expected >= f.tellAt {
		t.tell(f)
	}
	ce := ecn == ecnCE
	if t.latchECE {
		f.echo = f.echo && flags&flagCWR == 0 || ce
	} else if ce {
		f.pendingCE++
	}
	f.pending++
	f.ackSent, f.ackSeq = sentAt, seq
	switch {
	case t.gro && inOrder && uint32(f.pending)*f.frame < groBytes:
		f.ackAt = t.now // behind all that it sees now
	case !t.delayedACK || !inOrder || ce || f.pending >= 2:
		t.sendACK(f)
		return
	default:
		f.ackAt = t.now + delayedACKNs
	}
	t.waitForACK(f)
}

// waitForACK has ackDue look at a flow when the ACK that waits is due, unless it will do so before.
func (t *transport) waitForACK(f *flow) {
	if !f.ackTimer {
		f.ackTimer = true
		t.events.push(f.ackAt, evAck, uint32(f.id))
	}
}

// waitForWindow has windowDue look at a flow when its window ends, unless it will do so before.
func (t *transport) waitForWindow(f *flow) {
	if f.windowTimer {
		return
	}
	if at := t.notifier.dueAt(f); at != 0 {
		f.windowTimer = true
		// jitter may shorten a window that runs already
		t.events.push(max(at, t.now), evWindow, uint32(f.id))
	}
}

// windowDue closes a window of a notification point whose windows end by a timer.
func (t *transport) windowDue(f *flow) {
	f.windowTimer = false
	if n := t.notifier.timer(t.now, f); n.send() {
		t.notify(f, n)
	}
	t.waitForWindow(f)
	if f.retires && !f.split && f.completed != 0 {
		t.retire(f, t.notifier)
	}
}

// nackIntervalNs is how long a receiver waits before it asks for the same packet again, as that of
// HPCC's simulator does.
const nackIntervalNs = 500_000

// refuse answers a packet that is not the next: one behind a lost packet by a NACK, which asks for
// the lost one, and one that came before by an ACK.
func (t *transport) refuse(f *flow, seq uint32, sentAt int64) {
	f.ackSent, f.ackSeq = sentAt, seq
	var flags uint8
	if int32(seq-f.expected) > 0 {
		if f.nacked == f.expected+1 && t.now < f.nackAt+nackIntervalNs {
			return
		}
		if t.goBackZero {
			f.had, f.expected = max(f.had, f.expected), 0
		}
		f.nacked, f.nackAt = f.expected+1, t.now
		flags = flagNACK
	}
	t.sendFlagged(f, flags)
}

// take notes a packet. Returns whether it was the one that was expected, and no other is missing.
func (f *flow) take(seq uint32) bool {
	switch {
	case seq != f.expected:
		if int32(seq-f.expected) > 0 {
			if f.ahead == nil {
				f.ahead = map[uint32]struct{}{}
			}
			f.ahead[seq] = struct{}{}
		}
		return false
	case len(f.ahead) == 0:
		f.expected++
		return true
	}
	for f.expected++; ; f.expected++ {
		if _, ok := f.ahead[f.expected]; !ok {
			return false
		}
		delete(f.ahead, f.expected)
	}
}

// ackDue sends an ACK that waited long enough. The timer may be that of an earlier one, which was
// sent with the packet behind: as on Linux (tcp_delack_timer_handler) it then is set again.
func (t *transport) ackDue(f *flow) {
	f.ackTimer = false
	switch {
	case f.pending == 0:
	case t.now < f.ackAt:
		t.waitForACK(f)
	default:
		t.sendACK(f)
	}
}

func (t *transport) sendACK(f *flow) { t.sendFlagged(f, 0) }

// sendFlagged sends an ACK with flags.
func (t *transport) sendFlagged(f *flow, flags uint8) {
	f.answers++
	i := t.packets.alloc()
	k := &t.packets.packets[i]
	k.flags = flags
	k.flow, k.kind, k.class, k.size = f.id, packetACK, t.ranks.control, t.ackBytes
	k.note, f.pendingNote = f.pendingNote, 0
	if t.telemetry != nil {
		t.telemetry.echo(i, f.id)
		k.size += telemetryBytes
	}
	k.step = f.ackStep
	k.cum, k.seq, k.sent, k.order = f.expected, f.ackSeq, f.ackSent, f.ackOrder
	k.marked = f.pendingCE
	if f.echo {
		k.flags |= flagECE
	}
	f.pending, f.pendingCE = 0, 0
	t.enqueue(f.ackNIC, i, none)
}

// notify sends a notification, or keeps it for the next ACK.
func (t *transport) notify(f *flow, n notification) {
	if t.cnpsOnACKs {
		f.pendingNote = n
		return
	}
	t.sendCNP(f, n)
}

func (t *transport) sendCNP(f *flow, n notification) {
	f.answers++
	i := t.packets.alloc()
	k := &t.packets.packets[i]
	k.flow, k.kind, k.class, k.size, k.note = f.id, packetCNP, t.ranks.control, cnpBytes, n
	k.step = f.cnpStep
	t.enqueue(f.cnpNIC, i, none)
}
