// SPDX-License-Identifier: Apache-2.0

package loader

import "fmt"

// TIMELYOptions are the parameters of TIMELY's sender (SIGCOMM 2015, Algorithm 1; bpf/algo/timely.h).
type TIMELYOptions struct {
	LineRateBps, MinRateBps uint64
	DeltaBps                uint64  // additive increment
	TLowNs, THighNs         uint64  // RTTs below and above which the gradient does not count
	MinRTTNs                uint64  // of the network, above 0
	SegmentBytes            uint64  // one update per so many acknowledged bytes; 0: per ACK
	EWMA                    float64 // weight of the newest RTT difference, above 0, at most 1
	Beta                    float64 // above 0, at most 1
	MaxCut                  float64 // largest cut of one update, above 0, at most 1
	HAIAfter, HAIFactor     uint32  // completions with falling RTT before hyper increase (0: never), and its N
	DeltaFactor             bool    // scale additions and T_high's cut by min(dt / minRTT, 1): the authors' snippet
	TCDHoldNs               uint64  // TCD: a mark is in force for so long after its CNP; the control's name is "timely_tcd". 0: no TCD
	DilationShift           uint32
	MaxFlows                uint32 // 0: 65536
}

func (o TIMELYOptions) check() error {
	if err := checkRate(o.LineRateBps, o.DilationShift); err != nil {
		return err
	}
	if o.MinRateBps == 0 || o.MinRateBps > o.LineRateBps {
		return fmt.Errorf("minimum rate %d bit/s: want 1 bit/s to the line rate, %d bit/s", o.MinRateBps, o.LineRateBps)
	}
	if o.MinRTTNs == 0 || o.TLowNs > o.THighNs {
		return fmt.Errorf("minRTT %d ns, T_low %d ns, T_high %d ns: want minRTT > 0, T_low <= T_high", o.MinRTTNs, o.TLowNs, o.THighNs)
	}
	for _, share := range []float64{o.EWMA, o.Beta, o.MaxCut} {
		if !(share > 0 && share <= 1) {
			return fmt.Errorf("ewma %g, beta %g, largest cut %g: want each above 0, at most 1", o.EWMA, o.Beta, o.MaxCut)
		}
	}
	return nil
}

// RegisterTIMELY registers congestion control "timely", or with TCD "timely_tcd" (bpf/cc/timely.bpf.c).
func RegisterTIMELY(o TIMELYOptions, options ...Option) (*Control, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("timely: %w", err)
	}
	spec, err := loadTimely()
	if err != nil {
		return nil, err
	}
	params := struct {
		LineRateBps, MinRateBps, DeltaBps       uint64
		TLowNs, THighNs, MinRTTNs, SegmentBytes uint64
		EWMA, Beta, MaxCut                      uint32
		HAIAfter, HAIFactor, DeltaFactor        uint32
		TCDHoldNs                               uint64
	}{
		o.LineRateBps, o.MinRateBps, o.DeltaBps, o.TLowNs, o.THighNs, o.MinRTTNs, o.SegmentBytes,
		q24(o.EWMA), q24(o.Beta), q24(o.MaxCut), o.HAIAfter, o.HAIFactor, boolean(o.DeltaFactor), o.TCDHoldNs,
	}
	return register(spec, definition{
		name: "timely", tcd: o.TCDHoldNs != 0, params: params, table: timelyTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
		limits: limits{o.MinRateBps, o.LineRateBps},
	}, options)
}
