// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/pcn-linux/pcn/internal/experiment"

// flow is a flow: its sender, its receiver and what is counted of it. Flows of experiments come
// first, then those of bursts. What its sender writes stands before what its receiver writes: they
// may be in two parts of the run, on two cores.
type flow struct {
	spec *experiment.Flow // of a burst: what there is of it
	size uint64

	start       int64
	lasts       int64 // how long it sends; 0: to its end
	limitRate   uint64
	lineRate    uint64 // of its host
	flightBytes uint64 // that may be under way; 0: any
	intMulti    uint64 // scale of its telemetry; 0: it has none

	key     key
	id      int32
	nic     int32 // port of its host
	ackNIC  int32 // of its receiver's, for ACKs
	cnpNIC  int32 // and for CNPs
	mss     uint32
	frame   uint32 // full
	packets uint32 // of its data; 0: it never ends
	allowed uint32 // of them: those behind wait for other flows

	lastFrame      uint32 // of the last packet, and of the last one of each message
	messagePackets uint32 // of each message; 0: there are none
	tellAt         uint32 // packets whose arrival other flows wait for

	// Where the paths of its data, ACKs and CNPs begin in world.steps; hops is the length of the
	// first.
	step, ackStep, cnpStep uint32
	hops                   uint16
	kind                   packetKind
	class                  uint8
	ecn                    uint8 // of its packets

	// Sending.
	started, stopped bool
	retires, retired bool   // its state goes when it is done, and has: see retire.go
	split            bool   // its receiver is in another part of the run
	queued           bool   // a packet waits in its host's port
	waking           bool   // an evWake is to come
	limited          bool   // the window held it back
	fastRetransmit   bool   // the first lost packet may go, whatever the window
	cwr              bool   // the next packet says so
	timing           bool   // an evTimeout is to come
	backoff          uint8  // of the retransmission timer
	state            uint8  // of TCP
	sock, entry      uint32 // addresses of its state in wasm; 0: none
	wakeAt           int64  // of the evWake
	nextAt           int64  // when the next packet may go
	gap              uint64 // in units of 2^-gapShift ns; 0: unpaced
	gapRest          uint64
	rate             uint64 // that gap was computed of
	window           uint32 // packets; 0: none
	una, nxt         uint32
	credit           uint32
	srttNs, rttvarNs int64
	payloadBytes     uint64 // of transmissions
	delivered        uint32
	deliveredCE      uint32
	segments         uint32 // transmissions
	ackedOrder       uint32 // of the latest transmission that arrived
	retransmissions  uint32
	timeouts         uint32
	answersHeard     uint32 // ACKs and CNPs
	cnps             uint32
	recover          uint32    // recovery ends when this is acknowledged
	cwrEnd           uint32    // RFC 3168: answered marks until then
	reduce           reduction // of the window
	board            *board    // nil while nothing is missing
	timer            int64     // when the retransmission timer ends
	completed        int64     // 0: not yet

	// Receiving.
	notify      uint32 // address of the state of the notification point in wasm; 0: none
	expected    uint32
	ahead       map[uint32]struct{} // packets that came before one that is missing
	pending     uint16              // packets since the last ACK
	pendingCE   uint16
	ackTimer    bool // an evAck is to come
	windowTimer bool // an evWindow is to come
	echo        bool // RFC 3168: say ECE
	ackSeq      uint32
	ackOrder    uint32
	arrived     uint32 // packets
	marked      uint32
	binMarked   uint32
	answers     uint32 // ACKs and CNPs
	ackAt       int64  // when the ACK that waits is due
	ackSent     int64  // when the newest data packet was sent
	lastAt      int64
	received    uint64 // payload
	binBytes    uint64
	pendingNote notification // for the next ACK
	// Going back N:
	nacked uint32 // the packet that the latest NACK asked for, + 1; 0: none
	had    uint32 // packets that came in order before it went back to the first
	nackAt int64  // when it was sent
}

const gapShift = 10

// keyOf returns the addresses and ports in the flow's packets of a kind.
func (f *flow) keyOf(kind packetKind) key {
	switch kind {
	case packetACK, packetCNM:
		return f.key.reversed()
	case packetCNP:
		return f.key.cnp()
	default:
		return f.key
	}
}

// last reports whether a packet is the flow's last.
func (f *flow) last(seq uint32) bool { return f.packets != 0 && seq == f.packets-1 }

