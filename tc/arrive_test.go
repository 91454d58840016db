// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"net/netip"
	"os"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/ringbuf"
	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

const sinkPort = 9

// newArrive loads the program, with a ring buffer of this size for its samples.
func newArrive(t *testing.T, sampleNs uint64, eventsBytes int) (*Arrive, *ringbuf.Reader) {
	t.Helper()
	nstest.RequireRoot(t)
	events, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.RingBuf, MaxEntries: uint32(eventsBytes)})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { events.Close() })
	a, err := LoadArrive(ArriveOptions{SampleNs: sampleNs, SinkPort: sinkPort, Events: events})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { a.Close() })
	r, err := ringbuf.NewReader(events)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { r.Close() })
	return a, r
}

// receive hands the program a packet that a port sent.
func (a *Arrive) receive(t *testing.T, timeNs uint64, ce bool, frame []byte) result {
	t.Helper()
	return a.run(t, here, "arrive", frame, skBuff{CB: carry(timeNs, ce)})
}

// samples reads what is in the ring buffer.
func samples(t *testing.T, r *ringbuf.Reader) (events []arriveEventFlow) {
	t.Helper()
	r.SetDeadline(time.Unix(0, 0)) // don't wait
	for {
		record, err := r.Read()
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return events
		}
		qt.Assert(t, qt.IsNil(err))
		var e arriveEventFlow
		qt.Assert(t, qt.IsNil(binary.Read(bytes.NewReader(record.RawSample), binary.NativeEndian,
			&e)))
		events = append(events, e)
	}
}

func TestArriveCounts(t *testing.T) {
	a, _ := newArrive(t, 0, os.Getpagesize())
	f, other := someFlow(), someFlow()
	other.dst = f.src
	qt.Assert(t, qt.IsNil(a.Track(f.key(6), 1)))
	qt.Assert(t, qt.IsNil(a.Track(f.key(17), 2)))
	qt.Assert(t, qt.IsNil(a.Track(other.key(6), 3)))
	timestamps := func(_ *layers.IPv4, tcp *layers.TCP) {
		tcp.Options = []layers.TCPOption{{OptionType: layers.TCPOptionKindTimestamps,
			OptionLength: 10, OptionData: make([]byte, 8)}}
	}
	for _, p := range []struct {
		timeNs uint64
		ce     bool
		frame  []byte
	}{
		{1 << 40, false, f.tcp(t, ect0, 1000)},
		{1<<40 + 1, true, f.tcp(t, ect0, 500, timestamps)},             // marked by the last port
		{1<<40 + 2, false, f.tcp(t, ce, 1)},                            // marked before
		{1<<40 + 3, true, f.tcp(t, ce, 1)},                             // both: one mark
		{1<<40 + 4, false, append(f.tcp(t, 0, 0), make([]byte, 6)...)}, // a padded ACK
		{1<<40 + 5, false, f.udp(t, 0, 300)},
		{1<<40 + 6, false, f.udp(t, 0, 0)},
		{1<<40 + 7, false, f.tcpIPv6(t)},
		{1<<40 + 8, false, f.arp(t)},
		{1<<40 + 9, false, f.tcp(t, ect0, 100)[:offUDP+3]}, // not even both ports
		{1<<40 + 10, false, f.tcp(t, ect0, 100,
			func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags, ip.FragOffset = 0, 1 })},
	} {
		a.receive(t, p.timeNs, p.ce, p.frame)
	}
	got, err := a.Flow(f.key(6), 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, Arrival{
		Packets: 5, MarkedPackets: 3, PayloadBytes: 1502, FirstNs: 1 << 40, LastNs: 1<<40 + 4,
		BinPackets: 5, BinMarkedPackets: 3, BinBytes: 54 + 1000 + 66 + 500 + 55 + 55 + 60,
	}))
	got, err = a.Flow(f.key(17), 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, Arrival{
		Packets: 2, PayloadBytes: 300, FirstNs: 1<<40 + 5, LastNs: 1<<40 + 6, BinPackets: 2,
		BinBytes: 342 + 42,
	}))
	got, err = a.Flow(other.key(6), 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, Arrival{}))
	_, err = a.Flow(other.key(17), 0)
	qt.Assert(t, qt.ErrorIs(err, ebpf.ErrKeyNotExist))
}

