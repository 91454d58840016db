// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// TestSamplesAreExact compares every bin of every switch port with the model's.
func TestSamplesAreExact(t *testing.T) {
	const sampleNs = 2_000
	rng := rand.New(rand.NewPCG(3, 3))
	l := fabricOf(exact, rng, PFC{XOFFBytes: 5_000, XONOffsetBytes: 2_000}, 1<<40)
	l.options.SampleNs = sampleNs
	n := newNetwork(t, l)
	packets, m := unambiguous(l,
		func() []packet { return randomPackets(rng, 200, 30_000, []int{0, 3, 3, 3, 6}) })
	n.run(packets)

	_, samples := n.events()
	got := map[uint32]map[uint64]Sample{}
	for id := uint32(1); id < n.portsMax(); id++ {
		s := n.stats(id)
		got[id] = map[uint64]Sample{s.Bin: s.InBin}
	}
	for _, s := range samples {
		_, twice := got[s.Port][s.Bin]
		qt.Assert(t, qt.IsFalse(twice), qt.Commentf("bin %d of port %d", s.Bin, s.Port))
		got[s.Port][s.Bin] = s.Sample
	}
	for id := uint32(1); id < n.portsMax(); id++ {
		n.checkSum(id, got[id])
		if node, _ := n.ends(id); n.isHost(node) {
			continue // what it has for later is counted at starts, one class after the other
		}
		qt.Check(t, qt.DeepEquals(got[id], m.ports[id].samples(n.t0Ns, sampleNs)),
			qt.Commentf("port %s", n.config.Ports[id].Name))
	}
}

// checkSum compares the sum of a port's bins with its counters.
func (n *network) checkSum(id uint32, bins map[uint64]Sample) {
	n.t.Helper()
	var sum Sample
	for s := range maps.Values(bins) {
		sum.SentBytes += s.SentBytes
		sum.SentPackets += s.SentPackets
		sum.MarkedPackets += s.MarkedPackets
		sum.QueueMaxBytes = max(sum.QueueMaxBytes, s.QueueMaxBytes)
	}
	s := n.stats(id)
	qt.Check(n.t, qt.Equals(sum, Sample{
		SentBytes: s.SentBytes, SentPackets: uint32(s.SentPackets),
		MarkedPackets: uint32(s.MarkedPackets), QueueMaxBytes: s.QueueMaxBytes,
	}), qt.Commentf("port %s", n.config.Ports[id].Name))
}

// samples are the bins that the model's steps make.
func (mp *modelPort) samples(t0Ns, sampleNs uint64) map[uint64]Sample {
	bins := map[uint64]Sample{}
	var queueBytes uint64
	for _, s := range mp.steps {
		bin := (t0Ns + s.ns) / sampleNs
		b, ok := bins[bin]
		if !ok {
			b.QueueMaxBytes = queueBytes
		}
		queueBytes = s.queueBytes
		b.QueueBytes = queueBytes
		b.QueueMaxBytes = max(b.QueueMaxBytes, queueBytes)
		b.SentBytes += s.sentBytes
		if s.sentBytes > 0 {
			b.SentPackets++
		}
		if s.marked {
			b.MarkedPackets++
		}
		bins[bin] = b
	}
	return bins
}

// TestHostSamples: what a host has for later does not count before its time.
func TestHostSamples(t *testing.T) {
	const sampleNs = 10_000
	l := star(2, unchanged)
	l.options.SampleNs = sampleNs
	n := newNetwork(t, l)
	// handed over last, and goes first
	n.run(append(backToBack(0, 1, dataClass, 5, 100_000), packet{0, 1, dataClass, frame1K, 20_000}))
	_, samples := n.events()
	s := n.stats(1)
	sent := map[uint64]uint32{s.Bin: s.InBin.SentPackets}
	for _, s := range samples {
		if s.Port == 1 && s.SentPackets > 0 {
			sent[s.Bin] += s.SentPackets
		}
	}
	first, last := (n.t0Ns+20_000)/sampleNs, (n.t0Ns+100_000)/sampleNs
	qt.Check(t, qt.Equals(sent[first], 1))
	qt.Check(t, qt.Equals(sent[last]+sent[last+1], 5))
}

// TestLatenessIsCounted: every packet handed over is in the histogram, and with time to spare none
// is late.
func TestLatenessIsCounted(t *testing.T) {
	n := newNetwork(t, star(2, unchanged))
	n.run(backToBack(0, 1, dataClass, 20, 0))
	for _, name := range []string{"h0->s", "s->h1"} {
		late := n.stats(n.id(name)).Lateness
		var total uint64
		for _, c := range late.counts {
			total += c
		}
		qt.Check(t, qt.Equals(total, 20))
		qt.Check(t, qt.IsTrue(late.MaxNs <= 1), qt.Commentf("%d ns", late.MaxNs))
	}
}
