// SPDX-License-Identifier: Apache-2.0

package sim

// PacketEvent is what happens to a packet at a port.
type PacketEvent struct {
	TimeNs int64 // since t = 0
	Event  string
	Port   int // index into [result.Run.Ports]
	Kind   string
	Flow   string
	Seq    uint32 // number of the packet in its flow; of an ACK, of the packet expected next
	Bytes  uint32 // of the frame
	Class  uint8
	ECN    uint8 // codepoint
	// QueueBytes is what the port's queue holds, of all classes, after the event.
	QueueBytes uint64

	Src, Dst         int    // hosts: their addresses are those of package network
	SrcPort, DstPort uint16 // of a CNP, those of the flow's data
	Protocol         uint8
	ECE, CWR         bool
	Payload          uint32 // of full packets of the flow
	CE, UE           bool   // what a CNP says
	RecRateMbps      uint32 // in a CNP
	QntzFb           uint8  // in a CNM
	SampledBy        uint32 // of a CNM, the port that sampled the packet Seq
	SampledClass     uint8  // of that packet's flow
	SampledECN       uint8
}

// The events of packets.
const (
	PacketEnqueued = "enqueue" // it entered the port's queue
	PacketSent     = "send"    // it starts on the port's link
	PacketDropped  = "drop"    // by the port
	PacketLost     = "lost"    // on the port's link, or behind it for want of a path
	PacketReceived = "receive" // at the host that the port leads to
)

// packetKinds are the names of kinds.
var packetKinds = [...]string{
	packetData: "data", packetUDP: "burst", packetACK: "ack", packetCNP: "cnp", packetCNM: "cnm",
}

// traced tells of what happens to a packet at a port.
func (w *world) traced(what string, id, i int32) {
	p, k := &w.ports[id], &w.packets.packets[i]
	f := &w.transport.flows[k.flow]
	at := f.keyOf(k.kind)
	e := PacketEvent{
		TimeNs: w.sinceStart(w.now), Event: what, Port: int(id), Kind: packetKinds[k.kind],
		Flow: f.spec.Name, Seq: k.seq, Bytes: k.size, Class: w.ranks.class[k.class],
		ECN: k.ecn, QueueBytes: p.bytes,
		Src: int(at.src), Dst: int(at.dst), SrcPort: at.srcPort, DstPort: at.dstPort,
		Protocol: at.protocol, Payload: f.mss,
		ECE: k.flags&flagECE != 0, CWR: k.flags&flagCWR != 0,
	}
	switch k.kind {
	case packetACK:
		e.Seq = k.cum
	case packetCNP:
		e.SrcPort, e.DstPort = f.key.srcPort, f.key.dstPort
		e.CE, e.UE, e.RecRateMbps = k.note.ce() != 0, k.note.ue() != 0, k.note.recRate()
	case packetCNM:
		e.QntzFb, e.SampledBy = uint8(k.note), k.cum
		e.SampledClass, e.SampledECN = w.ranks.class[f.class], f.ecn
	}
	w.trace(&e)
}