// TestArriveRemembers: the program remembers which flows it found, and which are not tracked.
// Flows that share a slot of this memory, and a flow that is tracked later, count all the same.
func TestArriveRemembers(t *testing.T) {
	a, _ := newArrive(t, 0, os.Getpagesize())
	const flows = 1500 // more than there are slots
	keys, frames := make([]loader.FlowKey, flows), make([][]byte, flows)
	for i := range flows {
		f := someFlow()
		f.src = netip.AddrPortFrom(f.src.Addr(), uint16(1024+i))
		keys[i], frames[i] = f.key(6), f.tcp(t, ect0, 100)
	}
	a.receive(t, 1, false, frames[0]) // nobody tracks it
	a.receive(t, 2, false, frames[0])
	for i, k := range keys {
		qt.Assert(t, qt.IsNil(a.Track(k, uint32(i))))
	}
	for round := range uint64(2) {
		for _, frame := range frames {
			a.receive(t, 10+round, false, frame)
		}
	}
	qt.Assert(t, qt.IsNil(a.Track(keys[1], 1))) // counts anew
	a.receive(t, 20, false, frames[1])
	for i, k := range keys {
		got, err := a.Flow(k, 0)
		qt.Assert(t, qt.IsNil(err))
		want := uint64(2)
		if i == 1 {
			want = 1
		}
		qt.Assert(t, qt.Equals(got.Packets, want), qt.Commentf("flow %d", i))
	}
}

// A packet that no port of the lab sent arrives now.
func TestArriveWithoutIdealTime(t *testing.T) {
	a, _ := newArrive(t, 0, os.Getpagesize())
	f := someFlow()
	qt.Assert(t, qt.IsNil(a.Track(f.key(6), 1)))
	before := monotonicNs(t)
	cb := carry(5, true)
	cb[0] ^= 1 << 8 // not the magic
	r := a.run(t, here, "arrive", f.tcp(t, ect0, 100), skBuff{CB: cb})
	after := monotonicNs(t)
	passes(t, r, f.tcp(t, ect0, 100))
	got, err := a.Flow(f.key(6), 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(before <= got.FirstNs && got.FirstNs <= after))
	qt.Assert(t, qt.Equals(got.LastNs, got.FirstNs))
	qt.Assert(t, qt.Equals(got.MarkedPackets, 0))
}

// monotonicNs is bpf_ktime_get_ns.
func monotonicNs(t *testing.T) uint64 {
	t.Helper()
	var now unix.Timespec
	qt.Assert(t, qt.IsNil(unix.ClockGettime(unix.CLOCK_MONOTONIC, &now)))
	return uint64(now.Nano())
}

// The last port's mark goes into the packet, if it is ECN-capable, and its checksum follows.
func TestArriveMarks(t *testing.T) {
	a, _ := newArrive(t, 0, os.Getpagesize())
	checkMarks(t, func(frame []byte, verdict bool) result {
		return a.receive(t, 1, verdict,
			frame)
	}, tcxNext)
}

// checkMarks checks a program that applies the last port's mark.
func checkMarks(t *testing.T, run func(frame []byte, verdict bool) result, want uint32) {
	t.Helper()
	for _, dscp := range []uint8{0, dataDSCP, 63} {
		for ecn := range uint8(4) {
			for _, verdict := range []bool{false, true} {
				comment := qt.Commentf("DSCP %d, ECN %d, verdict CE %v", dscp, ecn, verdict)
				frame := someFlow().tcp(t, dscp<<2|ecn, 1000)
				expect := bytes.Clone(frame)
				if verdict && ecn != notECT {
					expect[offIP+1] |= ce
					fixChecksum(expect)
				}
				r := run(frame, verdict)
				qt.Check(t, qt.Equals(r.verdict, want), comment)
				qt.Check(t, qt.DeepEquals(r.frame, expect), comment)
			}
		}
	}
}

