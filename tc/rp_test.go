// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"
	"math/rand/v2"
	"net"
	"net/netip"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// Parameters of the flows under test.
const (
	lineRateBps = 40e9
	minRateBps  = 1e6
	wMin        = 1.0 / 128
	wMax        = 0.5
	q24         = 1 << 24 // the weights' fixed point, bpf/algo/fixed.h
)

// newRP loads a reaction point with a flow table of its own, that holds these flows at half of line
// rate.
func newRP(t *testing.T, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadRp()
	qt.Assert(t, qt.IsNil(err))
	obj, err := load("rp", pruned(spec), map[string]any{rpVarIdealTime: true,
		rpVarParams: rpPcnRpParams{
			LineRateBps: lineRateBps, MinRateBps: minRateBps, W_min: wMin * q24, W_max: wMax * q24,
		}}, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	r := &RP{object: obj}
	for _, f := range flows {
		r.add(t, f)
	}
	return r
}

// pruned leaves the reaction point in the object of a control.
func pruned(spec *ebpf.CollectionSpec) *ebpf.CollectionSpec {
	keepProgram(spec, rpIngress)
	return spec
}

func (r *RP) add(t *testing.T, f flow) {
	t.Helper()
	var v rpPcnFlow
	v.Rp.SendRateBps = lineRateBps / 2
	v.Rp.W = wMin * q24
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &v)))
}

// entry is what the flow table holds of the flow, whatever the algorithm.
func (r *RP) entry(t *testing.T, f flow) []byte {
	t.Helper()
	b, err := r.coll.Maps[rpMapFlows].LookupBytes(f.key(6))
	qt.Assert(t, qt.IsNil(err))
	return b
}

// cnpHearers are the reaction points that CNPs are for.
var cnpHearers = map[string]func(*testing.T, ...flow) *RP{"pcn": newRP, "dcqcn": newDCQCNRP,
	"ibcc": newIBCCRP}

// rp is Algorithm 1, in floating point.
type rp struct{ rateBps, w float64 }

func (r *rp) cnp(decrease bool, rateMbps uint32) {
	if decrease {
		r.rateBps = max(minRateBps, min(r.rateBps, float64(rateMbps)*1e6*(1-wMin)))
		r.w = wMin
		return
	}
	r.rateBps = r.rateBps*(1-r.w) + lineRateBps*r.w
	r.w = r.w*(1-r.w) + wMax*r.w
}

// CNPs change the flow they name as Algorithm 1 says, go no further, and change no other flow.
func TestRPObeys(t *testing.T) {
	f := someFlow()
	otherPort, otherAddr := f, f
	otherPort.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1)
	otherAddr.dst = netip.AddrPortFrom(f.dst.Addr().Next(), f.dst.Port())
	reverse := flow{src: f.dst, dst: f.src}
	others := []flow{otherPort, otherAddr, reverse}
	r := newRP(t, append(others, f)...)
	before := r.flow(t, otherPort)
	want := rp{rateBps: lineRateBps / 2, w: wMin}
	counts := Counts{}
	for i, c := range []struct {
		decrease bool
		mbps     uint32
	}{
		{true, 30_000}, // above sendRate: it stays
		{true, 10_000},
		{false, 0}, {false, 0}, {false, 0}, {false, 0}, {false, 0}, {false, 0}, {false, 0},
		{true, 9000},
		{true, 1}, // below the floor once w_min is off
		{false, 0},
		{true, 0},
		{false, 0}, {false, 0},
		{true, math.MaxUint32},
		{false, 0},
		{false, 5}, // an increase has no rate
	} {
		got := r.run(t, here, "rp_ingress", encode(t, f.cnp(c.decrease, c.mbps)), skBuff{})
		qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
		want.cnp(c.decrease, c.mbps)
		v := r.flow(t, f)
		comment := qt.Commentf("CNP %d: %+v", i, c)
		qt.Assert(t, qt.IsTrue(near(float64(v.Rp.SendRateBps), want.rateBps)), comment,
			qt.Commentf("rate %d bit/s, want %g", v.Rp.SendRateBps, want.rateBps))
		qt.Assert(t, qt.IsTrue(near(float64(v.Rp.W)/q24, want.w)), comment)
		if c.decrease {
			counts["cnp_decrease"]++
			qt.Assert(t, qt.Equals(v.Sender.RecRateBps, uint64(c.mbps)*1e6), comment)
		} else {
			counts["cnp_increase"]++
		}
		qt.Assert(t, qt.Equals(v.Sender.CnpDecrease, counts["cnp_decrease"]), comment)
		qt.Assert(t, qt.Equals(v.Sender.CnpIncrease, counts["cnp_increase"]), comment)
	}
	qt.Assert(t, qt.DeepEquals(r.counts(t), counts))
	for _, o := range others {
		qt.Assert(t, qt.Equals(r.flow(t, o), before))
	}
}

