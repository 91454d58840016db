// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"math"
	"net/netip"
	"slices"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

// testIfindex is the device that Program.Run says a packet came in at, in the namespace of the
// test: lo.
const testIfindex = 1

// newHostRP loads a host's reaction point with a flow table of its own, that holds these flows at
// half of line rate. It allows CNPs at testIfindex, from everywhere or these prefixes.
func newHostRP(t *testing.T, o HostRPOptions, prefixes []netip.Prefix, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	vars, err := o.Variables()
	qt.Assert(t, qt.IsNil(err))
	vars[rpVarParams] = rpPcnRpParams{
		LineRateBps: lineRateBps, MinRateBps: minRateBps, W_min: wMin * q24, W_max: wMax * q24,
	}
	spec, err := loadRp()
	qt.Assert(t, qt.IsNil(err))
	r, err := loadedRP("rp", spec, vars, nil, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { r.Close() })
	qt.Assert(t, qt.IsNil(r.Allow(testIfindex, prefixes...)))
	for _, f := range flows {
		r.add(t, f)
	}
	return r
}

// flow is the flow's entry, but for what RP remembers only to be faster.
func (r *RP) flow(t *testing.T, f flow) rpPcnFlow {
	t.Helper()
	var v rpPcnFlow
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Lookup(f.key(6), &v)))
	v.Guard.Crc, v.Guard.CrcKnown, v.Guard.Ifindex, v.Guard.Rules = 0, 0, 0, 0
	return v
}

// hearFrame hands RP a packet.
func (r *RP) hearFrame(t *testing.T, frame []byte) result {
	t.Helper()
	return r.run(t, here, "rp_ingress", frame, skBuff{})
}

func TestHostRPOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    HostRPOptions
		want string
	}{
		{HostRPOptions{Window: -1}, "rp: window -1ns: want 0 to 1h0m0s"},
		{HostRPOptions{Window: 2 * time.Hour}, "rp: window 2h0m0s: want 0 to 1h0m0s"},
		{HostRPOptions{CNPInterval: -1}, "rp: CNP interval -1ns: .*"},
		{HostRPOptions{CNPBurst: -1}, "rp: burst of -1 CNPs: .*"},
	} {
		_, err := c.o.Variables()
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
	r := newHostRP(t, HostRPOptions{}, nil)
	qt.Check(t, qt.ErrorMatches(r.Allow(1, netip.Prefix{}),
		`rp: allow CNPs from prefix "invalid Prefix": want one such as .*`))
}

// CNPs of either family, in any VLAN, change the flow they name as Algorithm 1 says, and no other.
func TestHostRPObeys(t *testing.T) {
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		for _, tags := range [][][4]byte{{}, {vlan10}, {provider7, vlan10}} {
			t.Run(fmt.Sprintf("%s, %d tags", f.src.Addr(), len(tags)), func(t *testing.T) {
				otherPort, otherAddr := f, f
				otherPort.src = netip.AddrPortFrom(f.src.Addr(), f.src.Port()+1)
				otherAddr.dst = netip.AddrPortFrom(f.dst.Addr().Next(), f.dst.Port())
				others := []flow{otherPort, otherAddr, {src: f.dst, dst: f.src}}
				r := newHostRP(t, HostRPOptions{}, nil, append(others, f)...)
				before := r.flow(t, otherPort)
				want := rp{rateBps: lineRateBps / 2, w: wMin}
				counts := Counts{}
				for i, mbps := range []uint32{30_000, 10_000, 0, 0, 0, 0, 9000, 1, 0,
					math.MaxUint32, 0} {
					decrease := mbps > 0
					got := r.hearFrame(t, tagged(encode(t, f.cnp(decrease, mbps)), tags...))
					qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
					want.cnp(decrease, mbps)
					v := r.flow(t, f)
					qt.Assert(t, qt.IsTrue(near(float64(v.Rp.SendRateBps), want.rateBps)),
						qt.Commentf("CNP %d", i))
					qt.Assert(t, qt.IsTrue(near(float64(v.Rp.W)/q24, want.w)),
						qt.Commentf("CNP %d", i))
					if decrease {
						counts["cnp_decrease"]++
					} else {
						counts["cnp_increase"]++
					}
					qt.Assert(t, qt.Equals(v.Sender.CnpDecrease, counts["cnp_decrease"]))
					qt.Assert(t, qt.Equals(v.Sender.CnpIncrease, counts["cnp_increase"]))
				}
				qt.Assert(t, qt.DeepEquals(r.counts(t), counts))
				for _, o := range others {
					qt.Assert(t, qt.Equals(r.flow(t, o), before))
				}
			})
		}
	}
}

