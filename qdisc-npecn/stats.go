// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/cilium/ebpf"
)

// DropCause is why a port dropped a packet (enum drop_cause in bpf/port.h).
type DropCause uint32

// The causes.
const (
	DropWRED   = DropCause(npecnDropCauseDROP_WRED)
	DropTail   = DropCause(npecnDropCauseDROP_TAIL)
	DropBuffer = DropCause(npecnDropCauseDROP_BUFFER)
	DropRing   = DropCause(npecnDropCauseDROP_RING)
	DropClass  = DropCause(npecnDropCauseDROP_CLASS)
	DropReset  = DropCause(npecnDropCauseDROP_RESET)
	DropLink   = DropCause(npecnDropCauseDROP_LINK) // of the packets that it sent, lost by the link
	// DropRefused came in by a port whose watchdog drops; they do not count as enqueued.
	DropRefused = DropCause(npecnDropCauseDROP_REFUSED)
)

// Stats are a port's counters. Times are the papers' ns.
type Stats struct {
	EnqueuedPackets, EnqueuedBytes uint64
	SentPackets, SentBytes         uint64 // started on the wire
	DeliveredPackets               uint64 // handed to the far end
	MarkedPackets                  uint64

	// What the port holds now. QueuedBytes counts what has ideally arrived.
	QueuedPackets, QueuedBytes uint64 // in class queues
	WirePackets                uint64

	Drops [npecnDropCauseDROP_CAUSES]uint64 // packets, by DropCause
	Lossy uint64                            // of them, of classes that may lose packets

	PauseSent, ResumeSent uint64 // to the peer, for what came from it
	// PAUSE and RESUME that the port obeyed, and the length of pauses that are over. Frames that
	// come while a class is empty count when its next packet comes.
	PauseReceived, ResumeReceived, PausedNs uint64

	// Credits of CBFC: blocks that the peer lends, and those of them that no packet takes, on the
	// link or in the peer's buffer.
	CreditBlocks, FreeCreditBlocks uint64
	// The most that the peer's packets of one class took of the buffer that this port lends it.
	HeldMaxBlocks uint64

	QueueMaxBytes uint64
	Causality     uint64   // packets that came after their ideal time had been decided
	PFCOverflow   uint64   // link events lost: PAUSE and RESUME
	Lateness      Lateness // of deliveries
	// Of what the host's TCP sends, after its cause: an ACK after the packet that it acknowledges,
	// data after the latest of what it waited for (bpf/host.h). Only if hosts are watched.
	LateACKs, LateData Lateness

	// The sample bin that is not over, in units of SampleNs, and what happened in it so far.
	Bin      uint64
	InBin    Sample
	Detected Detections
}

// Sample is one bin of a port's series.
type Sample struct {
	SentBytes     uint64
	SentPackets   uint32
	MarkedPackets uint32
	QueueBytes    uint64 // at its end
	QueueMaxBytes uint64
}

// Dropped returns the sum of all causes.
func (s *Stats) Dropped() uint64 {
	var sum uint64
	for _, n := range s.Drops {
		sum += n
	}
	return sum
}

// Stats reads a port's counters.
func (q *Qdisc) Stats(id uint32) (Stats, error) {
	p, err := q.port(id)
	if err != nil {
		return Stats{}, err
	}
	n, bin := &p.Counters, &p.State.Bin
	s := Stats{
		EnqueuedPackets: n.EnqueuedPackets, EnqueuedBytes: n.EnqueuedBytes,
		DeliveredPackets: n.DeliveredPackets,
		QueuedBytes:      p.State.QueueBytes,
		WirePackets:      uint64(p.State.Wire.Tail - p.State.Wire.Head),
		Drops:            n.Dropped,
		Lossy:            n.Lossy,
		QueueMaxBytes:    n.QueueMaxBytes,
		Causality:        n.Causality,
		PFCOverflow:      n.EventsLost,
		Lateness:         lateness(&n.Late),
		LateACKs:         lateness(&n.LateAcks),
		LateData:         lateness(&n.LateData),
		Bin:              bin.Index,
		InBin: Sample{
			SentBytes: bin.SentBytes, SentPackets: bin.SentPackets,
			MarkedPackets: bin.MarkedPackets,
			QueueBytes:    p.State.QueueBytes, QueueMaxBytes: bin.QueueMaxBytes,
		},
		Detected: Detections{
			NPECN: bin.Detected.Npecn, ECN: bin.Detected.Ecn, FECN: bin.Detected.Fecn,
			TCDCE: bin.Detected.TcdCe, TCDUE: bin.Detected.TcdUe,
			State: TCDState(p.State.TcdState),
		},
	}
	for c := range p.Classes {
		s.addClass(&p.Classes[c])
	}
	if p.Config.Credits > 0 {
		err = q.addCredits(&s, id, p)
	}
	return s, err
}