// near is equality but for the rounding of Q24.
func near(got, want float64) bool { return math.Abs(got-want) <= 1e-5*want }

// Offsets in a CNP.
const (
	offIP      = 14
	offUDP     = 34
	offBTH     = 42
	offPayload = 54
	offICRC    = 70
)

// seal makes the checksum and the ICRC of a changed CNP right again, also of one that is no CNP any
// more.
func seal(frame []byte) []byte {
	fixChecksum(frame)
	// 8 bytes for the LRH that is not there
	covered := append(bytes.Repeat([]byte{0xff}, 8), frame[offIP:offICRC]...)
	for _, off := range []int{offIP + 1, offIP + 8, offIP + 10, offIP + 11, offUDP + 6, offUDP + 7,
		offBTH + 4} {
		covered[8+off-offIP] = 0xff // what routers change
	}
	binary.LittleEndian.PutUint32(frame[offICRC:], crc32.ChecksumIEEE(covered))
	return frame
}

// fixChecksum makes the IPv4 header's checksum right again.
func fixChecksum(frame []byte) {
	binary.BigEndian.PutUint16(frame[offIP+10:], 0)
	binary.BigEndian.PutUint16(frame[offIP+10:], checksum(frame))
}

// checksum is that of the IPv4 header; 0 if the header has the right one.
func checksum(frame []byte) uint16 {
	var sum uint32
	for i := offIP; i < offUDP; i += 2 {
		sum += uint32(binary.BigEndian.Uint16(frame[i:]))
	}
	for sum > math.MaxUint16 {
		sum = sum>>16 + sum&math.MaxUint16
	}
	return ^uint16(sum)
}

