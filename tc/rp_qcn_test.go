// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/layers"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// qcnStartNs is when flows start.
const qcnStartNs = 1_000_000

// qcnRPParams are 802.1Qau's defaults, with a floor above R_AI.
func qcnRPParams() rpqcnQcnRpParams {
	var p rpqcnQcnRpParams
	p.Recovery.LineRateBps, p.Recovery.MinRateBps = lineRateBps, 10e6
	p.Recovery.RaiBps, p.Recovery.RhaiBps = 5e6, 50e6
	p.Recovery.TimerNs, p.Recovery.ByteCounterBytes, p.Recovery.Threshold = 15_000_000, 150_000, 5
	p.Gd, p.MinDecreaseFactor = q24/128, q24/2
	return p
}

// newQCNRP loads QCN's reaction point with a flow table of its own, that holds these flows as they
// start.
func newQCNRP(t *testing.T, flows ...flow) *RP {
	t.Helper()
	return newQCNRPOf(t, qcnRPParams(), flows...)
}

func newQCNRPOf(t *testing.T, p rpqcnQcnRpParams, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadRpqcn()
	qt.Assert(t, qt.IsNil(err))
	obj, err := load("rp", pruned(spec), map[string]any{rpqcnVarParams: p, rpqcnVarIdealTime: true},
		nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	r := &RP{object: obj}
	for _, f := range flows {
		r.putQCN(t, f, started(p))
	}
	return r
}

// started is a flow at its start.
func started(p rpqcnQcnRpParams) (v rpqcnQcnFlow) {
	v.Rp.Recovery.RateBps, v.Rp.Recovery.TargetBps = lineRateBps, lineRateBps
	v.Rp.Recovery.TimerAtNs, v.Rp.Recovery.CounterAtBytes = qcnStartNs+p.Recovery.TimerNs,
		p.Recovery.ByteCounterBytes
	return v
}

func (r *RP) putQCN(t *testing.T, f flow, v rpqcnQcnFlow) {
	t.Helper()
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &v)))
}

func (r *RP) qcn(t *testing.T, f flow) (v rpqcnQcnFlow) {
	t.Helper()
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Lookup(f.key(6), &v)))
	return v
}

// CNMs cut the rate by QntzFb / 128, worked out by hand. The target is the rate before the cut, but
// not before a cycle of the byte counter is over.
func TestQCNRPCuts(t *testing.T) {
	const (
		once  = 40e9 * 127 / 128
		twice = once * 65 / 128
		back  = (twice + 40e9) / 2 // after a cycle of fast recovery
	)
	f := someFlow()
	r := newQCNRP(t, f)
	for i, c := range []struct {
		qntzFb       uint8
		sentBytes    uint64
		rate, target float64
	}{
		{1, 0, once, 40e9},
		{63, 149_999, twice, 40e9}, // extra fast recovery: the target stays
		{32, 150_000, back * 96 / 128, back},
		{63, 150_001, back * 96 / 128 * 65 / 128, back},
	} {
		v := r.qcn(t, f)
		v.Sender.SentBytes = c.sentBytes
		r.putQCN(t, f, v)
		got := r.run(t, here, "rp_ingress", f.cnm(t, c.qntzFb),
			skBuff{CB: carry(qcnStartNs, false)})
		qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
		v = r.qcn(t, f)
		about := qt.Commentf("CNM %d: %+v", i, v.Rp)
		qt.Check(t, qt.IsTrue(near(float64(v.Rp.Recovery.RateBps), c.rate)), about,
			qt.Commentf("want %g", c.rate))
		qt.Check(t, qt.IsTrue(near(float64(v.Rp.Recovery.TargetBps), c.target)), about,
			qt.Commentf("want %g", c.target))
		qt.Check(t, qt.Equals(v.Sender.CnpDecrease, uint64(i+1)))
		qt.Check(t, qt.Equals(v.Sender.CnpIncrease+v.Sender.RecRateBps, 0))
	}
	qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": 4}))
}

