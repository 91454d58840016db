// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"math/rand/v2"
	"net/netip"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
)

// attack makes frames that no flow may obey, and says what RP is to count for each.
type attack struct {
	t       *testing.T
	rnd     *rand.Rand
	key     cnp.Key
	flows   []flow
	obeyed  [][]byte // one that RP has obeyed, of each flow
	counted Counts
}

// sign signs the CNP with the key that RP has.
func (a *attack) sign(c cnp.CNP, at time.Time) cnp.CNP {
	c.Sign(a.key, 0, at)
	return c
}

// frame returns the next frame, and the counter that RP is to count it with.
func (a *attack) frame() ([]byte, string) {
	i := a.rnd.IntN(len(a.flows))
	f := a.flows[i]
	forged := f.cnp(a.rnd.IntN(2) == 0, a.rnd.Uint32())
	sound := a.sign(forged, time.Now())
	switch a.rnd.IntN(12) {
	case 0:
		return encode(a.t, forged), "unsigned"
	case 1: // a guess
		forged.Tag = sound.Tag
		forged.Tag[4+a.rnd.IntN(4)] ^= byte(1 + a.rnd.IntN(255))
		return encode(a.t, forged), "bad_tag"
	case 2: // another's key
		forged.Sign(cnp.Key{0xbb}, 0, time.Now())
		return encode(a.t, forged), "bad_tag"
	case 3: // a key that was dropped
		forged.Sign(a.key, 1, time.Now())
		return encode(a.t, forged), "no_key"
	case 4: // signed, and then changed
		sound.RecRateMbps++
		return encode(a.t, sound), "bad_tag"
	case 5:
		sound.Decrease = !sound.Decrease
		return encode(a.t, sound), "bad_tag"
	case 6: // kept for later
		age := 2*time.Minute + time.Duration(a.rnd.IntN(3600))*time.Second
		return encode(a.t, a.sign(forged, time.Now().Add(-age))), "stale"
	case 7:
		return a.obeyed[i], "replayed"
	case 8: // from somebody else
		forged.FlowSrcPort++
		return encode(a.t, a.sign(forged, time.Now())), "no_flow"
	case 9: // of a peer in a prefix that is not allowed: such a flow there is too
		outside := a.flows[0]
		outside.dst = outsider
		return encode(a.t, a.sign(outside.cnp(true, 1), time.Now())), "prefix"
	case 10:
		frame := encode(a.t, sound)
		return frame[:len(frame)-1-a.rnd.IntN(20)], "malformed"
	default:
		return a.malformed(encode(a.t, sound)), "malformed"
	}
}

// outsider is a peer whose prefix is not allowed.
var outsider = netip.MustParseAddrPort("192.0.2.1:443")

// malformed changes a field that has one value only, and makes the checksum right.
func (a *attack) malformed(frame []byte) []byte {
	udp := offUDP
	if len(frame) == cnp.FrameLenIPv6 {
		udp += 20
	}
	fixed := []int{udp, udp + 1, udp + 4, udp + 5, udp + 6, udp + 7, udp + 9, udp + 10, udp + 11,
		udp + 12, udp + 13, udp + 16}
	frame[fixed[a.rnd.IntN(len(fixed))]] ^= 1 << a.rnd.IntN(8)
	if udp == offUDP {
		return seal(frame)
	}
	return sealIPv6(frame)
}

// A million malformed, truncated, replayed and forged CNPs change no flow, and each is counted by
// its cause.
func TestHostRPMillionForgedCNPs(t *testing.T) {
	const frames, repeat = 20_000, 50
	a := &attack{t: t, rnd: rand.New(rand.NewPCG(1, 2)), key: cnp.Key{1, 2, 3}}
	for i := range 10 {
		for _, f := range []flow{someFlow(), someFlowIPv6()} {
			f.src = netip.AddrPortFrom(f.src.Addr(), uint16(5000+2*i))
			a.flows = append(a.flows, f)
		}
	}
	outside := a.flows[0]
	outside.dst = outsider
	all := append([]flow{outside}, a.flows...)
	r := newHostRP(t, HostRPOptions{RequireTag: true, Window: time.Minute}, []netip.Prefix{
		netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("2001:db8::/32"),
	}, all...)
	qt.Assert(t, qt.IsNil(r.Keys().Set(0, a.key, KeyAccepted)))
	var before []rpPcnFlow
	for _, f := range a.flows {
		frame := encode(t, a.sign(f.cnp(true, 1000), time.Now()))
		r.hearFrame(t, frame)
		a.obeyed = append(a.obeyed, frame)
	}
	for _, f := range all {
		before = append(before, r.flow(t, f))
	}
	a.counted = r.counts(t)
	qt.Assert(t, qt.DeepEquals(a.counted, Counts{"cnp_decrease": uint64(len(a.flows))}))

	for range frames {
		frame, counter := a.frame()
		// A signal ends the kernel's repetition, and Benchmark starts it again: what was counted
		// until then is of this frame.
		again := func() { a.counted[counter] += r.counts(t).total() - a.counted.total() }
		_, _, err := r.coll.Programs[rpProgRpIngress].Benchmark(frame, repeat, again)
		a.counted[counter] += repeat
		qt.Assert(t, qt.IsNil(err))
	}

	qt.Check(t, qt.DeepEquals(r.counts(t), a.counted))
	for cause, n := range r.counts(t) {
		t.Logf("%s: %d", cause, n)
	}
	for i, f := range all {
		qt.Check(t, qt.Equals(r.flow(t, f), before[i]), qt.Commentf("%s -> %s", f.src, f.dst))
	}
}
