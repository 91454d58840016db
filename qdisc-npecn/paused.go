// SPDX-License-Identifier: Apache-2.0

package npecn

import "fmt"

// ClassState is what PFC is doing to a class of a port.
type ClassState struct {
	// As the sender on its link.
	Paused        bool   // it may not send, and nothing that says otherwise is under way
	PausedSinceNs uint64 // if Paused
	QueuedPackets uint32
	SentPackets   uint64
	PauseReceived uint64
	// As the receiver.
	Pausing bool // it has told its peer to stop
}

// ClassState reads it.
func (q *Qdisc) ClassState(id uint32, class uint8) (ClassState, error) {
	k, err := q.class(id, class)
	if err != nil {
		return ClassState{}, err
	}
	return ClassState{
		Paused: k.Paused != 0 && k.EventHead == k.EventTail, PausedSinceNs: k.PausedSinceNs,
		QueuedPackets: k.Queue.Tail - k.Queue.Head - k.Dropped, SentPackets: k.SentPackets, PauseReceived: k.PauseReceived,
		Pausing: k.Pausing != 0,
	}, nil
}

func (q *Qdisc) class(id uint32, class uint8) (*npecnTclass, error) {
	if class >= Classes {
		return nil, fmt.Errorf("read class %d of port %d: there are %d", class, id, Classes)
	}
	var p npecnPort
	if err := q.objs.Ports.Lookup(id, &p); err != nil {
		return nil, fmt.Errorf("read class %d of port %d: %w", class, id, err)
	}
	return &p.Classes[class], nil
}

// slot is struct slot of bpf/npecn.bpf.c; user space does not see its packet.
type slot struct {
	_          uint64
	TNs        uint64
	Len        uint32
	Ingress    uint16
	Verdict    uint8
	NotECT     uint8
	CarryQueue uint32
	_          uint32
}

// Held is how many bytes a class queue holds of each port that they came in by; 0 is the host itself. Of a queue that
// moves it is no more than an estimate.
func (q *Qdisc) Held(id uint32, class uint8) (map[uint32]uint64, error) {
	k, err := q.class(id, class)
	if err != nil {
		return nil, err
	}
	held := map[uint32]uint64{}
	for i := k.Queue.Head; i != k.Queue.Tail; i++ {
		var s slot
		if err := q.objs.Slots.Lookup(k.Queue.Base+i&k.Queue.Mask, &s); err != nil {
			return nil, fmt.Errorf("read the queue of class %d of port %d: %w", class, id, err)
		}
		held[uint32(s.Ingress)] += uint64(s.Len)
	}
	return held, nil
}

// XONBytes is the threshold for a RESUME when the node's other ports hold nothing, so that it has so many bytes free.
func (p PFC) XONBytes(freeBytes uint64) uint64 {
	xoff := p.XOFFBytes
	if p.Alpha > 0 {
		xoff = freeBytes * uint64(p.Alpha*(1<<alphaShift)+0.5) >> alphaShift
	}
	return xoff - min(xoff, p.XONOffsetBytes)
}