// The timer raises the rate between CNMs: a quarter of the way is left after two cycles.
func TestQCNRPRecovers(t *testing.T) {
	f := someFlow()
	r := newQCNRP(t, f)
	r.run(t, here, "rp_ingress", f.cnm(t, 63), skBuff{CB: carry(qcnStartNs, false)})
	r.run(t, here, "rp_ingress", f.cnm(t, 63), skBuff{CB: carry(qcnStartNs+30_000_000, false)})
	const recovered = 40e9 - 40e9*63/128/4
	got := r.qcn(t, f).Rp.Recovery
	qt.Check(t, qt.IsTrue(near(float64(got.RateBps), recovered*65/128)), qt.Commentf("%+v", got))
	qt.Check(t, qt.Equals(got.TimerAtNs, qcnStartNs+45_000_000))
}

// No cut leaves less than its share, and none less than the floor.
func TestQCNRPBounds(t *testing.T) {
	f := someFlow()
	p := qcnRPParams()
	p.MinDecreaseFactor = q24 / 4 * 3
	r := newQCNRPOf(t, p, f)
	want := float64(lineRateBps)
	for range 40 {
		r.run(t, here, "rp_ingress", f.cnm(t, 63), skBuff{CB: carry(qcnStartNs, false)})
		want = max(want*3/4, 10e6)
		got := r.qcn(t, f).Rp.Recovery.RateBps
		qt.Assert(t, qt.IsTrue(near(float64(got), want)), qt.Commentf("%d, want %g", got, want))
	}
	qt.Assert(t, qt.Equals(r.qcn(t, f).Rp.Recovery.RateBps, 10e6))
}

// All strengths of feedback, of any switch and with any queue, change the flow that was sampled and
// no other.
func TestQCNRPObeys(t *testing.T) {
	f := someFlow()
	otherPort, otherAddr := f, f
	otherPort.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1)
	otherAddr.dst = netip.AddrPortFrom(f.dst.Addr().Next(), f.dst.Port())
	others := []flow{otherPort, otherAddr, {src: f.dst, dst: f.src}}
	r := newQCNRP(t, append(others, f)...)
	rnd := rand.New(rand.NewPCG(17, 18))
	for qntzFb := uint8(1); qntzFb <= 63; qntzFb++ {
		r.putQCN(t, f, started(qcnRPParams()))
		m, err := cnp.NewCNM(f.tcp(t, uint8(rnd.Uint32()), rnd.IntN(1400)))
		qt.Assert(t, qt.IsNil(err))
		m.QntzFb, m.CPID, m.EncapsulatedPriority = qntzFb, rnd.Uint64(), uint8(rnd.IntN(8))
		m.CnmQOffset, m.CnmQDelta = int16(rnd.Uint32()), int16(rnd.Uint32())
		rnd64 := binary.NativeEndian.AppendUint64(nil, rnd.Uint64())
		copy(m.DstMAC[:], rnd64) // a router's, maybe
		copy(m.EncapsulatedDestination[:], rnd64[2:])
		frame, err := m.MarshalBinary()
		qt.Assert(t, qt.IsNil(err))
		got := r.run(t, here, "rp_ingress", frame, skBuff{CB: carry(qcnStartNs, false)})
		qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
		rate := float64(r.qcn(t, f).Rp.Recovery.RateBps)
		qt.Assert(t, qt.IsTrue(near(rate, 40e9*(1-float64(qntzFb)/128))),
			qt.Commentf("QntzFb %d: %g", qntzFb, rate))
		qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": uint64(qntzFb)}))
		for _, o := range others {
			qt.Assert(t, qt.Equals(r.qcn(t, o), started(qcnRPParams())))
		}
	}
}

// Offsets in a CNM.
const (
	offQntzFb   = 14
	offPriority = 28
	offMSDULen  = 36
	offMSDU     = 38
)

