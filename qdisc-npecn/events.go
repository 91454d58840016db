// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net/netip"
	"unsafe"

	"github.com/cilium/ebpf/ringbuf"
)

// PFCEvent is a PAUSE or RESUME: Port is the one that stops or goes on, its peer sent the frame.
type PFCEvent struct {
	Port     uint32
	Class    uint8
	Pause    bool
	SentNs   uint64
	EffectNs uint64
}

// PauseRepeats are the PAUSE frames that Port would have sent in a bin, in units of SampleNs, if it
// repeated them as ns3-rdma does: with each packet that finds its class over XOFF, and in every
// [RepeatNs] after. Empty bins are left out.
type PauseRepeats struct {
	Port   uint32
	Class  uint8
	Bin    uint64
	Frames uint64
}

// RepeatNs is how long after a PAUSE a switch that repeats them sends the next one at the latest.
const RepeatNs = 2500

// QueueSample is one bin of a port's series. Bins in which nothing happened are left out: nothing
// was sent, and the queue was as at the end of the bin before.
type QueueSample struct {
	Port uint32
	Bin  uint64
	Sample
}

// FlowSample is one bin of a flow's arrivals. Empty bins are left out.
type FlowSample struct {
	Flow          uint32
	Bin           uint64
	Bytes         uint64
	Packets       uint32
	MarkedPackets uint32
}

// FlowStart is when a TCP flow sent its first data since hosts are watched.
type FlowStart struct {
	Src  netip.AddrPort // of the socket that sends
	AtNs uint64
}

// Off is a time in which a port's queue of a class was paused, or had a packet and no credits for
// it.
type Off struct {
	Port         uint32
	Class        uint8
	FromNs, ToNs uint64
}

// Detected is what detectors said, or did, in a bin of a port's series. Bins in which nothing
// happened are left out.
type Detected struct {
	Port uint32
	Bin  uint64
	Detections
}

// Detections count packets that detectors would mark, or marked.
type Detections struct {
	NPECN, ECN, FECN, TCDCE, TCDUE uint32
	State                          TCDState // of TCD, after the last packet
}

// TCDState is the state of a port's queue (bpf/algo/tcd.h).
type TCDState uint32

// The states. Draining is non-congestion to the outside.
const (
	NonCongestion = TCDState(npecnTcdStateTCD_NON_CONGESTION)
	Draining      = TCDState(npecnTcdStateTCD_DRAINING)
	Undetermined  = TCDState(npecnTcdStateTCD_UNDETERMINED)
	Congestion    = TCDState(npecnTcdStateTCD_CONGESTION)
)

// Sink takes events as they are read.
type Sink struct {
	PFC      func(PFCEvent)
	Repeats  func(PauseRepeats)
	Queue    func(QueueSample)
	Flow     func(FlowSample)
	Start    func(FlowStart)
	Off      func(Off)
	Detected func(Detected)
	Storm    func(Storm)
}

// EventReader reads the ring buffer.
type EventReader struct{ rb *ringbuf.Reader }

// NewEventReader opens the qdisc's ring buffer.
func (q *Qdisc) NewEventReader() (*EventReader, error) {
	rb, err := ringbuf.NewReader(q.objs.Events)
	if err != nil {
		return nil, fmt.Errorf("open event ring buffer: %w", err)
	}
	return &EventReader{rb}, nil
}

// Close frees the reader.
func (r *EventReader) Close() error { return r.rb.Close() }

// Drain hands all events there are now to the sink. It does not wait.
func (r *EventReader) Drain(sink Sink) error {
	if err := r.rb.Flush(); err != nil {
		return fmt.Errorf("flush event ring buffer: %w", err)
	}
	var rec ringbuf.Record
	for {
		err := r.rb.ReadInto(&rec)
		if errors.Is(err, ringbuf.ErrFlushed) {
			return nil
		}
		if err != nil {
			return fmt.Errorf("read event: %w", err)
		}
		if err := sink.decode(rec.RawSample); err != nil {
			return err
		}
	}
}

