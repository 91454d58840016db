// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"fmt"
	"io"
	"math"
	"net"
	"net/netip"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// ldcp has the parameters of the published driver, on a path of 100 packets.
func ldcp(keysAndValues ...string) loader.Registration {
	return registration("ldcp", 100*frameBytes*8*1000, append([]string{
		"alpha", "1", "beta", "0.5", "gamma", "0.25", "eta", "0.5",
	}, keysAndValues...)...)
}

// frames is the size of so many full frames.
func frames(n int) string { return fmt.Sprintf("%dB", n*frameBytes) }

func TestLDCPParametersAreChecked(t *testing.T) {
	good := ldcp()
	const share = `is out of range \(hint: 0.0000152587890625 to 1\)`
	checkRejected(t, []rejection{
		{onLine(good, 0), "line rate 0 bit/s: want 1 to 800000000000 bit/s"},
		{onLine(good, 801e9), "line rate 801000000000 bit/s: .*"},
		{dilated(good, 21), "dilation shift 21: want 0 to 20"},
		{withNumber(good, "alpha", 0), "alpha: 0 " + share},
		{with(good, "alpha", "1.1"), "alpha: 1.1 " + share},
		{withNumber(good, "alpha", math.NaN()), "alpha: NaN " + share},
		{withNumber(good, "beta", -0.1), "beta: -0.1 " + share},
		{withNumber(good, "beta", 1e-9), "beta: 0.000000001 " + share}, // 0 in the kernel
		{with(good, "gamma", "1.1"), "gamma: 1.1 " + share},
		{withNumber(good, "gamma", 0), "gamma: 0 " + share},
		{withNumber(good, "eta", 0),
			`eta: 0 is out of range \(hint: 0.0000152587890625 to below 1\)`},
		{with(good, "eta", "1"), "eta: 1 is out of range .*"},
		{withNumber(good, "eta", math.NaN()), "eta: NaN is out of range .*"},
		{afterRTT(good, 999), "base RTT 999 ns: want 1000 to 1000000000 ns"},
		{afterRTT(good, 1e9+1), "base RTT 1000000001 ns: .*"},
		{with(good, "initial_window", "101MB"),
			`initial_window: 101MB is out of range \(hint: 0B to 100MB\)`},
	})
}

// A flow begins with the BDP of the configured round trip, and the next one to that host with the
// smallest measured.
func TestLDCPInitialWindow(t *testing.T) {
	control := registered(t, onLine(ldcp(), 100e9))
	p := newPath(t)
	const other = "10.0.0.3"
	p.server.AddAddr(t, netip.MustParsePrefix(other+"/24"))
	window := func(c connection) float64 {
		f, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(f.ECN))
		qt.Check(t, qt.Equals(f.SendRateBps, 0))
		qt.Check(t, qt.Equals(float64(tcpInfo(t, c.client).Snd_cwnd), f.Window))
		return f.Window
	}
	bdp := func(rttNs float64) float64 { return math.Ceil(rttNs * 100e9 / 8e9 / frameBytes) }

	c := p.connect(t, control)
	_, err := control.BaseRTT(p.server.Addr)
	qt.Check(t, qt.ErrorIs(err, loader.ErrNoFlow))
	qt.Check(t, qt.Equals(window(c), bdp(1e6)))
	c.sendAll(t, 10<<20)
	info := tcpInfo(t, c.client)
	learned, err := control.BaseRTT(p.server.Addr)
	qt.Assert(t, qt.IsNil(err))
	// or the test tells nothing
	qt.Check(t, qt.IsTrue(learned > 0 && learned < time.Millisecond), qt.Commentf("%v", learned))
	qt.Check(t, qt.IsTrue(learned >= time.Duration(info.Min_rtt)*time.Microsecond),
		qt.Commentf("%v, TCP's is %d us", learned, info.Min_rtt))
	qt.Check(t, qt.IsTrue(learned <= time.Duration(info.Rtt)*time.Microsecond),
		qt.Commentf("%v, TCP's is %d us", learned, info.Rtt))

	qt.Check(t, qt.Equals(window(p.connect(t, control)), bdp(float64(learned))))
	qt.Check(t, qt.Equals(window(p.connectTo(t, control, other, other)), bdp(1e6)))
}