// What is not a sound CNM of a live flow changes no flow, and is counted by its cause. What is not
// for RP passes.
func TestQCNRPRefuses(t *testing.T) {
	const pass = "pass" // to the stack, not counted
	f, unknown := someFlow(), someFlow()
	unknown.src = netip.AddrPortFrom(f.src.Addr(), 1)
	set := func(off int, to ...byte) []byte {
		frame := f.cnm(t, 1)
		copy(frame[off:], to)
		return frame
	}
	// of is a CNM that answers another packet than a whole TCP segment of the flow.
	of := func(sampled []byte) []byte {
		return someSample().cnm(t, sampled)
	}
	options := func(ip *layers.IPv4, _ *layers.TCP) {
		ip.Options = []layers.IPv4Option{{OptionType: 1}, {OptionType: 1}, {OptionType: 1},
			{OptionType: 0}}
	}
	fragment := func(offset uint16, flags layers.IPv4Flag) func(*layers.IPv4, *layers.TCP) {
		return func(ip *layers.IPv4, _ *layers.TCP) { ip.Flags, ip.FragOffset = flags, offset }
	}
	for _, c := range []struct {
		name  string
		frame []byte
		cause string
	}{
		{"version", set(offQntzFb, 0x10), "malformed"},
		{"last bit of the version", set(offQntzFb, 0x01<<4), "malformed"},
		{"reserved bits", set(offQntzFb, 0x02), "malformed"},
		{"reserved bit by QntzFb", set(offQntzFb+1, 0x41), "malformed"},
		{"no feedback", set(offQntzFb+1, 0), "malformed"},
		{"reserved bits of the priority", set(offPriority, 0x70), "malformed"},
		{"last of them", set(offPriority+1, 1), "malformed"},
		{"longer MSDU than there is", set(offMSDULen+1, 65), "malformed"},
		{"much longer", set(offMSDULen, 0xff, 0xff), "malformed"},
		{"shorter MSDU", set(offMSDULen+1, 63), "malformed"},
		{"one byte more", append(f.cnm(t, 1), 0), "malformed"},

		{"another flow", unknown.cnm(t, 1), "no flow"},
		{"the other direction", of(flow{src: f.dst, dst: f.src}.data(t, 1000)), "no flow"},
		{"UDP between the same ports", of(f.udp(t, 0, 1000)), "no flow"},
		{"ping", of(append(f.icmp(t, 1), make([]byte, 100)...)), "no flow"},
		{"IPv6", of(f.tcpIPv6(t)), "no flow"},
		{"ARP", of(append(f.arp(t), make([]byte, 100)...)), "no flow"},
		{"IPv4 options", of(f.tcp(t, 0, 1000, options)), "no flow"},
		{"first fragment", of(f.tcp(t, 0, 1000, fragment(0, layers.IPv4MoreFragments))), "no flow"},
		{"later fragment", of(f.tcp(t, 0, 1000, fragment(1, 0))), "no flow"},
		{"no MSDU", of(f.data(t, 1000)[:14]), "no flow"},
		{"MSDU without the last byte of the ports", of(f.data(t, 1000)[:14+23]), "no flow"},

		{"another EtherType", set(12, 0x22, 0xe9), pass},
		{"IPv4", f.data(t, 1000), pass},
		{"VLAN", vlan(f.cnm(t, 1), 10), pass},
		{"CNP", encode(t, f.cnp(true, 1)), pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			refuses(t, newQCNRP(t, f), f, c.frame, c.cause)
		})
	}
	whole := f.cnm(t, 1)
	for l := 15; l < len(whole); l++ { // Program.Run wants more than an Ethernet header
		t.Run(fmt.Sprintf("truncated to %d bytes", l), func(t *testing.T) {
			refuses(t, newQCNRP(t, f), f, whole[:l], "malformed")
		})
	}
}

// Of a short packet, or from a switch that is sparing, a CNM has less of an MSDU: as far as the
// ports will do.
func TestQCNRPShortMSDU(t *testing.T) {
	const shortest = 24 // bytes: IPv4 header, ports
	f := someFlow()
	r := newQCNRP(t, f)
	for msdu := shortest; msdu <= cnp.MaxMSDULen; msdu++ {
		got := r.run(t, here, "rp_ingress", someSample().cnm(t, f.data(t, 1000)[:14+msdu]),
			skBuff{})
		qt.Check(t, qt.Equals(got.verdict, tcxDrop))
		qt.Check(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": uint64(msdu - shortest + 1)}),
			qt.Commentf("%d bytes", msdu))
	}
}