// decode hands one event of bpf/include/events.h to the sink.
func (s Sink) decode(b []byte) error {
	if len(b) < 4 {
		return fmt.Errorf("event of %d bytes", len(b))
	}
	kind, known := binary.NativeEndian.Uint32(b), false
	switch npecnEventKind(kind) {
	case npecnEventKindEVENT_PFC:
		known = handOver(b, func(e *npecnEventPfc) {
			s.PFC(PFCEvent{
				Port: uint32(e.Port), Class: e.Class, Pause: e.Pause != 0,
				SentNs: e.SentNs, EffectNs: e.EffectNs,
			})
		})
	case npecnEventKindEVENT_REPEAT:
		known = handOver(b, func(e *npecnEventRepeat) {
			s.Repeats(PauseRepeats{
				Port: uint32(e.Port), Class: e.Class, Bin: e.Bin, Frames: e.Frames,
			})
		})
	case npecnEventKindEVENT_QUEUE:
		known = handOver(b, func(e *npecnEventQueue) {
			s.Queue(QueueSample{Port: e.Port, Bin: e.Bin, Sample: Sample{
				SentBytes: e.SentBytes, SentPackets: e.SentPackets, MarkedPackets: e.MarkedPackets,
				QueueBytes: e.QueueBytes, QueueMaxBytes: e.QueueMaxBytes,
			}})
		})
	case npecnEventKindEVENT_FLOW:
		known = handOver(b, func(e *npecnEventFlow) {
			s.Flow(FlowSample{
				Flow: e.Flow, Bin: e.Bin, Bytes: e.ReceivedBytes,
				Packets: e.ReceivedPackets, MarkedPackets: e.MarkedPackets,
			})
		})
	case npecnEventKindEVENT_START:
		known = handOver(b, func(e *npecnEventStart) {
			addr := netip.AddrFrom4([4]byte(binary.NativeEndian.AppendUint32(nil, e.Saddr)))
			s.Start(FlowStart{Src: netip.AddrPortFrom(addr, e.Sport), AtNs: e.AtNs})
		})
	case npecnEventKindEVENT_OFF:
		known = handOver(b, func(e *npecnEventOff) {
			s.Off(Off{Port: uint32(e.Port), Class: e.Class, FromNs: e.FromNs, ToNs: e.ToNs})
		})
	case npecnEventKindEVENT_STORM:
		known = handOver(b, func(e *npecnEventStorm) {
			s.Storm(Storm{
				Port: uint32(e.Port), Class: e.Class, Over: e.Over != 0, AtNs: e.AtNs,
				StormDrops: StormDrops{e.DroppedPackets, e.RefusedPackets},
			})
		})
	case npecnEventKindEVENT_DETECTED:
		known = handOver(b, func(e *npecnEventDetected) {
			s.Detected(Detected{Port: e.Port, Bin: e.Bin, Detections: Detections{
				NPECN: e.NpecnPackets, ECN: e.EcnPackets, FECN: e.FecnPackets,
				TCDCE: e.TcdCePackets, TCDUE: e.TcdUePackets, State: TCDState(e.TcdState),
			}})
		})
	}
	if !known {
		return fmt.Errorf("event of unknown kind %d and %d bytes", kind, len(b))
	}
	return nil
}

// handOver calls take with the event, if it has its size.
func handOver[T any](b []byte, take func(*T)) bool {
	if len(b) != int(unsafe.Sizeof(*new(T))) {
		return false
	}
	take(view[T](b))
	return true
}

// EventsLost returns how many events found the ring buffer full.
func (q *Qdisc) EventsLost() (uint64, error) {
	var n uint64
	if err := q.objs.EventsLost.Get(&n); err != nil {
		return 0, fmt.Errorf("read lost events: %w", err)
	}
	return n, nil
}
