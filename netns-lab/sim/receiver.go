// SPDX-License-Identifier: Apache-2.0

package sim

// delayedACKNs is how long an ACK waits for a second packet: Linux's least, at the lab's usual
// dilation.
const delayedACKNs = 40_000_000 >> dilation

// receive hands a packet to a host.
func (w *world) receive(i int32) {
	k := &w.packets.packets[i]
	f := &w.flows[k.flow]
	switch k.kind {
	case packetData:
		if w.telemetry != nil {
			w.telemetry.arrived(i, k.flow)
		}
		w.receiveData(f, k)
	case packetUDP:
		w.count(f, k, ethHeader+udpIPHeader)
	case packetACK:
		if w.telemetry != nil {
			w.telemetry.deliver(i)
		}
		if k.note.send() {
			f.cnps++
			w.control.hearCNP(w.now, f, k.note)
			w.obey(f)
		}
		w.acknowledged(f, k)
	case packetCNP:
		f.cnps++
		w.control.hearCNP(w.now, f, k.note)
		w.heard(f)
	case packetCNM:
		if f.kind == packetData && f.started {
			f.cnps++
			w.control.hearCNM(w.now, f, uint32(k.note))
			w.heard(f)
		}
	}
	w.packets.release(i)
}

// heard follows a notification: the rate may have changed.
func (w *world) heard(f *flow) {
	w.obey(f)
	w.trySend(f)
}

// count counts a data packet at its receiver.
func (w *world) count(f *flow, k *packet, header uint64) {
	f.arrived++
	f.received += uint64(k.size) - header
	f.binBytes += uint64(k.size)
	f.lastAt = w.now
	if k.ecn == ecnCE {
		f.marked++
		f.binMarked++
	}
}

// receiveData counts a packet of a controlled flow, has the notification point look at it, and
// acknowledges it.
func (w *world) receiveData(f *flow, k *packet) {
	// the slab may move below
	seq, size, ecn, sentAt, flags := k.seq, k.size, k.ecn, k.sent, k.flags
	f.ackOrder = k.order
	inPlace := !w.goBackN || seq == f.expected
	if inPlace && (!w.goBackZero || seq >= f.had) {
		w.count(f, k, uint64(f.frame-f.mss))
	} else {
		f.arrived++
	}
	if w.notifier != nil {
		if n := w.notifier.receive(w.now, f, size, uint64(ecn)); n.send() {
			w.notify(f, n)
		}
		w.waitForWindow(f)
	}
	if !inPlace {
		w.refuse(f, seq, sentAt)
		return
	}
	inOrder := f.take(seq)
	if f.expected >= f.tellAt {
		w.tell(f)
	}
	ce := ecn == ecnCE
	if w.latchECE {
		f.echo = f.echo && flags&flagCWR == 0 || ce
	} else if ce {
		f.pendingCE++
	}
	f.pending++
	f.ackSent, f.ackSeq = sentAt, seq
	if !w.delayedACK || !inOrder || ce || f.pending >= 2 {
		w.sendACK(f)
		return
	}
	f.ackAt = w.now + delayedACKNs
	w.waitForACK(f)
}

// waitForACK has ackDue look at a flow when the ACK that waits is due, unless it will do so before.
func (w *world) waitForACK(f *flow) {
	if !f.ackTimer {
		f.ackTimer = true
		w.events.push(f.ackAt, evAck, uint32(f.id))
	}
}

// waitForWindow has windowDue look at a flow when its window ends, unless it will do so before.
func (w *world) waitForWindow(f *flow) {
	if f.windowTimer {
		return
	}
	if at := w.notifier.dueAt(f); at != 0 {
		f.windowTimer = true
		// jitter may shorten a window that runs already
		w.events.push(max(at, w.now), evWindow, uint32(f.id))
	}
}

// windowDue closes a window of a notification point whose windows end by a timer.
func (w *world) windowDue(f *flow) {
	f.windowTimer = false
	if n := w.notifier.timer(w.now, f); n.send() {
		w.notify(f, n)
	}
	w.waitForWindow(f)
}

// nackIntervalNs is how long a receiver waits before it asks for the same packet again, as that of
// HPCC's simulator does.
const nackIntervalNs = 500_000

// refuse answers a packet that is not the next: one behind a lost packet by a NACK, which asks for
// the lost one, and one that came before by an ACK.
func (w *world) refuse(f *flow, seq uint32, sentAt int64) {
	f.ackSent, f.ackSeq = sentAt, seq
	var flags uint8
	if int32(seq-f.expected) > 0 {
		if f.nacked == f.expected+1 && w.now < f.nackAt+nackIntervalNs {
			return
		}
		if w.goBackZero {
			f.had, f.expected = max(f.had, f.expected), 0
		}
		f.nacked, f.nackAt = f.expected+1, w.now
		flags = flagNACK
	}
	w.sendFlagged(f, flags)
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
func (w *world) ackDue(f *flow) {
	f.ackTimer = false
	switch {
	case f.pending == 0:
	case w.now < f.ackAt:
		w.waitForACK(f)
	default:
		w.sendACK(f)
	}
}

func (w *world) sendACK(f *flow) { w.sendFlagged(f, 0) }

// sendFlagged sends an ACK with flags.
func (w *world) sendFlagged(f *flow, flags uint8) {
	i := w.packets.alloc()
	k := &w.packets.packets[i]
	k.flags = flags
	k.flow, k.kind, k.class, k.size = f.id, packetACK, w.ranks.control, w.ackBytes
	k.note, f.pendingNote = f.pendingNote, 0
	if w.telemetry != nil {
		w.telemetry.echo(i, f.id)
		k.size += telemetryBytes
	}
	k.step = f.ackStep
	k.cum, k.seq, k.sent, k.order = f.expected, f.ackSeq, f.ackSent, f.ackOrder
	k.count, k.marked = f.pending, f.pendingCE
	if f.echo {
		k.flags |= flagECE
	}
	f.pending, f.pendingCE = 0, 0
	w.enqueue(f.ackNIC, i, none)
}

// notify sends a notification, or keeps it for the next ACK.
func (w *world) notify(f *flow, n notification) {
	if w.cnpsOnACKs {
		f.pendingNote = n
		return
	}
	w.sendCNP(f, n)
}

func (w *world) sendCNP(f *flow, n notification) {
	i := w.packets.alloc()
	k := &w.packets.packets[i]
	k.flow, k.kind, k.class, k.size, k.note = f.id, packetCNP, w.ranks.control, cnpBytes, n
	k.step = f.cnpStep
	w.enqueue(f.cnpNIC, i, none)
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
		return int32(w.plan.routes.Ports(int(node), int(w.flows[k.flow].key.src))[0])
	}
	return w.steps[k.step]
}
