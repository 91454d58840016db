// SPDX-License-Identifier: Apache-2.0

package npecn

import "fmt"

// Stats are a port's counters. Times are the papers' ns.
type Stats struct {
	EnqueuedPackets, EnqueuedBytes uint64
	SentPackets, SentBytes         uint64 // started on the wire
	DeliveredPackets               uint64 // handed to the far end
	QueuedPackets, QueuedBytes     uint64 // in class queues now; bytes: if they can be dropped, of what has ideally arrived
	WirePackets                    uint64 // on the wire now
	MarkedPackets                  uint64

	DroppedWRED   uint64 // not ECN-capable, and the queue was as long as WREDBytes
	DroppedTail   uint64 // the queue was as long as LimitBytes
	DroppedBuffer uint64 // the node's shared buffer was full
	DroppedRing   uint64 // a ring was full
	DroppedClass  uint64 // no queue for the class
	DroppedReset  uint64 // freed with the qdisc

	PauseSent, ResumeSent uint64 // to the peer, as ingress
	// Obeyed; and the time of pauses that are over. What came while a class was empty counts when its next packet comes.
	PauseReceived, ResumeReceived, PausedNs uint64

	// Credits of CBFC: blocks that the peer lends, and those that are not on the way, in its buffer or on their way back.
	CreditBlocks, FreeCreditBlocks uint64
	HeldMaxBlocks                  uint64 // most that the peer's packets took of the buffer that this port lends it, of one class

	QueueMaxBytes uint64
	Causality     uint64 // packets that came after their ideal time had been decided
	PFCOverflow   uint64 // PFC events lost
	Lateness      Lateness

	Bin      uint64 // the sample bin that is not over, in units of SampleNs, and what is in it
	InBin    Sample
	Detected Detections // in it
}

// Sample is one bin of a port's series.
type Sample struct {
	SentBytes     uint64
	SentPackets   uint32
	MarkedPackets uint32
	QueueBytes    uint64 // at its end
	QueueMaxBytes uint64
}

// Dropped is the sum of all causes.
func (s *Stats) Dropped() uint64 {
	return s.DroppedWRED + s.DroppedTail + s.DroppedBuffer + s.DroppedRing + s.DroppedClass + s.DroppedReset
}

// Stats reads a port's counters.
func (q *Qdisc) Stats(id uint32) (Stats, error) {
	var p npecnPort
	if err := q.objs.Ports.Lookup(id, &p); err != nil {
		return Stats{}, fmt.Errorf("read port %d: %w", id, err)
	}
	s := Stats{
		EnqueuedPackets: p.EnqueuedPackets, EnqueuedBytes: p.EnqueuedBytes,
		DeliveredPackets: p.DeliveredPackets,
		QueuedBytes:      p.QueueBytes,
		WirePackets:      uint64(p.Wire.Tail - p.Wire.Head),
		DroppedWRED:      p.DroppedWred, DroppedTail: p.DroppedTail,
		DroppedBuffer: p.DroppedBuffer, DroppedRing: p.DroppedRing,
		DroppedClass: p.DroppedClass, DroppedReset: p.DroppedReset,
		QueueMaxBytes: p.QueueMaxBytes,
		Causality:     p.Causality,
		PFCOverflow:   p.PfcOverflow,
		Lateness:      Lateness{counts: p.Late, MaxNs: p.LateMaxNs},
		Bin:           p.Bin,
		InBin: Sample{SentBytes: p.BinSentBytes, SentPackets: p.BinSentPackets, MarkedPackets: p.BinMarkedPackets,
			QueueBytes: p.QueueBytes, QueueMaxBytes: p.BinQueueMaxBytes},
		Detected: Detections{NPECN: p.BinDetected.Npecn, ECN: p.BinDetected.Ecn, FECN: p.BinDetected.Fecn,
			TCDCE: p.BinDetected.TcdCe, TCDUE: p.BinDetected.TcdUe, State: TCDState(p.TcdState)},
	}
	for i := range p.Classes {
		c := &p.Classes[i]
		s.SentPackets += c.SentPackets
		s.SentBytes += c.SentBytes
		s.MarkedPackets += c.MarkedPackets
		s.QueuedPackets += uint64(c.Queue.Tail - c.Queue.Head - c.Dropped)
		s.PauseSent += c.PauseSent
		s.ResumeSent += c.ResumeSent
		s.PauseReceived += c.PauseReceived
		s.ResumeReceived += c.ResumeReceived
		s.PausedNs += c.PausedNs
		s.HeldMaxBlocks = max(s.HeldMaxBlocks, c.HeldMaxBlocks)
		if p.Credits > 0 && c.Lossless != 0 {
			free, err := q.freeCredits(id, i, c)
			if err != nil {
				return Stats{}, err
			}
			s.CreditBlocks += p.Credits
			s.FreeCreditBlocks += free
		}
	}
	return s, nil
}

// freeCredits are those of a class, with what is on its way back.
func (q *Qdisc) freeCredits(id uint32, class int, c *npecnTclass) (uint64, error) {
	free := c.Tx.Fccl - c.Tx.Fctbs
	for i := c.EventHead; i != c.EventTail; i++ {
		var e npecnPfcEvent
		if err := q.objs.PfcEvents.Lookup((id*Classes+uint32(class))*pfcEventsPerPC+i%pfcEventsPerPC, &e); err != nil {
			return 0, fmt.Errorf("read credits of port %d: %w", id, err)
		}
		free += e.Pause
	}
	return free, nil
}

// PauseRepeats are those of a port that no event has told of yet, up to a time: of each class its bin that is not over.
func (q *Qdisc) PauseRepeats(id uint32, atNs uint64) ([]PauseRepeats, error) {
	var p npecnPort
	if err := q.objs.Ports.Lookup(id, &p); err != nil {
		return nil, fmt.Errorf("read port %d: %w", id, err)
	}
	var rows []PauseRepeats
	for i := range p.Classes {
		c := &p.Classes[i]
		frames := c.RepeatFrames
		if c.Repeat.Over != 0 && atNs > c.Repeat.LastNs {
			frames += (atNs - c.Repeat.LastNs) / RepeatNs
		}
		if frames > 0 {
			rows = append(rows, PauseRepeats{Port: id, Class: uint8(i), Bin: c.RepeatBin, Frames: frames})
		}
	}
	return rows, nil
}

// NodeStats are a node's counters.
type NodeStats struct {
	UsedBytes, UsedMaxBytes uint64 // of the shared buffer
}

// NodeStats reads a node's counters.
func (q *Qdisc) NodeStats(node uint32) (NodeStats, error) {
	var n npecnNode
	if err := q.objs.Nodes.Lookup(node, &n); err != nil {
		return NodeStats{}, fmt.Errorf("read node %d: %w", node, err)
	}
	return NodeStats{UsedBytes: n.UsedBytes, UsedMaxBytes: n.UsedMaxBytes}, nil
}

// Lateness is a histogram of how long after its ideal time each packet was delivered.
type Lateness struct {
	counts [lateBuckets]uint64
	MaxNs  uint64
}

// Add adds another port's histogram.
func (l *Lateness) Add(o Lateness) {
	for i, n := range o.counts {
		l.counts[i] += n
	}
	l.MaxNs = max(l.MaxNs, o.MaxNs)
}

// QuantileNs is an upper bound, to 64 ns, of the lateness of a share q of the packets, 0 < q <= 1; MaxNs if that
// is beyond the histogram; 0 if there were none.
func (l *Lateness) QuantileNs(q float64) uint64 {
	var total uint64
	for _, n := range l.counts {
		total += n
	}
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