func TestLDCPConfiguredInitialWindow(t *testing.T) {
	control := registered(t, ldcp("initial_window", frames(7)))
	f, err := control.Flow(newPath(t).connect(t, control).key())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(f.Window, 7))
}

// shape limits what leaves the device, as a link does: packets wait one behind the other.
func shape(t *testing.T, e nstest.End, rateBps uint64, burstBytes uint32) {
	t.Helper()
	nl := nstest.Netlink(t, e.NS)
	root := netlink.NewHtb(netlink.QdiscAttrs{LinkIndex: e.Index(), Parent: netlink.HANDLE_ROOT,
		Handle: netlink.MakeHandle(1, 0)})
	root.Defcls = 1
	qt.Assert(t, qt.IsNil(nl.QdiscReplace(root)))
	qt.Assert(t, qt.IsNil(nl.ClassReplace(netlink.NewHtbClass(
		netlink.ClassAttrs{LinkIndex: e.Index(), Parent: netlink.MakeHandle(1, 0),
			Handle: netlink.MakeHandle(1, 1)},
		netlink.HtbClassAttrs{Rate: rateBps, Buffer: burstBytes, Cbuffer: burstBytes},
	))))
}

// quickACK makes the host acknowledge each packet at once.
func quickACK(t *testing.T, e nstest.End) {
	t.Helper()
	prefix := netip.PrefixFrom(e.Addr, 24).Masked()
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, e.NS).RouteReplace(&netlink.Route{
		LinkIndex: e.Index(), Dst: &net.IPNet{IP: prefix.Addr().AsSlice(),
			Mask: net.CIDRMask(24, 32)},
		Src: e.Addr.AsSlice(), Scope: netlink.SCOPE_LINK, Protocol: unix.RTPROT_KERNEL, QuickACK: 1,
	})))
}

// attachFirstRTT attaches what makes packets of the first round trip not ECN-capable.
func attachFirstRTT(t *testing.T, control *loader.Control, sender nstest.End) {
	t.Helper()
	f, err := tc.LoadFirstRTT(control)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { f.Close() })
	qt.Assert(t, qt.IsNil(f.Attach(sender.NS, sender.Index())))
}

// ecnCounts are what a host received, by ECN field.
type ecnCounts struct{ notECT, ect, ce uint64 }

func ecnOf(t *testing.T, e nstest.End) ecnCounts {
	t.Helper()
	return ecnCounts{
		nstest.Netstat(t, e.NS, "IpExt", "InNoECTPkts"),
		nstest.Netstat(t, e.NS, "IpExt", "InECT0Pkts", "InECT1Pkts"),
		nstest.Netstat(t, e.NS, "IpExt", "InCEPkts"),
	}
}

func (a ecnCounts) sub(b ecnCounts) ecnCounts {
	return ecnCounts{a.notECT - b.notECT, a.ect - b.ect, a.ce - b.ce}
}

// Of the first round trip all packets are not ECN-capable but the IW-th, or the last of a shorter
// message; all others are.
func TestLDCPFirstRoundTrip(t *testing.T) {
	const iw = 20
	for _, test := range []struct {
		name       string
		firstRTT   bool
		packets    int
		wantNotECT uint64
	}{
		{"without first_rtt", false, iw + 5, 0},
		{"long message", true, iw + 5, iw - 1},
		{"as long as IW", true, iw, iw - 1},
		{"short message", true, 5, 4},
		{"one packet", true, 1, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			control := registered(t, ldcp("initial_window", frames(iw)))
			want := func(sent uint64) ecnCounts {
				return ecnCounts{notECT: test.wantNotECT, ect: sent - test.wantNotECT}
			}
			got, sent := firstRoundTrip(t, control, test.firstRTT, test.packets)
			for retries := 4; got != want(sent) && got.notECT == uint64(test.packets-1) &&
				retries > 0; retries-- {
				// all but the IW-th: the kernel left out the program that hears of the first ACK
				t.Logf("once more: %+v", got)
				got, sent = firstRoundTrip(t, control, test.firstRTT, test.packets)
			}
			qt.Check(t, qt.IsTrue(sent >= uint64(2+test.packets)), qt.Commentf("%d", sent))
			qt.Check(t, qt.Equals(got, want(sent)))
		})
	}
}

