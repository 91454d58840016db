// SPDX-License-Identifier: Apache-2.0

package npecn

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/cilium/ebpf/ringbuf"
)

// The kinds of bpf/include/events.h.
const (
	kindPFC      = 1
	kindQueue    = 2
	kindFlow     = 3
	kindOff      = 4
	kindDetected = 5
	kindRepeat   = 6
)

// PFCEvent is a PAUSE or RESUME: Port is the one that stops or goes on, its peer sent the frame.
type PFCEvent struct {
	Port     uint32
	Class    uint8
	Pause    bool
	SentNs   uint64
	EffectNs uint64
}

// PauseRepeats are the PAUSE frames that Port would have sent in a bin, in units of SampleNs, if it repeated them as ns3-rdma
// does: with each packet that finds its class over XOFF, and in every [RepeatNs] after. Empty bins are left out.
type PauseRepeats struct {
	Port   uint32
	Class  uint8
	Bin    uint64
	Frames uint64
}

// RepeatNs is how long after a PAUSE a switch that repeats them sends the next one at the latest.
const RepeatNs = 2500

// QueueSample is one bin of a port's series. Bins in which nothing happened are left out: nothing was sent and
// the queue was as at the end of the bin before.
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

// Off is a time in which a port's queue of a class was paused, or had a packet and no credits for it.
type Off struct {
	Port         uint32
	Class        uint8
	FromNs, ToNs uint64
}

// Detected is what detectors said, or did, in a bin of a port's series. Bins in which nothing happened are left out.
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

// TCDState is the state of a port's queue.
type TCDState uint32

// The states of bpf/algo/tcd.h. Draining is non-congestion to the outside.
const (
	NonCongestion TCDState = iota
	Draining
	Undetermined
	Congestion
)

// Sink takes events as they are read.
type Sink struct {
	PFC      func(PFCEvent)
	Repeats  func(PauseRepeats)
	Queue    func(QueueSample)
	Flow     func(FlowSample)
	Off      func(Off)
	Detected func(Detected)
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

// decode reads one event of bpf/include/events.h, little endian.
func (s Sink) decode(b []byte) error {
	u32 := func(at int) uint32 { return binary.LittleEndian.Uint32(b[at:]) }
	u64 := func(at int) uint64 { return binary.LittleEndian.Uint64(b[at:]) }
	if len(b) < 4 {
		return fmt.Errorf("event of %d bytes", len(b))
	}
	switch kind := u32(0); {
	case kind == kindPFC && len(b) == 24:
		s.PFC(PFCEvent{Port: u32(4) & 0xffff, Class: b[6], Pause: b[7] != 0, SentNs: u64(8), EffectNs: u64(16)})
	case kind == kindRepeat && len(b) == 24:
		s.Repeats(PauseRepeats{Port: u32(4) & 0xffff, Class: b[6], Bin: u64(8), Frames: u64(16)})
	case kind == kindQueue && len(b) == 48:
		s.Queue(QueueSample{Port: u32(4), Bin: u64(8), Sample: Sample{SentBytes: u64(16), SentPackets: u32(24),
			MarkedPackets: u32(28), QueueBytes: u64(32), QueueMaxBytes: u64(40)}})
	case kind == kindFlow && len(b) == 32:
		s.Flow(FlowSample{Flow: u32(4), Bin: u64(8), Bytes: u64(16), Packets: u32(24), MarkedPackets: u32(28)})
	case kind == kindOff && len(b) == 24:
		s.Off(Off{Port: u32(4) & 0xffff, Class: b[6], FromNs: u64(8), ToNs: u64(16)})
	case kind == kindDetected && len(b) == 40:
		s.Detected(Detected{Port: u32(4), Bin: u64(8), Detections: Detections{NPECN: u32(16), ECN: u32(20), FECN: u32(24),
			TCDCE: u32(28), TCDUE: u32(32), State: TCDState(u32(36))}})
	default:
		return fmt.Errorf("event of unknown kind %d and %d bytes", kind, len(b))
	}
	return nil
}

// EventsLost is how many events found the ring buffer full.
func (q *Qdisc) EventsLost() (uint64, error) {
	var n uint64
	if err := q.objs.EventsLost.Get(&n); err != nil {
		return 0, fmt.Errorf("read lost events: %w", err)
	}
	return n, nil
}