// A CNP that names a rate was sent with CE. If its ECN field was cleared on the way, it still slows
// its flow down, and is counted apart.
func TestHostRPWithCELost(t *testing.T) {
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		r := newHostRP(t, HostRPOptions{}, nil, f)
		want := rp{rateBps: lineRateBps / 2, w: wMin}
		for _, mbps := range []uint32{10_000, 9000, 8000} {
			r.hearFrame(t, encode(t, f.cnp(false, mbps)))
			want.cnp(true, mbps)
			v := r.flow(t, f)
			qt.Check(t, qt.IsTrue(near(float64(v.Rp.SendRateBps), want.rateBps)))
			qt.Check(t, qt.Equals(v.Sender.RecRateBps, uint64(mbps)*1e6))
		}
		v := r.flow(t, f)
		qt.Check(t, qt.Equals(v.Sender.CnpDecrease, 3))
		qt.Check(t, qt.Equals(v.Sender.CnpIncrease, 0))
		qt.Check(t, qt.DeepEquals(r.counts(t), Counts{"cnp_ce_lost": 3}))
	}
}

// Devices give RP a frame whose outermost tag is in the skb.
func TestHostRPReceivesVLANs(t *testing.T) {
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		for _, tags := range [][][4]byte{{}, {vlan10}, {priority}, {provider7, vlan10},
			{provider7, vlan10, vlan4095}} {
			r := newHostRP(t, HostRPOptions{}, nil, f)
			dev := newTap(t, nstest.New(t), "tap0", 1)
			qt.Assert(t, qt.IsNil(r.Allow(dev.ifindex)))
			qt.Assert(t, qt.IsNil(r.Attach(dev.ns, dev.ifindex)))
			dev.receive(t, vnetHeader{}, tagged(encode(t, f.cnp(true, 1)), tags...))
			qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": 1}),
				qt.Commentf("%s, %d tags", f.src, len(tags)))
		}
	}
}

// sealIPv6 makes the ICRC of a changed CNP over IPv6 right again.
func sealIPv6(frame []byte) []byte {
	const off = 14
	covered := append(slices.Repeat([]byte{0xff}, 8), frame[off:90]...)
	for _, i := range []int{1, 2, 3, 7, 46, 47, 52} {
		covered[8+i] = 0xff
	}
	covered[8] |= 0x0f
	binary.LittleEndian.PutUint32(frame[90:], crc32.ChecksumIEEE(covered))
	return frame
}