// firstRoundTrip sends a message on a path of its own. It returns what arrived, and how many
// packets the sender sent: the handshake's two too, which are ECN-capable, as is what a busy
// machine's timers and probes send besides.
func firstRoundTrip(
	t *testing.T, control *loader.Control, firstRTT bool, packets int,
) (got ecnCounts, sent uint64) {
	t.Helper()
	// packets of a connection whose init was left out would count
	var p path
	var c connection
	for attempts := 5; attempts == 5 || !heardOf(t, control, c); attempts-- {
		qt.Assert(t, qt.IsTrue(attempts > 0), qt.Commentf("the control hears of no flow"))
		p = newPath(t)
		shape(t, p.server, 5e3, 1) // behind the SYN-ACK no ACK comes for 120 ms
		if firstRTT {
			attachFirstRTT(t, control, p.client)
		}
		c = p.connectOnce(t, control, p.server.Addr.String(), p.server.Addr.String())
	}
	_, err := c.client.Write(make([]byte, packets*payloadBytes))
	qt.Assert(t, qt.IsNil(err))
	nstest.Eventually(t, "everything is acknowledged",
		func() bool { return tcpInfo(t, c.client).Unacked == 0 })
	return ecnOf(t, p.server), uint64(tcpInfo(t, c.client).Segs_out)
}

// A packet of the fast start is lost: cw is what was acknowledged before it, and the transfer goes
// on.
func TestLDCPLossInFastStart(t *testing.T) {
	const iw, attempts = 20, 5
	control := registered(t, ldcp("initial_window", frames(iw)))
	for attempt := 1; !lossInFastStart(t, control); attempt++ {
		qt.Assert(t, qt.IsTrue(attempt < attempts),
			qt.Commentf("timers always expire, or the control is never told"))
	}
}

// lossInFastStart reports whether no timer expired, which it does on a busy machine, and the kernel
// did not leave out the program that hears of the loss (KNOWN_ISSUES.md).
func lossInFastStart(t *testing.T, control *loader.Control) bool {
	t.Helper()
	const lost = 8
	p := newPath(t)
	shape(t, p.client, 5e6, frameBytes) // a packet in 2.4 ms
	d := nstest.NewDropper(t, p.server)
	c := p.connect(t, control)
	d.DropOnce(t, lost)
	r := c.start(t)
	var f loader.Flow
	nstest.Eventually(t, "the lost packet is sent again", func() bool {
		again := tcpInfo(t, c.client).Total_retrans > 0 // the program runs before that
		var err error
		f, err = control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		return again
	})
	if f.Losses == 0 {
		t.Log("once more: the control was not told of the loss")
		return false
	}
	// (1) may have been at work for some ACKs: each adds at most 1/7
	const before = lost - 1
	most := before + (float64(f.Packets)-before)/before
	early := f.Window
	r.receive(t, 1<<20)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	if nstest.Netstat(t, p.client.NS, "TcpExt", "TCPTimeouts", "TCPLossProbes") > 0 {
		return false
	}
	qt.Check(t, qt.IsTrue(early >= before && early <= most),
		qt.Commentf("%g packets, want %d to %g", early, before, most))
	qt.Check(t, qt.Equals(d.Dropped(t), 1))
	qt.Check(t, qt.Equals(f.Losses, 1))
	qt.Check(t, qt.Equals(f.Retransmissions, 1))
	qt.Check(t, qt.IsTrue(f.Window > lost), qt.Commentf("%g packets", f.Window))
	return true
}

