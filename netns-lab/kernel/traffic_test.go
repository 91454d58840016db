// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"encoding/hex"
	"fmt"
	"net"
	"net/netip"
	"testing"

	"github.com/go-quicktest/qt"
	"golang.org/x/net/ipv4"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
)

// TestWindowsAreOpen: before it sends anything, a sender may send more than a SYN-ACK can say.
func TestWindowsAreOpen(t *testing.T) {
	f := buildFabric(t, shortYAML, "pfc")
	tr, err := newTraffic(context.Background(), f)
	qt.Assert(t, qt.IsNil(err))
	defer func() { qt.Check(t, qt.IsNil(tr.close())) }()
	for _, s := range tr.streams {
		info, err := s.tcpInfo()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(info.Snd_wnd >= 8<<20), qt.Commentf("flow %s: %d bytes", s.Name, info.Snd_wnd))
		qt.Check(t, qt.Equals(info.Bytes_sent, s.primed))
	}
}

// TestIdleFlowsAreQuiet: neither end of a connection asks whether the other is there still, which
// would be packets on the emulated links, of thousands of flows at once.
func TestIdleFlowsAreQuiet(t *testing.T) {
	f := buildFabric(t, shortYAML, "pfc")
	tr, err := newTraffic(context.Background(), f)
	qt.Assert(t, qt.IsNil(err))
	defer func() { qt.Check(t, qt.IsNil(tr.close())) }()
	for _, s := range tr.streams {
		for end, conn := range map[string]*net.TCPConn{"sender": s.send, "receiver": s.receive} {
			raw, err := conn.SyscallConn()
			qt.Assert(t, qt.IsNil(err))
			asks := -1
			qt.Assert(t, qt.IsNil(raw.Control(func(fd uintptr) {
				asks, err = unix.GetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_KEEPALIVE)
			})))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(asks, 0), qt.Commentf("%s of %s", end, s.Name))
		}
	}
}

// TestPortsOfAHost: every flow of a host has its own, until there are no more.
func TestPortsOfAHost(t *testing.T) {
	a := newAddresses(planOf(t, shortYAML))
	few := portRange{65534, 65535}
	for _, want := range []string{"10.0.0.1:65534", "10.0.0.1:65535"} {
		got, err := a.next(0, few)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got.String(), want))
	}
	_, err := a.next(0, few)
	qt.Check(t, qt.ErrorMatches(err, "host H0 has ports for 2 flows only: .*"))
	for want, at := range map[string]struct {
		host int
		r    portRange
	}{"10.0.0.2:65534": {1, few}, "10.0.0.1:10000": {0, flowSrcPorts}, "10.0.0.1:20000": {0, flowDstPorts}} {
		got, err := a.next(at.host, at.r)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got.String(), want))
	}
}

// TestBuffersOfFlows: few flows have what they had, and many have less, but all of a window.
func TestBuffersOfFlows(t *testing.T) {
	for flows, want := range map[int]buffers{
		0: {4 << 20, 256 << 10}, 64: {4 << 20, 256 << 10}, 128: {2 << 20, 128 << 10}, 1024: {256 << 10, 16 << 10}, 9999: {256 << 10, 16 << 10},
	} {
		qt.Check(t, qt.Equals(buffersFor(flows), want), qt.Commentf("%d flows", flows))
	}
}

// manyYAML has more flows than the series have all of.
const manyYAML = `
name: many
topology: {kind: star, hosts: 5, rate: 10Gbps, delay: 10us}
frame: 1000B
switch: {pfc: {off: true}}
schemes: [pcn_dctcp]
warmup: 0ms
duration: 1.5ms
sample: 50us
flows:
  - {name: web, from: H0..H4, to: R0, start: 0ms, count: 14, every: 50us, size: 16KB}
  - {name: long, from: H0, to: R0, start: 0ms}
figures: {send_rate: [web-H1-0]}
`