// What is not a sound CNP of a live flow changes no flow, and is counted by its cause. What is not
// for RP passes.
func TestHostRPRefuses(t *testing.T) {
	v4, v6 := someFlow(), someFlowIPv6()
	set := func(seal func([]byte) []byte, off int, to ...byte) func([]byte) []byte {
		return func(b []byte) []byte {
			copy(b[off:], to)
			return seal(b)
		}
	}
	damaged := func(off int) func([]byte) []byte {
		return func(b []byte) []byte {
			b[off] ^= 0x10
			if b[12] == 8 {
				fixChecksum(b)
			}
			return b
		}
	}
	sound := func(b []byte) []byte { return b }
	malformed, badICRC, noFlow, pass := Counts{"malformed": 1}, Counts{"bad_icrc": 1},
		Counts{"no_flow": 1}, Counts{}
	for _, c := range []struct {
		name   string
		f      flow
		change func([]byte) []byte
		want   Counts
	}{
		{"ECT(0)", v4, set(seal, offIP+1, cnp.DSCP<<2|ect0), malformed},
		{"ECT(1)", v4, set(seal, offIP+1, cnp.DSCP<<2|ect1), malformed},
		{"IP length", v4, func(b []byte) []byte { b[offIP+3]++; fixChecksum(b); return b },
			malformed},
		{"IP identification", v4, set(seal, offIP+4, 0, 1), malformed},
		{"may be fragmented", v4, set(seal, offIP+6, 0), malformed},
		{"IP checksum", v4, func(b []byte) []byte { b[offIP+10] ^= 1; return b }, malformed},
		{"UDP source port", v4, set(seal, offUDP, 0xc0, 0), malformed},
		{"UDP length", v4, set(seal, offUDP+4, 0, 41), malformed},
		{"UDP checksum", v4, set(seal, offUDP+6, 1), malformed},
		{"BTH flags", v4, set(seal, offBTH+1, 1), malformed},
		{"P_Key", v4, set(seal, offBTH+2, 0x7f), malformed},
		{"no BECN", v4, set(seal, offBTH+4, 0), malformed},
		{"queue pair", v4, set(seal, offBTH+7, 1), malformed},
		{"PSN", v4, set(seal, offBTH+11, 1), malformed},
		{"one byte more", v4, func(b []byte) []byte { return append(b, 0) }, malformed},
		{"ECT(0), IPv6", v6, set(sealIPv6, 15, 0x20), malformed},
		{"IPv6 length", v6, set(sealIPv6, 18, 0, 41), malformed},
		{"UDP source port, IPv6", v6, set(sealIPv6, 54, 0xc0, 0), malformed},
		{"PSN, IPv6", v6, set(sealIPv6, 73, 1), malformed},
		{"one byte more, IPv6", v6, func(b []byte) []byte { return append(b, 0) }, malformed},

		{"ICRC", v4, damaged(offICRC), badICRC},
		{"damaged rate", v4, damaged(offPayload + 3), badICRC},
		{"damaged tag", v4, damaged(offPayload + 15), badICRC},
		{"ICRC, IPv6", v6, damaged(93), badICRC},
		{"damaged rate, IPv6", v6, damaged(77), badICRC},

		{"another address", v4, set(seal, offIP+15, 9), noFlow},
		{"damaged address", v4, damaged(offIP + 15), noFlow},
		{"another address, IPv6", v6, set(sealIPv6, 37, 9), noFlow},

		{"UDP's", v4, set(seal, offBTH+11, 17), Counts{"cnp_udp": 1}},
		{"UDP's, IPv6", v6, set(sealIPv6, 73, 17), Counts{"cnp_udp": 1}},

		{"IP version", v4, set(seal, offIP, 0x65), pass},
		{"IP header length", v4, set(seal, offIP, 0x46), pass},
		{"first fragment", v4, set(seal, offIP+6, 0x20), pass},
		{"later fragment", v4, set(seal, offIP+6, 0, 1), pass},
		{"TCP", v4, set(seal, offIP+9, 6), pass},
		{"UDP destination port", v4, set(seal, offUDP+2, 0x12, 0xb8), pass},
		{"another opcode", v4, set(seal, offBTH, 0x80), pass},
		{"another EtherType", v4, set(sound, 12, 0x86, 0xdd), pass},
		{"IPv6 version", v6, set(sealIPv6, 14, 0x4c), pass},
		{"IPv6 extension", v6, set(sealIPv6, 20, 0), pass},
		{"three tags", v4, func(b []byte) []byte { return tagged(b, vlan10, vlan10, vlan10) },
			pass},
		{"CNP of a RoCE NIC", v4, func(b []byte) []byte {
			clear(b[offPayload:offICRC])
			copy(b[offUDP:], []byte{0x12, 0x34}) // its choice
			copy(b[offBTH+5:], []byte{0, 0, 0xd2})
			return seal(b)
		}, pass},
	} {
		t.Run(c.name, func(t *testing.T) {
			hostRefuses(t, newHostRP(t, HostRPOptions{}, nil, v4, v6), []flow{v4, v6},
				c.change(encode(t, c.f.cnp(true, 1))), c.want)
		})
	}
	for _, f := range []flow{v4, v6} {
		r := newHostRP(t, HostRPOptions{}, nil, f)
		whole := encode(t, f.cnp(true, 1))
		for l := 54; l < len(whole); l++ { // Program.Run wants an IP header at least
			before := r.counts(t)["malformed"]
			r.hearFrame(t, whole[:l])
			told := l >= len(whole)-20 // what tells that it is a CNP is there
			qt.Assert(t, qt.Equals(r.counts(t)["malformed"]-before == 1, told),
				qt.Commentf("%s truncated to %d bytes", f.src, l))
		}
		qt.Assert(t, qt.Equals(r.flow(t, f).Rp.SendRateBps, lineRateBps/2))
	}
}