// The whole first flight is dropped but its last packet, which is ECN-capable: no timer runs out.
func TestLDCPFirstFlightDropped(t *testing.T) {
	const iw = 20
	for name, packets := range map[string]int{"long message": 100, "as long as IW": iw,
		"short message": 5} {
		t.Run(name, func(t *testing.T) {
			control := registered(t, ldcp("initial_window", frames(iw)))
			want := uint64(min(packets, iw) - 1)
			f := firstFlightDropped(t, control, packets)
			late := func() bool { return f.timeouts+f.probes > 0 }
			// The kernel left out a program (KNOWN_ISSUES.md): that hears of the first ACK, so what
			// was sent again was not ECN-capable; of the loss; or of the last ACK.
			leftOut := func() bool { return f.dropped == 2*want || f.Losses == 0 || !f.heardAll }
			for retries := 4; (leftOut() || late()) && retries > 0; retries-- {
				// or a busy machine is late with ACKs
				t.Logf("once more: %d dropped, %d losses, heard of all %v, timers expired: %v",
					f.dropped, f.Losses, f.heardAll, late())
				f = firstFlightDropped(t, control, packets)
			}
			qt.Check(t, qt.Equals(f.dropped, want))
			t.Logf("%v, cw %g at the end", f.took, f.Window)
			qt.Check(t, qt.Equals(uint64(f.Retransmissions), want))
			qt.Check(t, qt.Equals(f.Losses, 1))
			qt.Check(t, qt.Equals(f.timeouts, 0))
			qt.Check(t, qt.Equals(f.probes, 0))
		})
	}
}

// firstFlight is what became of a message whose first flight was dropped.
type firstFlight struct {
	loader.Flow
	took                      time.Duration
	dropped, timeouts, probes uint64
	heardAll                  bool // the control, of what was acknowledged
}

// firstFlightDropped sends a message of so many packets over a path that drops what is not
// ECN-capable.
//
// When a packet arrives, Linux waits for those sent before it a quarter of the smallest round trip
// more, and then takes them for lost (RACK). All packets here are sent within a microsecond or two,
// so the first ACK may be too early for the last of them. ACKs of what was sent again do not help
// if their round trip is below the smallest seen. Then only the retransmission timer finds the
// loss, with any congestion control. If tcp_reordering is 1, Linux does not wait.
func firstFlightDropped(t *testing.T, control *loader.Control, packets int) firstFlight {
	t.Helper()
	p := newPath(t)
	nstest.Sysctl(t, p.client.NS, "tcp_reordering", "1")
	attachFirstRTT(t, control, p.client)
	d := nstest.NewNotECTDropper(t, p.server)
	c := p.connect(t, control)
	began := time.Now()
	c.sendAll(t, int64(packets*payloadBytes))
	took := time.Since(began)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	return firstFlight{f, took, d.Dropped(t),
		nstest.Netstat(t, p.client.NS, "TcpExt", "TCPTimeouts"),
		nstest.Netstat(t, p.client.NS, "TcpExt", "TCPLossProbes"),
		f.Packets == tcpInfo(t, c.client).Delivered}
}

// Whatever is marked, and however ACKs come, the sender counts the marks that the receiver saw.
func TestLDCPEchoIsExact(t *testing.T) {
	for _, perPacket := range []bool{false, true} {
		for _, p := range []float64{0.01, 0.3, 0.5, 0.9, 1} {
			t.Run(fmt.Sprintf("ACK a packet %v, p %g", perPacket, p), func(t *testing.T) {
				checkEcho(t, ldcp(), perPacket, p)
			})
		}
	}
	for _, p := range []float64{0.01, 0.5} { // the receiver has another way for rows of no marks
		t.Run(fmt.Sprintf("on hosts, p %g", p), func(t *testing.T) {
			checkEcho(t, onHost(ldcp("burst", "0ns")), false, p)
		})
	}
}

func checkEcho(t *testing.T, r loader.Registration, perPacket bool, p float64) {
	t.Helper()
	path := newPath(t)
	control := registered(t, r)
	if perPacket {
		quickACK(t, path.server)
	}
	attachWRED(t, path.client, tc.WREDOptions{FixedProbability: p})
	// A kernel may not run controls for some packets (KNOWN_ISSUES.md): another transfer is to be
	// exact.
	const attempts = 5
	for attempt := 1; ; attempt++ {
		marks, seen, again, heardAll := echoOf(t, path, control, p)
		if math.Abs(marks-seen) <= again && heardAll {
			break
		}
		qt.Assert(t, qt.IsTrue(attempt < attempts))
	}
}