// frameOf returns the length of a packet's frame.
func (f *flow) frameOf(seq uint32) uint32 {
	if f.last(seq) || f.messagePackets != 0 && (seq+1)%f.messagePackets == 0 {
		return f.lastFrame
	}
	return f.frame
}

// inFlight returns how many packets are under way.
func (f *flow) inFlight() uint32 {
	n := f.nxt - f.una
	if f.board != nil {
		n -= f.board.sacked + f.board.lost
	}
	return n
}

// goBack has the flow send all packets again that were not acknowledged. An ACK of what it sent
// before it went back may be of packets that it has not sent again.
func (f *flow) goBack() {
	if again := int32(f.nxt - f.una); again > 0 {
		f.retransmissions += uint32(again)
	}
	f.nxt = f.una
}

// hasData reports whether there is a packet to send.
func (f *flow) hasData() bool {
	return f.board != nil && f.board.lost > 0 || f.packets == 0 || f.nxt < f.allowed
}

// setRate sets the pacing.
func (f *flow) setRate(bps uint64) {
	if f.limitRate != 0 {
		bps = min(bps, f.limitRate)
	}
	bps = max(bps, 1)
	if bps != f.rate {
		f.rate = bps
		f.gap = uint64(f.frame) * (8_000_000_000 << gapShift) / bps
	}
}

// pace notes that a packet started at a time. The next waits for its share of the rate.
func (f *flow) pace(now int64, frame uint32) {
	if f.gap == 0 {
		return
	}
	gap := f.gap
	if frame != f.frame {
		gap = gap / uint64(f.frame) * uint64(frame)
	}
	f.gapRest += gap
	f.nextAt = now + int64(f.gapRest>>gapShift)
	f.gapRest &= 1<<gapShift - 1
}

// board is what a sender knows of the packets from una on, when some were acknowledged out of
// order.
type board struct {
	ring         []sent // of packets from una to nxt; its length is a power of two
	sacked, lost uint32
	highest      uint32   // packets before have arrived, or are lost
	scanned      uint32   // packets before are known to be lost, or not
	firstLost    uint32   // no packet before is lost
	resent       []resend // transmissions of packets that were sent again, in their order
}

// sent is a packet that was acknowledged out of order, or is lost, or was sent again.
type sent struct {
	sacked, lost, again bool
	order               uint32 // of the transmission that sent it again
}

// resend is a packet that was sent again. next is the flow's next new packet at that time: all
// before it had been sent.
type resend struct{ seq, order, next uint32 }

// newBoard returns a board for the packets under way.
func (f *flow) newBoard() *board {
	b := &board{highest: f.una, scanned: f.una, firstLost: f.una}
	b.reach(f)
	return b
}

// reach makes room for all packets under way.
func (b *board) reach(f *flow) {
	need := int(f.nxt - f.una + 1)
	if need <= len(b.ring) {
		return
	}
	size := max(len(b.ring), 64)
	for size < need {
		size *= 2
	}
	ring := make([]sent, size)
	if len(b.ring) > 0 {
		for seq := f.una; seq != f.nxt; seq++ {
			ring[seq&uint32(size-1)] = *b.at(seq)
		}
	}
	b.ring = ring
}

// at returns a packet under way.
func (b *board) at(seq uint32) *sent { return &b.ring[seq&uint32(len(b.ring)-1)] }

// lose takes a packet for lost.
func (b *board) lose(seq uint32) {
	*b.at(seq) = sent{lost: true}
	b.lost++
	if int32(b.firstLost-seq) > 0 {
		b.firstLost = seq
	}
}

// reduction is how TCP reduces its window to a threshold: proportional rate reduction, RFC 6937.
type reduction struct {
	threshold, before uint32 // windows
	delivered, out    uint32
}

// window returns the window when so many packets are in flight.
func (r *reduction) window(inFlight, acked uint32) uint32 {
	var send uint32
	if inFlight > r.threshold {
		share := (uint64(r.threshold)*uint64(r.delivered) + uint64(r.before) - 1) /
			uint64(max(r.before, 1))
		send = uint32(max(int64(share)-int64(r.out), 0))
	} else {
		send = min(r.threshold-inFlight, acked)
	}
	if r.out == 0 {
		send = max(send, 1)
	}
	return inFlight + send
}