// hostRefuses checks that RP does so, for this cause; what is not counted passes.
func hostRefuses(t *testing.T, r *RP, flows []flow, frame []byte, want Counts) {
	t.Helper()
	var before []rpPcnFlow
	for _, f := range flows {
		before = append(before, r.flow(t, f))
	}
	got := r.hearFrame(t, frame)
	for i, f := range flows {
		qt.Check(t, qt.Equals(r.flow(t, f), before[i]))
	}
	qt.Check(t, qt.DeepEquals(r.counts(t), want))
	if want.total() > want["cnp_udp"] {
		qt.Check(t, qt.Equals(got.verdict, tcxDrop))
		return
	}
	passes(t, got, frame)
}

// disallow takes back what Allow gave, of these prefixes.
func (r *RP) disallow(t *testing.T, ifindex int, prefixes ...netip.Prefix) {
	t.Helper()
	for _, p := range prefixes {
		source, err := r.sourceOf(ifindex, p)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapRpSources].Delete(source)))
	}
	qt.Assert(t, qt.IsNil(changeRules(r.coll.Maps[rpMapRpRules])))
}

// CNPs are taken from allowed prefixes only, on each interface its own.
func TestHostRPSources(t *testing.T) {
	v4, v6 := someFlow(), someFlowIPv6()
	prefixes := func(s ...string) (p []netip.Prefix) {
		for _, s := range s {
			p = append(p, netip.MustParsePrefix(s))
		}
		return p
	}
	for _, c := range []struct {
		prefixes       []netip.Prefix
		from4, from6   bool
		otherInterface bool
	}{
		{prefixes("10.0.0.2/32"), true, false, false},
		{prefixes("10.0.0.0/30"), true, false, false},
		{prefixes("10.0.0.0/31"), false, false, false},
		{prefixes("10.0.0.9/8", "10.0.0.0/31"), true, false, false},
		{prefixes("0.0.0.0/0"), true, false, false},
		{prefixes("2001:db8::/32"), false, true, false},
		{prefixes("2001:db8::/127", "192.168.0.0/16"), false, false, false},
		{prefixes("::/0"), true, true, false},
		{prefixes("::/0"), false, false, true},
	} {
		t.Run(fmt.Sprint(c.prefixes, c.otherInterface), func(t *testing.T) {
			r := newHostRP(t, HostRPOptions{}, c.prefixes, v4, v6)
			if c.otherInterface {
				r.disallow(t, testIfindex, c.prefixes...)
				qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapRpInterfaces].Delete(uint32(testIfindex))))
				qt.Assert(t, qt.IsNil(r.Allow(testIfindex+1, c.prefixes...)))
			}
			want := Counts{}
			for _, from := range []struct {
				f       flow
				allowed bool
			}{{v4, c.from4}, {v6, c.from6}} {
				r.hearFrame(t, encode(t, from.f.cnp(true, 1)))
				switch {
				case from.allowed:
					want["cnp_decrease"]++
				case c.otherInterface:
					want["interface"]++
				default:
					want["prefix"]++
				}
				qt.Check(t, qt.Equals(r.flow(t, from.f).Rp.SendRateBps < lineRateBps/2,
					from.allowed))
			}
			qt.Check(t, qt.DeepEquals(r.counts(t), want))
		})
	}
}

