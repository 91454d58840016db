// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"
	"unsafe"
)

// ClassState is the state of PFC at one class of a port.
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

// ClassState reads the state of PFC at one class of a port.
func (q *Qdisc) ClassState(id uint32, class uint8) (ClassState, error) {
	k, err := q.class(id, class)
	if err != nil {
		return ClassState{}, err
	}
	return ClassState{
		Paused:        k.Tx.Paused != 0 && k.Tx.EventHead == k.Tx.EventTail,
		PausedSinceNs: k.Tx.PausedSinceNs,
		QueuedPackets: k.Queue.Tail - k.Queue.Head - k.Dropped,
		SentPackets:   k.Counters.SentPackets,
		PauseReceived: k.Counters.PauseReceived,
		Pausing:       k.Rx.Pausing != 0,
	}, nil
}

func (q *Qdisc) class(id uint32, class uint8) (*npecnTclass, error) {
	if int(class) >= Classes {
		return nil, fmt.Errorf("read class %d of port %d: there are %d", class, id, Classes)
	}
	p, err := q.port(id)
	if err != nil {
		return nil, err
	}
	return &p.Classes[class], nil
}

// Held returns how many bytes a class queue holds of each port that they came in by; 0 is the host
// itself. Of a queue that moves it is no more than an estimate.
func (q *Qdisc) Held(id uint32, class uint8) (map[uint32]uint64, error) {
	k, err := q.class(id, class)
	if err != nil {
		return nil, err
	}
	held := map[uint32]uint64{}
	for i := k.Queue.Head; i != k.Queue.Tail; i++ {
		p, err := q.packet(k.Queue.Base + i&k.Queue.Mask)
		if err != nil {
			return nil, fmt.Errorf("read the queue of class %d of port %d: %w", class, id, err)
		}
		held[uint32(p.Ingress)] += uint64(p.Len)
	}
	return held, nil
}

// packet reads what user space knows of the packet in a slot: the end of struct slot.
func (q *Qdisc) packet(slot uint32) (npecnPacket, error) {
	value := make([]byte, q.objs.Slots.ValueSize())
	if err := q.objs.Slots.Lookup(slot, value); err != nil {
		return npecnPacket{}, err
	}
	return *view[npecnPacket](value[len(value)-int(unsafe.Sizeof(npecnPacket{})):]), nil
}

// XONBytes returns the threshold for a RESUME when the node's other ports hold nothing, so that it
// has freeBytes free.
func (p PFC) XONBytes(freeBytes uint64) uint64 {
	xoff := p.XOFFBytes
	if p.Alpha > 0 {
		xoff = freeBytes * uint64(fixed(p.Alpha, alphaShift)) >> alphaShift
	}
	return xoff - min(xoff, p.XONOffsetBytes)
}
