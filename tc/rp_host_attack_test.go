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
	forged := f.cnp(false, 0)
	if a.rnd.IntN(2) == 0 {
		forged = f.cnp(true, 1+a.rnd.Uint32N(1<<31))
	}
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
	case 5: // CE set by somebody on the way
		increase := a.sign(f.cnp(false, 0), time.Now())
		increase.Decrease = true
		return encode(a.t, increase), "bad_tag"
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

// CNPs that RP has obeyed, recorded and sent again a million times in any order, as they are or
// with CE cleared, change no flow: neither while their signature is fresh nor afterwards.
func TestHostRPMillionReplayedCNPs(t *testing.T) {
	window := 2 * time.Second
	for ; replayed(t, window); window *= 2 {
		t.Logf("the machine is busy: CNPs that were to be fresh were %v old", window)
	}
}

// replayed reports whether this process waited for so long that it is to be tried again.
func replayed(t *testing.T, window time.Duration) (again bool) {
	const perFlow, repeat, total = 50, 50, 1_000_000
	rnd, key := rand.New(rand.NewPCG(3, 4)), cnp.Key{1, 2, 3}
	flows := []flow{someFlow(), someFlowIPv6()}
	for i := range 8 {
		f := flows[i%2]
		f.src = netip.AddrPortFrom(f.src.Addr(), uint16(6000+i))
		flows = append(flows, f)
	}
	r := newHostRP(t, HostRPOptions{RequireTag: true, Window: window}, nil, flows...)
	qt.Assert(t, qt.IsNil(r.Keys().Set(0, key, KeyAccepted)))
	var recorded [][]byte
	var newest []cnp.CNP
	began := time.Now()
	for _, f := range flows {
		for i := range perFlow { // the stamp's unit is far below a millisecond
			c := f.cnp(i%2 == 0, uint32(1-i%2)*uint32(1+i))
			c.Sign(key, 0, began.Add(time.Duration(i-perFlow)*time.Millisecond))
			frame := encode(t, c)
			r.hearFrame(t, frame)
			recorded = append(recorded, frame)
			newest = append(newest, c)
		}
	}
	counted := r.counts(t)
	var before []rpPcnFlow
	for _, f := range flows {
		before = append(before, r.flow(t, f))
	}
	replay := func(n int) Counts {
		start := r.counts(t)
		for range n / repeat {
			i := rnd.IntN(len(recorded))
			frame := recorded[i]
			if rnd.IntN(3) == 0 { // CE was cleared, or another DSCP written, on the way
				c := newest[i]
				c.Decrease = false
				frame = encode(t, c)
			}
			_, _, err := r.coll.Programs[rpProgRpIngress].Benchmark(frame, repeat, nil)
			qt.Assert(t, qt.IsNil(err))
		}
		made := r.counts(t)
		for cause := range made {
			made[cause] -= start[cause]
		}
		return made
	}

	fresh := replay(repeat)
	if time.Since(began)+perFlow*time.Millisecond >= window {
		return true
	}
	qt.Assert(t, qt.Equals(counted["cnp_decrease"]+counted["cnp_increase"],
		uint64(len(recorded))), qt.Commentf("%v", counted))
	qt.Assert(t, qt.Equals(fresh["replayed"], fresh.total()))
	fresh = replay(total / 4) // some of the later ones are stale already
	qt.Check(t, qt.Equals(fresh["replayed"]+fresh["stale"], fresh.total()),
		qt.Commentf("%v", fresh))
	time.Sleep(time.Until(began.Add(window + 100*time.Millisecond)))
	old := replay(total - total/4)
	qt.Check(t, qt.Equals(old["stale"], old.total()), qt.Commentf("%v", old))
	t.Logf("fresh: %v, old: %v", fresh, old)
	for i, f := range flows {
		qt.Check(t, qt.Equals(r.flow(t, f), before[i]), qt.Commentf("%s -> %s", f.src, f.dst))
	}
	return false
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