// A prefix that is taken away counts at once, also for a peer that was heard before.
func TestHostRPChangesSources(t *testing.T) {
	f, all := someFlow(), netip.MustParsePrefix("::/0")
	r := newHostRP(t, HostRPOptions{}, nil, f)
	want := Counts{}
	for range 3 {
		r.hearFrame(t, encode(t, f.cnp(false, 0)))
		r.hearFrame(t, encode(t, f.cnp(false, 0)))
		want["cnp_increase"] += 2
		r.disallow(t, testIfindex, all)
		r.hearFrame(t, encode(t, f.cnp(false, 0)))
		r.hearFrame(t, encode(t, f.cnp(false, 0)))
		want["prefix"] += 2
		qt.Assert(t, qt.IsNil(r.Allow(testIfindex, all)))
	}
	qt.Check(t, qt.DeepEquals(r.counts(t), want))
}

// No more CNPs than the limit are obeyed, of each flow for itself.
func TestHostRPLimitsRate(t *testing.T) {
	const burst = 3
	a, b := someFlow(), someFlowIPv6()
	r := newHostRP(t, HostRPOptions{CNPInterval: time.Hour, CNPBurst: burst}, nil, a, b)
	for range 10 {
		r.hearFrame(t, encode(t, a.cnp(false, 0)))
	}
	r.hearFrame(t, encode(t, b.cnp(true, 1)))
	qt.Check(t, qt.DeepEquals(r.counts(t), Counts{"cnp_increase": burst, "cnp_decrease": 1,
		"rise_limited": 10 - burst}))
	qt.Check(t, qt.Equals(r.flow(t, a).Sender.CnpIncrease, burst))

	const interval, want = 20 * time.Millisecond, 5
	r = newHostRP(t, HostRPOptions{CNPInterval: interval, CNPBurst: 1}, nil, a)
	start, obeyed := time.Now(), uint64(0)
	for obeyed < want {
		r.hearFrame(t, encode(t, a.cnp(false, 0)))
		obeyed = r.counts(t)["cnp_increase"]
	}
	least := (want - 1) * interval // the first one needs no wait
	qt.Check(t, qt.IsTrue(time.Since(start) >= least), qt.Commentf("%v", time.Since(start)))
}

// A flood of CNPs that speed up crowds out none that slow down. While a receiver says that there is
// congestion, the flood speeds up nothing.
func TestHostRPFloodOfIncreases(t *testing.T) {
	const burst, interval = 8, 50 * time.Millisecond // T is two intervals
	f := someFlow()
	r := newHostRP(t, HostRPOptions{CNPInterval: interval, CNPBurst: burst}, nil, f)
	// A pause of this process longer than an interval gives the flood a token or two.
	genuine, tokens := uint64(0), uint64(burst)
	start := time.Now()
	next := start
	for last := start; last.Sub(start) < 20*interval; {
		r.hearFrame(t, encode(t, f.cnp(false, 0)))
		if last.After(next) {
			r.hearFrame(t, encode(t, f.cnp(true, 1)))
			genuine++
			next = last.Add(2 * interval)
		}
		now := time.Now()
		if pause := now.Sub(last); pause > interval/2 {
			tokens += uint64(pause/interval) + 1
		}
		last = now
	}
	got := r.flow(t, f).Sender
	qt.Check(t, qt.Equals(got.CnpDecrease, genuine))
	qt.Check(t, qt.IsTrue(got.CnpIncrease <= tokens),
		qt.Commentf("%d increases of at most %d, %d decreases", got.CnpIncrease, tokens, genuine))
}

