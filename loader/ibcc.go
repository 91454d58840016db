// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"math"
)

// CCTEntries is how many entries a congestion control table may have (bpf/algo/ibcc.h).
const CCTEntries = 128

// Of an entry of the CCT: the multiplier's bits, and the shifts that there are.
const (
	cctMultiplierBits = 14
	cctMaxShift       = 3
)

// CCTEntry is how long a sender waits after a packet: Multiplier / 2^Shift of the packet's time. 14 and 2 bits.
type CCTEntry struct {
	Multiplier uint16
	Shift      uint8
}

// NewCCTEntry is the entry next to a delay, in packet times, 0 to 16383.
func NewCCTEntry(delay float64) CCTEntry {
	for shift := uint8(cctMaxShift); shift > 0; shift-- {
		if m := math.Round(math.Ldexp(delay, int(shift))); m < 1<<cctMultiplierBits {
			return CCTEntry{uint16(m), shift}
		}
	}
	return CCTEntry{uint16(math.Round(delay)), 0}
}

// Delay is in packet times.
func (e CCTEntry) Delay() float64 { return math.Ldexp(float64(e.Multiplier), -int(e.Shift)) }

// IBCCOptions are the parameters of InfiniBand's congestion control at a sender (annex A10; bpf/algo/ibcc.h).
type IBCCOptions struct {
	LineRateBps   uint64     // 1 to MaxRateBps
	TimerNs       uint64     // CCTI_Timer; InfiniBand counts it in 1.024 us
	Increase      uint32     // CCTI_Increase, above 0
	Min           uint32     // CCTI_Min; the table ends with CCTI_Limit
	CCT           []CCTEntry // delays, which do not get shorter; 1 to CCTEntries
	TCD           bool       // a CNP that says UE holds CCTI; the control's name is "ibcc_tcd"
	DilationShift uint32
	MaxFlows      uint32 // 0: 65536
}

func (o IBCCOptions) check() error {
	if err := checkRate(o.LineRateBps, o.DilationShift); err != nil {
		return err
	}
	if o.TimerNs == 0 || o.Increase == 0 {
		return fmt.Errorf("CCTI_Timer %d ns, CCTI_Increase %d: want more than 0", o.TimerNs, o.Increase)
	}
	if len(o.CCT) < 1 || len(o.CCT) > CCTEntries || o.Increase > CCTEntries || o.Min >= uint32(len(o.CCT)) {
		return fmt.Errorf("%d entries of the CCT, CCTI_Increase %d, CCTI_Min %d: want 1 to %d entries, an increase up to %d, a minimum in the table",
			len(o.CCT), o.Increase, o.Min, CCTEntries, CCTEntries)
	}
	for i, e := range o.CCT {
		if e.Multiplier >= 1<<cctMultiplierBits || e.Shift > cctMaxShift {
			return fmt.Errorf("entry %d of the CCT is %d >> %d: want 14 bits and 2", i, e.Multiplier, e.Shift)
		}
		if i > 0 && e.Delay() < o.CCT[i-1].Delay() {
			return fmt.Errorf("entry %d of the CCT is a shorter delay, %g packet times, than the one before", i, e.Delay())
		}
	}
	return nil
}

// rateBps is what a CCTI leaves of the line rate, as ibcc_rp_rate_bps has it.
func (o IBCCOptions) rateBps(ccti uint32) uint64 {
	e := o.CCT[ccti]
	return (o.LineRateBps << e.Shift) / (1<<e.Shift + uint64(e.Multiplier))
}

// ccti is the least CCTI whose rate is not above this one; the table's last if there is none.
func (o IBCCOptions) ccti(rateBps uint64) uint32 {
	last := uint32(len(o.CCT) - 1)
	for i := o.Min; i < last; i++ {
		if o.rateBps(i) <= rateBps {
			return i
		}
	}
	return last
}

// ibccParams is struct ibcc_params.
type ibccParams struct {
	LineRateBps, TimerNs      uint64
	Increase, Limit, Min, Pad uint32
	CCT                       [CCTEntries]uint16
}

// RegisterIBCC registers congestion control "ibcc", or with TCD "ibcc_tcd" (bpf/cc/ibcc.bpf.c).
func RegisterIBCC(o IBCCOptions, options ...Option) (*Control, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("ibcc: %w", err)
	}
	spec, err := loadIbcc()
	if err != nil {
		return nil, err
	}
	last := uint32(len(o.CCT) - 1)
	params := ibccParams{LineRateBps: o.LineRateBps, TimerNs: o.TimerNs, Increase: o.Increase, Limit: last, Min: o.Min}
	for i, e := range o.CCT {
		params.CCT[i] = uint16(e.Shift)<<cctMultiplierBits | e.Multiplier
	}
	return register(spec, definition{
		name: "ibcc", tcd: o.TCD, params: params, table: o.table(), maxFlows: o.MaxFlows, shift: o.DilationShift,
		limits: limits{o.rateBps(last), o.rateBps(o.Min)},
	}, options)
}

// table of the control's flows. A rate that is set is that of the nearest CCTI below.
func (o IBCCOptions) table() tableOf[ibccIbccFlow] {
	return tableOf[ibccIbccFlow]{
		flow: func(k FlowKey, v *ibccIbccFlow) Flow {
			f := newFlow(k, pcnSender(v.Sender))
			if f.Window != 0 {
				return f
			}
			f.CCTI = v.Rp.Ccti
			f.SendRateBps = o.rateBps(v.Rp.Ccti)
			return f
		},
		setting: func(v *ibccIbccFlow, rateBps uint64) {
			v.Rp.Ccti, v.Rp.TimerAtNs = o.ccti(rateBps), 0
		},
	}
}
