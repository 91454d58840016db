// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// ibccParams are InfiniBand's, with a step of 2.
func ibccParams() rpibccIbccParams {
	return rpibccIbccParams{LineRateBps: lineRateBps, TimerNs: 20_480, Increase: 2, Limit: 127}
}

// newIBCCRP loads the reaction point of InfiniBand's congestion control with a flow table of its
// own, that holds these flows as they start.
func newIBCCRP(t *testing.T, flows ...flow) *RP {
	t.Helper()
	return newIBCCRPOf(t, false, flows...)
}

func newIBCCRPOf(t *testing.T, tcd bool, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadRpibcc()
	qt.Assert(t, qt.IsNil(err))
	obj, err := load("rp", pruned(spec), map[string]any{rpibccVarParams: ibccParams(),
		rpibccVarTcd: tcd, rpibccVarIdealTime: true}, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	r := &RP{object: obj}
	for _, f := range flows {
		qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &rpibccIbccFlow{})))
	}
	return r
}

// newTIMELYRP loads the reaction point of TIMELY with TCD; a mark is in force for 55 us.
func newTIMELYRP(t *testing.T, flows ...flow) *RP {
	t.Helper()
	nstest.RequireRoot(t)
	spec, err := loadRptimely()
	qt.Assert(t, qt.IsNil(err))
	obj, err := load("rp", pruned(spec), map[string]any{
		rptimelyVarParams: rptimelyTimelyParams{TcdHoldNs: 55_000}, rptimelyVarTcd: true,
		rptimelyVarIdealTime: true,
	}, nil)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { obj.Close() })
	r := &RP{object: obj}
	for _, f := range flows {
		qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Put(f.key(6), &rptimelyTimelyFlow{})))
	}
	return r
}

// hear runs the CNP, which arrives then.
func (r *RP) hear(t *testing.T, c cnp.CNP, nowNs uint64) {
	t.Helper()
	got := r.run(t, here, "rp_ingress", encode(t, c), skBuff{CB: carry(nowNs, false)})
	qt.Assert(t, qt.Equals(got.verdict, tcxDrop))
}

// BECNs raise CCTI of the flow that they name, a UE puts its timer off, and no other flow changes:
// worked out by hand.
func TestIBCCRPObeys(t *testing.T) {
	f, other := someFlow(), flow{src: someFlow().dst, dst: someFlow().src}
	const start = 1_000_000
	for _, tcd := range []bool{false, true} {
		r := newIBCCRPOf(t, tcd, f, other)
		before := r.entry(t, other)
		for i, want := range []struct {
			atNs           uint64
			cnp            cnp.CNP
			ccti           uint32
			timerNs        uint64
			decrease, hold uint64
		}{
			{0, f.cnp(true, 0), 2, 20_480, 1, 0},
			{10_000, f.cnp(true, 7), 4, 20_480, 2, 0},
			{20_480, f.cnp(true, 0), 5, 40_960, 3, 0},
			{40_000, f.hold(), 5, 60_480, 3, 1},
			{60_480, f.hold(), 4, 80_960, 3, 2},
		} {
			if want.hold > 0 && !tcd {
				continue
			}
			r.hear(t, want.cnp, start+want.atNs)
			var v rpibccIbccFlow
			qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Lookup(f.key(6), &v)))
			about := qt.Commentf("CNP %d: %+v", i, v)
			qt.Check(t, qt.Equals(v.Rp.Ccti, want.ccti), about)
			qt.Check(t, qt.Equals(v.Rp.TimerAtNs, start+want.timerNs), about)
			qt.Check(t, qt.Equals(v.Sender.CnpDecrease, want.decrease), about)
			qt.Check(t, qt.Equals(v.Sender.CnpHold, want.hold), about)
			qt.Check(t, qt.DeepEquals(r.counts(t),
				nonZero(t, Counts{"cnp_decrease": want.decrease, "cnp_hold": want.hold}, nil)))
		}
		qt.Check(t, qt.DeepEquals(r.entry(t, other), before))
	}
}

// What a CNP says is in force for its time, each mark for itself.
func TestTIMELYRPObeys(t *testing.T) {
	f := someFlow()
	r := newTIMELYRP(t, f)
	for i, want := range []struct {
		atNs               uint64
		cnp                cnp.CNP
		ueUntil, ceUntilNs uint64
	}{
		{1000, f.cnp(true, 0), 0, 56_000},
		{51_000, f.hold(), 106_000, 56_000},
		{60_000, f.cnp(true, 0), 106_000, 115_000},
		{200_000, f.hold(), 255_000, 115_000},
	} {
		r.hear(t, want.cnp, want.atNs)
		var v rptimelyTimelyFlow
		qt.Assert(t, qt.IsNil(r.coll.Maps[rpMapFlows].Lookup(f.key(6), &v)))
		about := qt.Commentf("CNP %d: %+v", i, v)
		qt.Check(t, qt.Equals(v.Rp.Tcd.UeUntilNs, want.ueUntil), about)
		qt.Check(t, qt.Equals(v.Rp.Tcd.CeUntilNs, want.ceUntilNs), about)
	}
	qt.Check(t, qt.DeepEquals(r.counts(t), Counts{"cnp_decrease": 2, "cnp_hold": 2}))
}

// UE stands beside BECN, in a CNP that says nothing else.
func TestRPRefusesBadUE(t *testing.T) {
	f := someFlow()
	for name, change := range map[string]func(b []byte){
		"and CE":     func(b []byte) { b[offIP+1] |= ce },
		"and FECN":   func(b []byte) { b[offBTH+4] |= 0x80 },
		"no BECN":    func(b []byte) { b[offBTH+4] = 0x20 },
		"other bits": func(b []byte) { b[offBTH+4] |= 1 },
	} {
		t.Run(name, func(t *testing.T) {
			frame := encode(t, f.hold())
			change(frame)
			refuses(t, newTIMELYRP(t, f), f, seal(frame), "malformed")
		})
	}
}