// A CNP without signature has to name what the flow had in flight lately, and what its peer may
// have sent. Another increase has to answer a later packet.
func TestHostRPWantsSight(t *testing.T) {
	const (
		flight, window = 100_000, 65536
		most, mostAck  = 2*flight + 128<<10, window + 32<<10
	)
	una, expected := uint32(0xffff_f000), uint32(77) // both wrap
	f := someFlow()
	for _, c := range []struct {
		seq, ack uint32
		want     string
	}{
		{una, expected, "cnp_decrease"},
		{una + most, expected, "cnp_decrease"},
		{una + most + 1, expected, "unseen"},
		{una - most, expected, "cnp_decrease"},
		{una - most - 1, expected, "unseen"},
		{una, expected + mostAck, "cnp_decrease"},
		{una, expected + mostAck + 1, "unseen"},
		{una, expected - mostAck, "cnp_decrease"},
		{una, expected - mostAck - 1, "unseen"},
		{una ^ 1<<31, expected, "unseen"},
		{una, expected ^ 1<<31, "unseen"},
	} {
		r := newHostRP(t, HostRPOptions{}, nil, f)
		r.sight(t, f, una, flight, expected, window)
		forged := f.cnp(true, 1000)
		forged.Saw(c.seq, c.ack)
		r.hearFrame(t, encode(t, forged))
		qt.Check(t, qt.DeepEquals(r.counts(t), Counts{c.want: 1}), qt.Commentf("%+v", c))
	}

	r := newHostRP(t, HostRPOptions{}, nil, f)
	r.sight(t, f, una, flight, expected, window)
	counts := Counts{}
	for _, c := range []struct {
		seq      uint32
		decrease bool
		want     string
	}{
		{una, false, "cnp_increase"},
		{una, false, "replayed"},
		{una + 0x2000, false, "cnp_increase"}, // behind the wrap
		{una + 0x1000, false, "replayed"},
		{una, true, "cnp_decrease"}, // of a packet that was sent again
		{una + 0x2000, false, "replayed"},
		{una + 0x3000, true, "cnp_decrease"},
		{una + 0x3000, false, "replayed"},
	} {
		one := f.cnp(c.decrease, 0)
		one.Saw(c.seq, expected)
		r.hearFrame(t, encode(t, one))
		counts[c.want]++
		qt.Check(t, qt.DeepEquals(r.counts(t), counts), qt.Commentf("%+v", c))
	}
}

// sight sets what RP compares with a CNP of a flow.
func (r *RP) sight(t *testing.T, f flow, una, flight, expected, window uint32) {
	t.Helper()
	v := r.flow(t, f)
	v.Guard.Una, v.Guard.Flight, v.Guard.Expected, v.Guard.Window = una, flight, expected, window
	v.Guard.Sighted = 1
	qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &v)))
}

// While CNPs of a flow come in by one VLAN, those in others are dropped. When none came for two
// seconds, the flow has moved.
func TestHostRPWantsOnePlace(t *testing.T) {
	for wantsOnePlace(t) {
		t.Log("the machine is busy: CNPs that were to come at once took a second")
	}
}