// echoOf is how many marks the receiver saw in a transfer, and the sender; and how many packets
// were sent again when a busy machine was late: these may be marked, and not be counted. heardAll:
// the control heard of the last ACK.
func echoOf(
	t *testing.T, path path, control *loader.Control, p float64,
) (marks, seen, again float64, heardAll bool) {
	t.Helper()
	const packets = 2000
	c := path.connect(t, control)
	before := ecnOf(t, path.server)
	ackCounters := []string{"InECT0Pkts", "InNoECTPkts", "InECT1Pkts", "InCEPkts"}
	acksBefore := nstest.Netstat(t, path.client.NS, "IpExt", ackCounters...)
	c.sendAll(t, packets*payloadBytes)
	got := ecnOf(t, path.server).sub(before)
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	info := tcpInfo(t, c.client)
	acks := nstest.Netstat(t, path.client.NS, "IpExt", ackCounters...) - acksBefore
	t.Logf("%d marks, %d seen by the sender, %d ACKs of %d packets, %d sent again, cw %g",
		got.ce, f.MarkedPackets, acks, packets, info.Total_retrans, f.Window)
	sent := float64(got.ce + got.ect)
	qt.Check(t, qt.IsTrue(math.Abs(float64(got.ce)-p*sent) <= 5*math.Sqrt(p*(1-p)*sent)))
	heardAll = f.Packets == info.Delivered
	if heardAll {
		qt.Check(t, qt.Equals(info.Delivered_ce, f.MarkedPackets))
	}
	return float64(got.ce), float64(f.MarkedPackets), float64(info.Total_retrans), heardAll
}

func attachWRED(t *testing.T, e nstest.End, o tc.WREDOptions) *tc.WRED {
	t.Helper()
	w, err := tc.LoadWRED(o)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { w.Close() })
	qt.Assert(t, qt.IsNil(w.Attach(e.NS, e.Index())))
	return w
}

// All packets are marked: cw falls to gamma, and a packet leaves every RTT / gamma. Without marks
// it opens again. Another flow, which is not ECN-capable, keeps a queue, or the round trip would be
// too short to be kept.
func TestLDCPBelowOne(t *testing.T) {
	const gamma, linkBps, queueBytes = 0.25, 20e6, 32 << 10
	control := registered(t, ldcp())
	p := newPath(t)
	shape(t, p.client, linkBps, 2*frameBytes)
	reno, err := loader.KernelControl("reno")
	qt.Assert(t, qt.IsNil(err))
	other := p.connect(t, reno)
	qt.Assert(t, qt.IsNil(other.client.SetWriteBuffer(queueBytes)))
	go io.Copy(io.Discard, other.server) // until the test ends
	other.start(t)

	marker := nstest.NewMarker(t, p.server)
	c := p.connect(t, control)
	r := c.start(t)
	r.receive(t, 64<<10)
	marker.Mark(t, true)
	least := func(f loader.Flow) bool { return f.Window == gamma }
	r.until(t, control, c.key(), "cw falls to gamma", least)
	r.receive(t, 64<<10)

	// On a busy machine packets may miss their time: one of some stretches will do, but none may
	// have more.
	const stretches, tolerance = 6, 0.1
	kept := false
	for range stretches {
		got, roundTrips := packetsPerRoundTrip(t, p, c, r)
		t.Logf("%.4f packets a round trip, in %.0f round trips", got, roundTrips)
		qt.Check(t, qt.IsTrue(got < (1+tolerance)*gamma))
		if kept = got > (1-tolerance)*gamma; kept {
			break
		}
	}
	qt.Check(t, qt.IsTrue(kept))
	f, err := control.Flow(c.key())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(f.Window, gamma))
	qt.Check(t, qt.Equals(tcpInfo(t, c.client).Snd_cwnd, 1))

	marker.Mark(t, false)
	r.until(t, control, c.key(), "the window opens",
		func(f loader.Flow) bool { return f.Window > 10 })
	if tcpInfo(t, c.client).Total_retrans == 0 { // on a busy machine the timer may expire
		qt.Check(t, qt.Equals(f.Losses, 0))
	}
}