// What is not a sound CNP of a live flow changes no flow, and is counted by its cause. What is not
// for RP passes.
func TestRPRefuses(t *testing.T) {
	const pass = "pass" // to the stack, not counted
	f, unknown := someFlow(), someFlow()
	unknown.src = netip.AddrPortFrom(f.src.Addr(), 1)
	set := func(off int, to ...byte) func([]byte) []byte {
		return func(frame []byte) []byte {
			copy(frame[off:], to)
			return seal(frame)
		}
	}
	damaged := func(off int) func([]byte) []byte {
		return func(frame []byte) []byte {
			frame[off] ^= 0x10
			fixChecksum(frame)
			return frame
		}
	}
	for _, c := range []struct {
		name   string
		change func([]byte) []byte
		cause  string
	}{
		{"ECT(0)", set(offIP+1, cnp.DSCP<<2|ect0), "malformed"},
		{"ECT(1)", set(offIP+1, cnp.DSCP<<2|ect1), "malformed"},
		{"IP length", func(b []byte) []byte { b[offIP+3]++; fixChecksum(b); return b },
			"malformed"},
		{"IP identification", set(offIP+4, 0, 1), "malformed"},
		{"may be fragmented", set(offIP+6, 0), "malformed"},
		{"reserved IP flag", set(offIP+6, 0xc0), "malformed"},
		{"IP checksum", func(b []byte) []byte { b[offIP+10] ^= 1; return b }, "malformed"},
		{"UDP source port", set(offUDP, 0xc0, 0), "malformed"},
		{"UDP length", set(offUDP+4, 0, 41), "malformed"},
		{"UDP checksum", set(offUDP+6, 1), "malformed"},
		{"BTH solicited event", set(offBTH+1, 0x80), "malformed"},
		{"BTH pad count", set(offBTH+1, 0x10), "malformed"},
		{"BTH version", set(offBTH+1, 1), "malformed"},
		{"P_Key", set(offBTH+2, 0x7f), "malformed"},
		{"no BECN", set(offBTH+4, 0), "malformed"},
		{"FECN", set(offBTH+4, 0xc0), "malformed"},
		{"UE, without TCD", func([]byte) []byte { return encode(t, f.hold()) }, "malformed"},
		{"queue pair, first byte", set(offBTH+5, 1), "malformed"},
		{"queue pair, last byte", set(offBTH+7, 1), "malformed"},
		{"acknowledge request", set(offBTH+8, 0x80), "malformed"},
		{"PSN", set(offBTH+11, 1), "malformed"},
		{"one byte more", func(b []byte) []byte { return append(b, 0) }, "malformed"},
		{"longer, with the right lengths", func(b []byte) []byte {
			b = append(b, 0, 0, 0, 0)
			b[offIP+3], b[offUDP+5] = 64, 44
			fixChecksum(b)
			return b
		}, "malformed"},

		{"ICRC", damaged(offICRC), "bad ICRC"},
		{"ICRC, last byte", damaged(offICRC + 3), "bad ICRC"},
		{"damaged rate", damaged(offPayload + 3), "bad ICRC"},
		{"damaged tag", damaged(offPayload + 15), "bad ICRC"},
		{"damaged address", damaged(offIP + 15), "no flow"},

		{"another address", set(offIP+15, 9), "no flow"},
		{"another flow", func([]byte) []byte { return encode(t, unknown.cnp(true, 1)) }, "no flow"},
		{"ports exchanged", func([]byte) []byte {
			g := flow{src: netip.AddrPortFrom(f.src.Addr(), f.dst.Port()),
				dst: netip.AddrPortFrom(f.dst.Addr(), f.src.Port())}
			return encode(t, g.cnp(true, 1))
		}, "no flow"},

		{"IP version", set(offIP, 0x65), pass},
		{"IP header length", set(offIP, 0x46), pass},
		{"first fragment", set(offIP+6, 0x20), pass},
		{"later fragment", set(offIP+6, 0, 1), pass},
		{"TCP", set(offIP+9, 6), pass},
		{"UDP destination port", set(offUDP+2, 0x12, 0xb8), pass},
		{"another opcode", set(offBTH, 0x80), pass},
		{"another EtherType", set(12, 0x86, 0xdd), pass},
		{"VLAN", func(b []byte) []byte { return vlan(b, 10) }, pass},
		{"CNP of a RoCE NIC", func(b []byte) []byte {
			clear(b[offPayload:offICRC])
			copy(b[offUDP:], []byte{0x12, 0x34}) // its choice
			copy(b[offBTH+5:], []byte{0, 0, 0xd2})
			return seal(b)
		}, pass},
	} {
		for name, newRP := range cnpHearers {
			t.Run(name+", "+c.name, func(t *testing.T) {
				refuses(t, newRP(t, f), f, c.change(encode(t, f.cnp(true, 1))), c.cause)
			})
		}
	}
	for l := 34; l < cnp.FrameLen; l++ { // Program.Run wants an IPv4 header at least
		t.Run(fmt.Sprintf("truncated to %d bytes", l), func(t *testing.T) {
			cause := "malformed"
			if l < offPayload {
				cause = pass // nothing tells that it is a CNP
			}
			for _, newRP := range cnpHearers {
				refuses(t, newRP(t, f), f, encode(t, f.cnp(true, 1))[:l], cause)
			}
		})
	}
}

// refuses checks that a fresh reaction point does so, for this cause.
func refuses(t *testing.T, r *RP, f flow, frame []byte, cause string) {
	t.Helper()
	before := r.entry(t, f)
	got := r.run(t, here, "rp_ingress", frame, skBuff{})
	qt.Check(t, qt.DeepEquals(r.entry(t, f), before))
	want := map[string]Counts{
		"malformed": {"malformed": 1},
		"bad ICRC":  {"bad_icrc": 1},
		"no flow":   {"no_flow": 1},
		"pass":      {},
	}[cause]
	qt.Check(t, qt.DeepEquals(r.counts(t), want))
	if cause != "pass" {
		qt.Check(t, qt.Equals(got.verdict, tcxDrop))
		return
	}
	passes(t, got, frame)
}