// wantsOnePlace reports whether this process waited for so long that it is to be tried again.
func wantsOnePlace(t *testing.T) (again bool) {
	const second = 1 << 30 * time.Nanosecond // as RP counts them
	f := someFlow()
	r := newHostRP(t, HostRPOptions{}, nil, f)
	sound := encode(t, f.cnp(true, 1000))
	type tags = [][4]byte
	hear := func(want Counts, all ...tags) {
		t.Helper()
		began := time.Now()
		for _, tags := range all {
			r.hearFrame(t, tagged(sound, tags...))
		}
		got := r.counts(t)
		if again = again || time.Since(began) >= second; !again {
			qt.Check(t, qt.DeepEquals(got, want))
		}
	}
	hear(Counts{"cnp_decrease": 2, "elsewhere": 4}, tags{vlan10}, nil, tags{provider7},
		tags{provider7, vlan10}, tags{vlan10, provider7}, tags{vlan10})
	time.Sleep(3 * second) // two of them have passed, and a part
	hear(Counts{"cnp_decrease": 3, "elsewhere": 4}, tags{priority})
	hear(Counts{"cnp_decrease": 4, "elsewhere": 5}, nil, tags{vlan10}) // VLAN 0 is none
	return again
}

// No CNP brings a flow below the floor.
func TestHostRPFloor(t *testing.T) {
	f := someFlow()
	for floorBps, want := range map[uint64]uint64{0: minRateBps, 1: minRateBps, 5e9: 5e9} {
		r := newHostRP(t, HostRPOptions{FloorBps: floorBps}, nil, f)
		r.hearFrame(t, encode(t, f.cnp(true, 1)))
		r.hearFrame(t, encode(t, f.cnp(true, 0)))
		qt.Check(t, qt.Equals(r.flow(t, f).Rp.SendRateBps, want))
	}
}

// Where a tag is required, only signed, new CNPs are obeyed.
func TestHostRPTags(t *testing.T) {
	key, old, unknown := cnp.Key{1, 2, 3}, cnp.Key{4, 5, 6}, cnp.Key{7, 8, 9}
	const window = 20 * time.Second // much more than the test takes
	for _, f := range []flow{someFlow(), someFlowIPv6()} {
		signed := func(key cnp.Key, slot int, age time.Duration, change ...func(*cnp.CNP)) []byte {
			c := f.cnp(true, 1000)
			c.Sign(key, slot, time.Now().Add(-age))
			for _, change := range change {
				change(&c)
			}
			return encode(t, c)
		}
		for _, c := range []struct {
			name  string
			frame []byte
			want  Counts
		}{
			{"sound", signed(key, 0, 0), Counts{"cnp_decrease": 1}},
			{"with the other key", signed(old, 1, 0), Counts{"cnp_decrease": 1}},
			{"late", signed(key, 0, window/2), Counts{"cnp_decrease": 1}},
			{"early", signed(key, 0, -window/2), Counts{"cnp_decrease": 1}},
			{"too late", signed(key, 0, 2*window), Counts{"stale": 1}},
			{"too early", signed(key, 0, -2*window), Counts{"stale": 1}},
			{"an hour ago", signed(key, 0, time.Hour), Counts{"stale": 1}},
			{"unsigned", encode(t, f.cnp(true, 1000)), Counts{"unsigned": 1}},
			{"with an unknown key", signed(unknown, 0, 0), Counts{"bad_tag": 1}},
			{"with the key of the other slot", signed(key, 1, 0), Counts{"bad_tag": 1}},
			{"another rate", signed(key, 0, 0, func(c *cnp.CNP) { c.RecRateMbps = 1 }),
				Counts{"bad_tag": 1}},
			{"CE cleared on the way", signed(key, 0, 0, func(c *cnp.CNP) { c.Decrease = false }),
				Counts{"cnp_ce_lost": 1}},
			{"CE set on the way", signed(key, 0, 0, func(c *cnp.CNP) { c.RecRateMbps = 0 }),
				Counts{"bad_tag": 1}},
			{"another time", signed(key, 0, 0, func(c *cnp.CNP) { c.Tag[3] ^= 1 }),
				Counts{"bad_tag": 1}},
			{"another flow", signed(key, 0, 0, func(c *cnp.CNP) { c.FlowSrcPort++ }),
				Counts{"no_flow": 1}},
		} {
			t.Run(f.src.Addr().String()+", "+c.name, func(t *testing.T) {
				r := newHostRP(t, HostRPOptions{RequireTag: true, Window: window}, nil, f)
				qt.Assert(t, qt.IsNil(r.Keys().Set(0, key, KeySigns)))
				qt.Assert(t, qt.IsNil(r.Keys().Set(1, old, KeyAccepted)))
				if c.want["cnp_decrease"]+c.want["cnp_ce_lost"] == 0 {
					hostRefuses(t, r, []flow{f}, c.frame, c.want)
					return
				}
				r.hearFrame(t, c.frame)
				qt.Check(t, qt.DeepEquals(r.counts(t), c.want))
				qt.Check(t, qt.IsTrue(near(float64(r.flow(t, f).Rp.SendRateBps), 1e9*(1-wMin))))

				after := r.flow(t, f)
				r.hearFrame(t, c.frame)
				c.want["replayed"]++
				qt.Check(t, qt.DeepEquals(r.counts(t), c.want))
				qt.Check(t, qt.Equals(r.flow(t, f), after))
			})
		}
	}
}