// Datagrams to the sink port end here, tracked or not; nothing else does.
func TestArriveSink(t *testing.T) {
	a, _ := newArrive(t, 0, os.Getpagesize())
	f := someFlow()
	f.dst = netip.AddrPortFrom(f.dst.Addr(), sinkPort)
	other := f
	other.src = netip.AddrPortFrom(f.src.Addr(), sinkPort)
	other.dst = netip.AddrPortFrom(f.dst.Addr(), 10)
	qt.Assert(t, qt.IsNil(a.Track(f.key(17), 1)))
	for range 3 {
		r := a.receive(t, 1, false, f.udp(t, 0, 1458))
		qt.Assert(t, qt.Equals(r.verdict, tcxDrop))
	}
	untracked := f
	untracked.src = netip.AddrPortFrom(f.src.Addr(), 77)
	r := a.receive(t, 1, false, untracked.udp(t, 0, 100))
	qt.Assert(t, qt.Equals(r.verdict, tcxDrop))
	for _, frame := range [][]byte{f.tcp(t, 0, 100), other.udp(t, 0, 100)} {
		passes(t, a.receive(t, 1, false, frame), frame)
	}
	got, err := a.Flow(f.key(17), 0)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got.Packets, 3))
	qt.Assert(t, qt.Equals(got.PayloadBytes, 3*1458))
}

// Bins that are over go to the ring buffer, empty ones not; the last is read with the flow.
func TestArriveSamples(t *testing.T) {
	const binNs = 1000
	a, r := newArrive(t, binNs, os.Getpagesize())
	f := someFlow()
	qt.Assert(t, qt.IsNil(a.Track(f.key(6), 42)))
	for _, p := range []struct {
		timeNs uint64
		ce     bool
	}{
		{5000, false}, {5999, true}, // bin 5
		{6000, true},               // bin 6
		{9000, true}, {9500, true}, // bin 9
		{8999, false},   // late, of a bin that is over: bin 9
		{10_500, false}, // bin 10
	} {
		a.receive(t, p.timeNs, p.ce, f.tcp(t, ect0, 946))
	}
	const kindFlow = 3
	qt.Assert(t, qt.DeepEquals(samples(t, r), []arriveEventFlow{
		{Kind: kindFlow, Flow: 42, Bin: 5, ReceivedBytes: 2000, ReceivedPackets: 2,
			MarkedPackets: 1},
		{Kind: kindFlow, Flow: 42, Bin: 6, ReceivedBytes: 1000, ReceivedPackets: 1,
			MarkedPackets: 1},
		{Kind: kindFlow, Flow: 42, Bin: 9, ReceivedBytes: 3000, ReceivedPackets: 3,
			MarkedPackets: 2},
	}))
	got, err := a.Flow(f.key(6), binNs)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(got, Arrival{
		Packets: 7, MarkedPackets: 4, PayloadBytes: 7 * 946, FirstNs: 5000, LastNs: 10_500,
		BinNs: 10_000, BinBytes: 1000, BinPackets: 1,
	}))
	lost, err := a.EventsLost()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(lost, 0))
}

// Samples that find the ring buffer full are counted.
func TestArriveCountsLostSamples(t *testing.T) {
	const binNs, bins = 1000, 200
	a, r := newArrive(t, binNs, os.Getpagesize())
	f := someFlow()
	qt.Assert(t, qt.IsNil(a.Track(f.key(6), 1)))
	frame := f.tcp(t, ect0, 100)
	for bin := range uint64(bins + 1) {
		a.receive(t, (bin+1)*binNs, false, frame)
	}
	lost, err := a.EventsLost()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(lost > 0))
	qt.Assert(t, qt.HasLen(samples(t, r), int(bins-lost)))
}

func TestArriveNeedsEventsForSamples(t *testing.T) {
	nstest.RequireRoot(t)
	_, err := LoadArrive(ArriveOptions{SampleNs: 1000})
	qt.Assert(t, qt.ErrorMatches(err,
		"arrive: Events is nil with SampleNs 1000: set Events to the port qdisc's ring buffer"))
	a, err := LoadArrive(ArriveOptions{})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(a.Close()))
}