// Routers count TTL down and may give CNPs another class; both leave the ICRC right.
func TestRPAcceptsWhatRoutersChange(t *testing.T) {
	f := someFlow()
	for name, change := range map[string]func(frame []byte){
		"TTL 1":       func(b []byte) { b[offIP+8] = 1 },
		"TTL 63":      func(b []byte) { b[offIP+8] = 63 },
		"DSCP 0":      func(b []byte) { b[offIP+1] &= 3 },
		"DSCP 63":     func(b []byte) { b[offIP+1] |= 0xfc },
		"another hop": func(b []byte) { copy(b, []byte{2, 9, 9, 9, 9, 9, 2, 8, 8, 8, 8, 8}) },
	} {
		for _, decrease := range []bool{true, false} {
			for algorithm, newRP := range cnpHearers {
				t.Run(fmt.Sprintf("%s, %s, decrease %v", algorithm, name, decrease),
					func(t *testing.T) {
						r := newRP(t, f)
						frame := encode(t, f.cnp(decrease, 1))
						change(frame)
						fixChecksum(frame)
						got := r.run(t, here, "rp_ingress", frame, skBuff{})
						qt.Check(t, qt.Equals(got.verdict, tcxDrop))
						want := Counts{"cnp_increase": 1}
						if decrease || algorithm != "pcn" { // to the others every CNP is one thing
							want = Counts{"cnp_decrease": 1}
						}
						qt.Check(t, qt.DeepEquals(r.counts(t), want))
					})
			}
		}
	}
}

// A tag that the kernel has taken off the frame: a VLAN's CNP or CNM is for the VLAN's device, a
// priority is not a VLAN.
func TestRPAndVLANs(t *testing.T) {
	for _, c := range []struct {
		id   uint16
		want Counts
	}{
		{10, Counts{}},
		{4095, Counts{}},
		{0, Counts{"cnp_decrease": 1}},
		{6 << 13, Counts{"cnp_decrease": 1}},
	} {
		f := someFlow()
		hears := func(newRP func(*testing.T, ...flow) *RP, frame []byte) func(*testing.T) {
			return func(t *testing.T) {
				r := newRP(t, f)
				dev := newTap(t, nstest.New(t), "tap0", 1)
				qt.Assert(t, qt.IsNil(r.Attach(dev.ns, dev.ifindex)))
				dev.receive(t, vnetHeader{}, vlan(frame, c.id))
				qt.Assert(t, qt.DeepEquals(r.counts(t), c.want))
			}
		}
		for name, newRP := range cnpHearers {
			t.Run(fmt.Sprintf("%s, tag %#04x", name, c.id), hears(newRP, encode(t, f.cnp(true, 1))))
		}
		t.Run(fmt.Sprintf("qcn, tag %#04x", c.id), hears(newQCNRP, f.cnm(t, 1)))
	}
}

// Some drivers leave what is behind the IP header in pages, out of a program's direct reach.
func TestRPReadsPages(t *testing.T) {
	a, b := nstest.Veth(t, nstest.New(t), nstest.New(t), netip.MustParsePrefix("10.0.0.1/24"),
		netip.MustParsePrefix("10.0.0.2/24"))
	r := newRP(t)
	qt.Assert(t, qt.IsNil(r.Attach(b.NS, b.Index())))
	var receiver *net.UDPConn
	nstest.Do(t, b.NS, func() (err error) {
		receiver, err = net.ListenUDP("udp4", &net.UDPAddr{IP: b.Addr.AsSlice(), Port: cnp.UDPPort})
		return err
	})
	t.Cleanup(func() { receiver.Close() })
	bth := encode(t, someFlow().cnp(true, 1))[offBTH:]
	nstest.Do(t, a.NS, func() error { return sendPages(b.Addr, bth) })
	got := make([]byte, 2000)
	n, err := receiver.Read(got)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.DeepEquals(got[:n], []byte(marker)), qt.Commentf("the CNP got through"))
	// The kernel's UDP gives packets an identification, which a CNP has not.
	qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"malformed": 1}))
}

// marker is a datagram that is sent behind another, to know when that has arrived.
const marker = "marker"