// packetsPerRoundTrip counts marked packets for a while, in which so many round trips go by.
func packetsPerRoundTrip(
	t *testing.T, p path, c connection, r *receiver,
) (packets, roundTrips float64) {
	t.Helper()
	before, began := ecnOf(t, p.server).ce, time.Now()
	for last := began; time.Since(began) < 2*time.Second; {
		r.receive(t, payloadBytes)
		now := time.Now()
		roundTrips += float64(now.Sub(last).Microseconds()) / float64(tcpInfo(t, c.client).Rtt)
		last = now
	}
	return float64(ecnOf(t, p.server).ce-before) / roundTrips, roundTrips
}

// A transfer completes, and flows leave the table when they close.
func TestLDCPFlowsLeave(t *testing.T) {
	control := registered(t, ldcp())
	p := newPath(t)
	c := p.connect(t, control)
	c.sendAll(t, 10<<20)
	flows, err := control.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(flows, 2))
	p.flowsLeave(t, control, c, connection.close)
}

// transmit starts so many flows and receives all that comes of them for some seconds. It returns
// the bytes of each, and the largest share of the link that the frames of all took in one of the
// seconds: a busy machine may be late in others.
func transmit(t *testing.T, p path, control *loader.Control, flows int, linkBps float64,
	sample func()) (received []float64, share float64) {
	t.Helper()
	const seconds = 5
	counts := make([]atomic.Int64, flows)
	for i := range flows {
		c := p.connect(t, control)
		qt.Assert(t, qt.IsNil(c.client.SetWriteBuffer(4<<20))) // there is always something to send
		c.start(t)
		go func() {
			for buf := make([]byte, 64<<10); ; {
				n, err := c.server.Read(buf)
				if err != nil {
					return
				}
				counts[i].Add(int64(n))
			}
		}()
	}
	time.Sleep(time.Second) // until they have found their rates
	received = make([]float64, flows)
	for range seconds {
		began, sum := time.Now(), 0.
		before := make([]int64, flows)
		for i := range counts {
			before[i] = counts[i].Load()
		}
		for time.Since(began) < time.Second {
			time.Sleep(2 * time.Millisecond)
			sample()
		}
		for i := range counts {
			bytes := float64(counts[i].Load() - before[i])
			received[i] += bytes
			sum += bytes
		}
		share = max(share, sum*8/time.Since(began).Seconds()*frameBytes/payloadBytes/linkBps)
	}
	return received, share
}

// jain is Jain's index of fairness.
func jain(xs []float64) float64 {
	sum, squares := 0., 0.
	for _, x := range xs {
		sum += x
		squares += x * x
	}
	return sum * sum / float64(len(xs)) / squares
}

// backlogBytes is what waits in the device's root qdisc.
func backlogBytes(t *testing.T, nl *netlink.Handle, e nstest.End) float64 {
	t.Helper()
	qdiscs, err := nl.QdiscList(e.Link)
	qt.Assert(t, qt.IsNil(err))
	for _, q := range qdiscs {
		if q.Attrs().Parent == netlink.HANDLE_ROOT {
			return float64(q.Attrs().Statistics.Queue.Backlog)
		}
	}
	t.Fatal("the device has no root qdisc")
	return 0
}