func (s *Stats) addClass(k *npecnTclass) {
	n := &k.Counters
	s.SentPackets += n.SentPackets
	s.SentBytes += n.SentBytes
	s.MarkedPackets += n.MarkedPackets
	s.QueuedPackets += k.queued()
	s.PauseSent += n.PauseSent
	s.ResumeSent += n.ResumeSent
	s.PauseReceived += n.PauseReceived
	s.ResumeReceived += n.ResumeReceived
	s.PausedNs += n.PausedNs
	s.HeldMaxBlocks = max(s.HeldMaxBlocks, k.Rx.HeldMaxBlocks)
}

// HeldPackets returns how many packets all ports hold, queued and on the wire. It reads many ports
// with each system call.
func (q *Qdisc) HeldPackets() (uint64, error) {
	const batch = 64
	ids := make([]uint32, batch)
	value := reflect.ArrayOf(int(q.objs.Ports.ValueSize()), reflect.TypeFor[byte]())
	values := reflect.MakeSlice(reflect.SliceOf(value), batch, batch)
	var held uint64
	for cursor := (ebpf.MapBatchCursor{}); ; {
		n, err := q.objs.Ports.BatchLookup(&cursor, ids, values.Interface(), nil)
		for i := range n {
			held += view[npecnPort](values.Index(i).Bytes()).held()
		}
		if errors.Is(err, ebpf.ErrKeyNotExist) {
			return held, nil // that was the last port
		}
		if err != nil {
			return 0, fmt.Errorf("read all ports: %w", err)
		}
	}
}

func (p *npecnPort) held() uint64 {
	held := uint64(p.State.Wire.Tail - p.State.Wire.Head)
	for c := range p.Classes {
		held += p.Classes[c].queued()
	}
	return held
}

func (k *npecnTclass) queued() uint64 {
	return uint64(k.Queue.Tail - k.Queue.Head - k.Dropped)
}

// addCredits adds those of the lossless classes, with what is on its way back.
func (q *Qdisc) addCredits(s *Stats, id uint32, p *npecnPort) error {
	for c := range p.Classes {
		k := &p.Classes[c]
		if k.Config.Lossless == 0 {
			continue
		}
		s.CreditBlocks += p.Config.Credits
		s.FreeCreditBlocks += k.Tx.Credits.Fccl - k.Tx.Credits.Fctbs
		var ring npecnLinkRing
		if err := q.objs.LinkRings.Lookup(id*uint32(Classes)+uint32(c), &ring); err != nil {
			return fmt.Errorf("read credits of port %d: %w", id, err)
		}
		for i := k.Tx.EventHead; i != k.Tx.EventTail; i++ {
			s.FreeCreditBlocks += ring.Events[i%linkEvents].Value
		}
	}
	return nil
}

// PauseRepeats returns those of a port that no event has told of yet, up to a time: of each class
// the bin that is not over.
func (q *Qdisc) PauseRepeats(id uint32, atNs uint64) ([]PauseRepeats, error) {
	p, err := q.port(id)
	if err != nil {
		return nil, err
	}
	var rows []PauseRepeats
	for c := range p.Classes {
		rx := &p.Classes[c].Rx
		frames := rx.RepeatFrames
		if rx.Repeat.Over != 0 && atNs > rx.Repeat.LastNs {
			frames += (atNs - rx.Repeat.LastNs) / RepeatNs
		}
		if frames > 0 {
			rows = append(rows, PauseRepeats{
				Port: id, Class: uint8(c), Bin: rx.RepeatBin, Frames: frames,
			})
		}
	}
	return rows, nil
}

// Lateness is a histogram of how long after its ideal time each packet was delivered, or sent.
type Lateness struct {
	counts [lateBuckets]uint64
	MaxNs  uint64
}

func lateness(l *npecnLateness) Lateness { return Lateness{counts: l.Counts, MaxNs: l.MaxNs} }

// Count returns how many packets there were.
func (l *Lateness) Count() uint64 {
	var total uint64
	for _, n := range l.counts {
		total += n
	}
	return total
}

// Add adds another port's histogram to this one.
func (l *Lateness) Add(o Lateness) {
	for i, n := range o.counts {
		l.counts[i] += n
	}
	l.MaxNs = max(l.MaxNs, o.MaxNs)
}

// QuantileNs returns an upper bound, to 64 ns, of the lateness of a share q of the packets,
// 0 < q <= 1; MaxNs if that is beyond the histogram; 0 if there were none.
func (l *Lateness) QuantileNs(q float64) uint64 {
	total := l.Count()
	if total == 0 {
		return 0
	}
	want, seen := q*float64(total), uint64(0)
	for i, n := range l.counts[:lateBuckets-1] {
		seen += n
		if float64(seen) >= want {
			return min(uint64(i+1)*lateBucketNs, l.MaxNs)
		}
	}
	return l.MaxNs
}