// A hundred thousand CNMs, whole, damaged and forged: RP obeys those that package cnp finds sound,
// and no flow changes but for those.
func TestQCNRPManyCNMs(t *testing.T) {
	const total, flowCount = 100_000, 16
	rnd := rand.New(rand.NewPCG(19, 20))
	flows, index := make([]flow, flowCount), map[loader.FlowKey]int{}
	for i := range flows {
		flows[i] = randomFlow(rnd)
		if i%2 == 1 { // next to another
			flows[i] = flows[i-1]
			flows[i].src = netip.AddrPortFrom(flows[i].src.Addr(),
				flows[i].src.Port()^1<<rnd.IntN(16))
		}
		index[flows[i].key(6)] = i
	}
	r := newQCNRP(t, flows...)
	var (
		want   = Counts{}
		passed uint64
		cuts   [flowCount]uint64
	)
	opts := ebpf.RunOptions{Context: &skBuff{CB: carry(qcnStartNs, false)}}
	for i := range total {
		f := flows[rnd.IntN(flowCount)]
		s := sample{rnd.Uint32(), uint8(1 + rnd.IntN(63)), int16(rnd.Uint32()), int16(rnd.Uint32())}
		opts.Data = mutateCNM(rnd, s.cnm(t, f.data(t, 1000)))
		verdict, err := r.coll.Programs["rp_ingress"].Run(&opts)
		qt.Assert(t, qt.IsNil(err))
		m, err := cnp.ParseCNM(opts.Data)
		key, ok := sampledFlow(m)
		named, live := index[key]
		wantVerdict := uint32(tcxDrop)
		switch {
		case !bytes.Equal(opts.Data[12:14], []byte{0x22, 0xe7}):
			wantVerdict = tcxNext
			passed++
		case err != nil || m.QntzFb == 0:
			want["malformed"]++
		case !ok || !live:
			want["no_flow"]++
		default:
			want["cnp_decrease"]++
			cuts[named]++
		}
		if verdict != wantVerdict {
			t.Fatalf("CNM %d: verdict %#x, want %#x: %x", i, verdict, wantVerdict, opts.Data)
		}
		if i%(total/100) != 0 && i != total-1 {
			continue
		}
		qt.Assert(t, qt.DeepEquals(r.counts(t), want), qt.Commentf("after CNM %d", i))
		for k, f := range flows {
			qt.Assert(t, qt.Equals(r.qcn(t, f).Sender.CnpDecrease, cuts[k]),
				qt.Commentf("flow %d after CNM %d", k, i))
		}
	}
	for cause, n := range map[string]uint64{"cut": want["cnp_decrease"],
		"malformed": want["malformed"], "no flow": want["no_flow"], "passed": passed} {
		qt.Check(t, qt.IsTrue(n > total/100),
			qt.Commentf("%s: %d of %d CNMs, too few to tell", cause, n, total))
	}
}

// sampledFlow is the flow of which a CNM has a packet; false if it is not TCP over plain IPv4.
func sampledFlow(m cnp.CNM) (k loader.FlowKey, ok bool) {
	ip := m.MSDU
	if len(ip) < 24 || ip[0] != 0x45 || ip[9] != 6 || binary.BigEndian.Uint16(ip[6:])&0x3fff != 0 {
		return k, false
	}
	src, dst := netip.AddrFrom4([4]byte(ip[12:])), netip.AddrFrom4([4]byte(ip[16:]))
	sport, dport := binary.BigEndian.Uint16(ip[20:]), binary.BigEndian.Uint16(ip[22:])
	return loader.FlowKey{Src: netip.AddrPortFrom(src, sport), Dst: netip.AddrPortFrom(dst, dport),
		Protocol: 6}, true
}

// mutateCNM does to a CNM what a network, or an attacker, might.
func mutateCNM(rnd *rand.Rand, frame []byte) []byte {
	switch rnd.IntN(7) {
	case 0: // as it is
	case 1: // something else, or not
		frame[12+rnd.IntN(2)] ^= byte(rnd.IntN(2))
	case 2: // damaged
		for range 1 + rnd.IntN(3) {
			frame[12+rnd.IntN(len(frame)-12)] ^= 1 << rnd.IntN(8)
		}
	case 3: // another length
		frame = append(frame, make([]byte, 20)...)[:20+rnd.IntN(102)]
	case 4: // a shorter MSDU
		n := rnd.IntN(65)
		clear(frame[offMSDU+n:])
		frame = frame[:max(cnp.MinCNMLen, offMSDU+n)]
		frame[offMSDULen+1] = byte(n)
	case 5: // another sample
		frame[offMSDU+rnd.IntN(24)] ^= 1 << rnd.IntN(8)
	}
	return frame
}