// TestManyFlows: of many flows the series have the sum of each group, and what the file asks for.
func TestManyFlows(t *testing.T) {
	run := runShort(t, manyYAML, "pcn_dctcp")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	const bins = 30
	rows, rate := map[string]int{}, map[string]uint64{}
	for _, s := range run.Series {
		if s.Kind != result.KindPort {
			name := fmt.Sprintf("%s %s", s.Kind, s.Name)
			rows[name]++
			rate[name] += s.RateBps
		}
	}
	qt.Check(t, qt.HasLen(rows, 4), qt.Commentf("%v", rows))
	qt.Check(t, qt.Equals(rows["sender web-H1-0"], bins))
	qt.Check(t, qt.IsTrue(rows["flow web-H1-0"] > 1 && rows["flow web-H1-0"] < bins)) // none while it sends nothing
	qt.Check(t, qt.IsTrue(rows["flow web"] > 10 && rows["flow long"] > 10))

	var received uint64
	for _, f := range run.Flows {
		qt.Check(t, qt.Equals(f.CompletionNs > 0, f.Group == "web"), qt.Commentf("%+v", f))
		if f.Group == "web" {
			received += f.Packets
		}
	}
	qt.Assert(t, qt.HasLen(run.Flows, 71))
	// 16 KB are 18 packets of up to 1000 B and a FIN; beside them are SYN, ACKs
	got := rate["flow web"] / 8 * 50 / 1e6
	qt.Check(t, qt.IsTrue(got > 70*16_000 && got < received*1000), qt.Commentf("%d B in %d packets", got, received))
}

// pacedYAML has flows that begin at a tenth and a hundredth of their link's rate.
const pacedYAML = `
name: paced
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 10us}
frame: 1000B
schemes: [pfc, pcn]
pcn: {T: 2ms}
warmup: 0ms
duration: 1ms
sample: 50us
flows:
  - {name: slow, from: H0, to: R0, start: 0ms, initial_rate: 100Mbps}
  - {name: fast, from: H1, to: R0, start: 0ms, initial_rate: 1Gbps}
`

// TestFirstPacketsArePaced: also those that Linux does not pace, and the one after the first, which
// it hurries.
func TestFirstPacketsArePaced(t *testing.T) {
	for _, scheme := range []string{"pfc", "pcn"} {
		run := runShort(t, pacedYAML, scheme)
		qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s: %s", scheme, run.Manifest.Reasons))
		bytes := map[string]uint64{}
		for _, s := range run.Series {
			if s.Kind != result.KindFlow {
				continue
			}
			bytes[s.Name] += s.RateBps * 50 / 8e6
			sinceStart := s.TimeNs + 50_000
			most := map[string]int64{"slow": 12_500, "fast": 125_000}[s.Name]*sinceStart/1e6 + 1100 // bytes
			qt.Check(t, qt.IsTrue(int64(bytes[s.Name]) <= most), qt.Commentf("%s: %s sent %d bytes in %d ns", scheme, s.Name, bytes[s.Name], sinceStart))
		}
		qt.Check(t, qt.IsTrue(bytes["slow"] > 11_000 && bytes["fast"] > 115_000), qt.Commentf("%s: %v", scheme, bytes))
	}
}

// The headers of a burst's packets are those of IP and UDP.
func TestBurstHeader(t *testing.T) {
	flow := burstFlow{gapNs: 1, priority: 0, key: loader.FlowKey{
		Src: netip.MustParseAddrPort("10.0.0.1:30000"), Dst: netip.MustParseAddrPort("10.0.0.2:9"),
	}}
	header, err := flow.header(958)
	qt.Assert(t, qt.IsNil(err))
	ip, err := ipv4.ParseHeader(header)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(ip.Protocol, unix.IPPROTO_UDP))
	qt.Check(t, qt.Equals(ip.TotalLen, 20+8+958))
	qt.Check(t, qt.Equals(ip.Src.String()+" "+ip.Dst.String(), "10.0.0.1 10.0.0.2"))
	qt.Check(t, qt.Equals(ip.TOS&3, 2)) // ECT(0)
	// ports, 8+958 bytes, no checksum
	qt.Check(t, qt.Equals(hex.EncodeToString(header[ip.Len:]), "7530"+"0009"+"03c6"+"0000"))
}