// LDCP over a shaped link whose device marks and drops as a switch does: it takes the link, keeps
// the queue at the threshold, and shares fairly, also among flows that knew the path when they
// began.
func TestLDCPBehindWRED(t *testing.T) {
	const linkBps, threshold, burstBytes = 100e6, 30_000, 32 << 10
	for _, flows := range []int{1, 2, 4} {
		t.Run(fmt.Sprint(flows, " flows"), func(t *testing.T) {
			control := registered(t, afterRTT(onLine(ldcp(), linkBps), 4e6))
			p := newPath(t)
			quickACK(t, p.server)
			shape(t, p.client, linkBps, burstBytes)
			attachFirstRTT(t, control, p.client)
			w := attachWRED(t, p.client, tc.WREDOptions{KMinBytes: threshold, KMaxBytes: threshold,
				PMax: 1, WREDBytes: threshold})
			nl := nstest.Netlink(t, p.client.NS)
			var queues []float64
			received, share := transmit(t, p, control, flows, linkBps,
				func() { queues = append(queues, backlogBytes(t, nl, p.client)) })
			slices.Sort(queues)
			median, p99 := queues[len(queues)/2], queues[len(queues)*99/100]
			counts, err := w.Counts()
			qt.Assert(t, qt.IsNil(err))
			t.Logf("%.1f%% of the link, queue %g bytes in the middle, 99%% below %g, Jain %.4f of %.0f, %+v", 100*share, median, p99, jain(received), received, counts)
			qt.Check(t, qt.IsTrue(share >= 0.95), qt.Commentf("%g of the link", share))
			qt.Check(t, qt.IsTrue(p99 <= 1.5*threshold), qt.Commentf("%g bytes", p99))
			qt.Check(t, qt.IsTrue(median >= threshold/2), qt.Commentf("%g bytes", median))
			qt.Check(t, qt.IsTrue(jain(received) >= 0.95), qt.Commentf("%v", received))
			qt.Check(t, qt.IsTrue(counts["marked"] > 0))
		})
	}
}

// A flow alone, of which packets are marked with probability p: the time average of cw is 2 (1 - p)
// / p. With p 1/2 it is less, as tests/algo has it: between the half packet at which cw < 1
// balances, and 2.
func TestLDCPWindowOfFixedProbability(t *testing.T) {
	const linkBps, burstBytes, tolerance = 50e6, 32 << 10, 0.1
	for _, test := range []struct{ p, low, high float64 }{
		{0.005, (1 - tolerance) * 398, (1 + tolerance) * 398},
		{0.05, (1 - tolerance) * 38, (1 + tolerance) * 38},
		{0.5, 0.5, 2},
	} {
		t.Run(fmt.Sprint("p ", test.p), func(t *testing.T) {
			start := ldcp("initial_window", frames(int((test.low+test.high)/2)))
			control := registered(t, onLine(start, 10e9)) // far from cw's cap
			p := newPath(t)
			quickACK(t, p.server)
			shape(t, p.client, linkBps, burstBytes)
			attachWRED(t, p.client, tc.WREDOptions{FixedProbability: test.p})
			var w windows
			_, share := transmit(t, p, control, 1, linkBps, func() {
				flows, err := control.Flows()
				qt.Assert(t, qt.IsNil(err))
				for _, f := range flows {
					if f.SentBytes > 0 { // the sender
						w.add(f)
					}
				}
			})
			got, law := w.sum/w.samples, w.lawSum/w.samples
			heard, seen := float64(w.last.MarkedPackets), float64(ecnOf(t, p.server).ce)
			t.Logf("%.3f packets on average of %g samples; %.0f%% of the link",
				got, w.samples, 100*share)
			t.Logf("%.3f packets by the marks heard; %g heard, %g seen, %d losses",
				law, heard, seen, w.last.Losses)
			// Where the kernel left out programs of the receiver, more marks were heard than it
			// saw (KNOWN_ISSUES.md), and a busy machine loses packets: the law then is about what
			// was heard. It is of windows of some packets.
			if (heard > 1.02*seen || w.last.Losses > 0) && test.p < 0.5 {
				test.low, test.high = (1-tolerance)*law, (1+tolerance)*law
			}
			qt.Check(t, qt.IsTrue(got >= test.low && got <= test.high),
				qt.Commentf("%g packets, want %g to %g", got, test.low, test.high))
		})
	}
}

// windows are a flow's window over time, and what the draft's equation (2) makes of the marks that
// the sender heard of: both as sums over samples.
type windows struct {
	last                      loader.Flow
	law, sum, lawSum, samples float64
}

func (w *windows) add(f loader.Flow) {
	const alpha, beta = 1, 0.5
	marked := float64(f.MarkedPackets - w.last.MarkedPackets)
	clean := float64(f.Packets-w.last.Packets) - marked
	if w.samples == 0 || f.Losses > w.last.Losses {
		w.law = f.Window
	} else {
		w.law += alpha*clean/w.law - beta*marked
	}
	w.last = f
	w.sum += f.Window
	w.lawSum += w.law
	w.samples++
}