// sendPages sends a datagram whose payload is in pages, not copied, and a marker.
func sendPages(to netip.Addr, payload []byte) error {
	file, err := unix.MemfdCreate("payload", unix.MFD_CLOEXEC)
	if err != nil {
		return fmt.Errorf("make file: %w", err)
	}
	defer unix.Close(file)
	if _, err := unix.Pwrite(file, payload, 0); err != nil {
		return fmt.Errorf("write file: %w", err)
	}
	s, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("make socket: %w", err)
	}
	defer unix.Close(s)
	if err := unix.Connect(s, &unix.SockaddrInet4{Addr: to.As4(), Port: cnp.UDPPort}); err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	if _, err := unix.Sendfile(s, file, nil, len(payload)); err != nil {
		return fmt.Errorf("send file: %w", err)
	}
	if _, err := unix.Write(s, []byte(marker)); err != nil {
		return fmt.Errorf("send marker: %w", err)
	}
	return nil
}

// A million CNPs, whole, damaged and forged: RP obeys those that the test's own judge finds sound,
// and no flow changes but for those.
func TestRPMillionCNPs(t *testing.T) {
	const total, flowCount = 1_000_000, 64
	rnd := rand.New(rand.NewPCG(3, 4))
	flows := make([]flow, flowCount)
	for i := range flows {
		flows[i] = randomFlow(rnd)
	}
	// every second one is next to another, and never named but by forgery
	for i := 0; i < flowCount; i += 2 {
		flows[i] = flows[i+1]
		flows[i].src = netip.AddrPortFrom(flows[i].src.Addr(), flows[i].src.Port()^1<<rnd.IntN(16))
	}
	r := newRP(t, flows...)
	before := r.flow(t, flows[0])
	j := newJudge(t, flows)
	program := r.coll.Programs[rpProgRpIngress]
	var opts ebpf.RunOptions
	for i := range total {
		f := flows[rnd.IntN(flowCount/2)*2+1]
		opts.Data = mutate(rnd, encode(t, f.cnp(rnd.IntN(2) == 0, rnd.Uint32N(lineRateBps/1e6))))
		verdict, err := program.Run(&opts)
		qt.Assert(t, qt.IsNil(err))
		if want := j.judge(opts.Data); verdict != want {
			t.Fatalf("CNP %d: verdict %#x, want %#x: %x", i, verdict, want, opts.Data)
		}
		if i%(total/100) != 0 && i != total-1 {
			continue
		}
		qt.Assert(t, qt.DeepEquals(r.counts(t), j.counts), qt.Commentf("after CNP %d", i))
		for k, f := range flows {
			got, want := r.flow(t, f), j.flows[k]
			qt.Assert(t, qt.Equals([2]uint64{got.Sender.CnpDecrease, got.Sender.CnpIncrease},
				[2]uint64{want.decreases, want.increases}))
			qt.Assert(t, qt.IsTrue(near(float64(got.Rp.SendRateBps), want.rateBps)),
				qt.Commentf("flow %d has %d bit/s, want %g", k, got.Rp.SendRateBps, want.rateBps))
			if want.decreases+want.increases == 0 {
				qt.Assert(t, qt.Equals(got, before))
			}
		}
	}
	for cause, n := range map[string]uint64{
		"decrease": j.counts["cnp_decrease"], "increase": j.counts["cnp_increase"],
		"malformed": j.counts["malformed"],
		"bad ICRC":  j.counts["bad_icrc"], "no flow": j.counts["no_flow"], "passed": j.passed,
	} {
		qt.Check(t, qt.IsTrue(n > total/100),
			qt.Commentf("%s: %d of %d CNPs, too few to tell", cause, n, total))
	}
}