// Keys are rotated without losing a CNP: each comes to RP before NP signs with it, and goes after
// that.
func TestKeyRotation(t *testing.T) {
	n, dev := newHostNP(t, everyPacket())
	f := someFlow()
	r := newHostRP(t, HostRPOptions{RequireTag: true}, nil, f)
	sent := uint64(0)
	exchange := func() {
		frame := f.tcpData(t, ce, 100)
		for range 3 {
			aWindow()
			dev.receive(t, vnetHeader{}, frame)
			for _, c := range dev.sent(t) {
				r.hearFrame(t, c)
				sent++
			}
		}
		qt.Assert(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": sent}))
	}
	for i := range 4 {
		slot, key := i%2, cnp.Key{byte(i)}
		qt.Assert(t, qt.IsNil(r.Keys().Set(slot, key, KeyAccepted)))
		if i > 0 {
			exchange()
		}
		qt.Assert(t, qt.IsNil(n.Keys().Set(slot, key, KeySigns)))
		qt.Assert(t, qt.IsNil(n.Keys().Set(1-slot, cnp.Key{}, KeyNone)))
		exchange()
		qt.Assert(t, qt.IsNil(r.Keys().Set(1-slot, cnp.Key{}, KeyNone)))
		exchange()
		state, err := r.Keys().State(slot)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(state, KeyAccepted))
	}
	qt.Check(t, qt.IsTrue(sent > 30))

	// A key that RP does not have.
	qt.Assert(t, qt.IsNil(r.Keys().Set(1, cnp.Key{}, KeyNone)))
	aWindow()
	dev.receive(t, vnetHeader{}, f.tcpData(t, ce, 100))
	for _, c := range dev.sent(t) {
		r.hearFrame(t, c)
	}
	qt.Check(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": sent, "no_key": 1}))
	qt.Check(t, qt.ErrorMatches(r.Keys().Set(2, cnp.Key{}, KeyNone),
		"set key 2 .*: want slot 0 or 1, .*"))
}

// A host's reaction point is for PCN's own control.
func TestHostRPNeedsPCN(t *testing.T) {
	_, err := LoadHostRP(&loader.Control{}, HostRPOptions{})
	qt.Check(t, qt.ErrorMatches(err, "rp: congestion control .* has no reaction point"))
}

// There is room for so many prefixes, and who gives more is told.
func TestHostRPTooManyPrefixes(t *testing.T) {
	const room = 16384
	r := newHostRP(t, HostRPOptions{}, nil) // which takes one
	var many []netip.Prefix
	for i := range room {
		addr := netip.AddrFrom4([4]byte{10, byte(i >> 8), byte(i), 0})
		many = append(many, netip.PrefixFrom(addr, 24))
	}
	err := r.Allow(testIfindex, many...)
	qt.Check(t, qt.ErrorMatches(err, "rp: allow CNPs from 10.63.255.0/24 at device 1: there is "+
		"room for 16384 prefixes, of all devices together: .*"))
}