// mutate does to a CNP what a network, or an attacker, might.
func mutate(rnd *rand.Rand, frame []byte) []byte {
	flip := func() {
		for range 1 + rnd.IntN(3) {
			frame[12+rnd.IntN(len(frame)-12)] ^= 1 << rnd.IntN(8)
		}
	}
	switch rnd.IntN(10) {
	case 0: // as it is
	case 1: // through routers
		frame[offIP+8], frame[offIP+1] = byte(rnd.Uint32()), frame[offIP+1]&3|byte(rnd.Uint32())&^3
		fixChecksum(frame)
	case 2:
		flip()
	case 3: // damage that IP can't see
		flip()
		fixChecksum(frame)
	case 4, 5, 6: // forged
		flip()
		seal(frame)
	case 7: // another flow, mostly none
		rnd64 := binary.NativeEndian.AppendUint64(nil, rnd.Uint64())
		copy(frame[offIP+12+rnd.IntN(8):offUDP], rnd64)
		copy(frame[offPayload+4+rnd.IntN(4):offPayload+8], rnd64)
		binary.BigEndian.PutUint16(frame[offUDP:], 0xc000|
			(binary.BigEndian.Uint16(frame[offPayload+4:])^binary.BigEndian.Uint16(frame[offPayload+6:]))&0x3fff)
		seal(frame)
	case 8: // another length
		frame = append(frame, make([]byte, 20)...)[:offUDP+rnd.IntN(60)]
	case 9: // noise behind the headers
		for i := offPayload; i < len(frame); i++ {
			frame[i] = byte(rnd.Uint32())
		}
	}
	return frame
}

// judge says what RP is to do, by package cnp and Algorithm 1 in floating point.
type judge struct {
	t      *testing.T
	index  map[loader.FlowKey]int
	flows  []judged
	counts Counts
	passed uint64
}

type judged struct {
	rp
	decreases, increases uint64
}

func newJudge(t *testing.T, flows []flow) *judge {
	j := &judge{t: t, index: map[loader.FlowKey]int{}, counts: Counts{},
		flows: make([]judged, len(flows))}
	for i, f := range flows {
		j.index[f.key(6)] = i
		j.flows[i].rp = rp{rateBps: lineRateBps / 2, w: wMin}
	}
	return j
}

// judge returns the verdict on the frame, and counts.
func (j *judge) judge(frame []byte) uint32 {
	if !isCNP(frame) || len(frame) >= cnp.FrameLen && frame[offPayload+4] == 0 &&
		frame[offPayload+5] == 0 {
		j.passed++
		return tcxNext
	}
	c, err := parse(frame)
	damaged := errors.Is(err, cnp.ErrBadICRC)
	if err != nil && !damaged {
		j.counts["malformed"]++
		return tcxDrop
	}
	i, ok := j.index[loader.FlowKey{
		Src: netip.AddrPortFrom(c.Dst, c.FlowSrcPort),
		Dst: netip.AddrPortFrom(c.Src, c.FlowDstPort), Protocol: 6,
	}]
	switch {
	case !ok:
		j.counts["no_flow"]++
		return tcxDrop
	case damaged: // looked at for a live flow only
		j.counts["bad_icrc"]++
		return tcxDrop
	case c.Decrease:
		j.counts["cnp_decrease"]++
		j.flows[i].decreases++
	default:
		j.counts["cnp_increase"]++
		j.flows[i].increases++
	}
	j.flows[i].cnp(c.Decrease, c.RecRateMbps)
	return tcxDrop
}

// isCNP says whether the frame is a CNP by the fields that tell: a whole IPv4 packet to the port,
// with the opcode.
func isCNP(frame []byte) bool {
	return len(frame) >= offPayload && bytes.Equal(frame[12:15], []byte{8, 0, 0x45}) &&
		frame[offIP+6]&0x3f == 0 && frame[offIP+7] == 0 && frame[offIP+9] == 17 &&
		binary.BigEndian.Uint16(frame[offUDP+2:]) == cnp.UDPPort && frame[offBTH] == cnp.Opcode
}

// parse is cnp.Parse, but for what routers may change, and with malformed fields before a bad ICRC.
func parse(frame []byte) (cnp.CNP, error) {
	if len(frame) != cnp.FrameLen {
		return cnp.CNP{}, cnp.ErrMalformed
	}
	routed := bytes.Clone(frame)
	if fixChecksum(routed); !bytes.Equal(routed, frame) {
		return cnp.CNP{}, cnp.ErrBadChecksum
	}
	routed[offIP+1] = routed[offIP+1]&3 | cnp.DSCP<<2
	routed[offIP+8] = 64
	c, err := cnp.Parse(seal(routed))
	if c.UDP || c.Undetermined { // of real hosts, and TCD's
		return cnp.CNP{}, cnp.ErrMalformed
	}
	if err == nil && !bytes.Equal(routed[offICRC:], frame[offICRC:]) {
		err = cnp.ErrBadICRC
	}
	return c, err
}
