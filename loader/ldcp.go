// SPDX-License-Identifier: Apache-2.0

package loader

import "fmt"

// maxLDCPWindow is the largest initial window, in packets (bpf/algo/ldcp.h).
const maxLDCPWindow = 1 << 20

// LDCPOptions are the parameters of LDCP (draft-dai-tsvwg-pfc-free-congestion-control-00; bpf/algo/ldcp.h).
type LDCPOptions struct {
	Alpha, Beta float64 // increase a round trip, and cut a mark, in packets: above 0, at most 1
	Gamma       float64 // least window, and the increase below one packet: above 0, at most 1
	Eta         float64 // cut below one packet: above 0, below 1
	LineRateBps uint64  // the BDP's rate, 1 to MaxRateBps
	// BaseRTTNs is the BDP's round trip to hosts that no flow has gone to, 1 us to 1 s; else the smallest measured counts.
	BaseRTTNs     uint64
	InitialWindow uint32 // packets; 0: the BDP
	DilationShift uint32
	MaxFlows      uint32 // 0: 65536
}

func (o LDCPOptions) check() error {
	if err := checkRate(o.LineRateBps, o.DilationShift); err != nil {
		return err
	}
	for _, share := range []float64{o.Alpha, o.Beta, o.Gamma} {
		if !(q24Fits(share) && share <= 1) {
			return fmt.Errorf("alpha %g, beta %g, gamma %g: want each above 0, at most 1", o.Alpha, o.Beta, o.Gamma)
		}
	}
	if !(q24Fits(o.Eta) && o.Eta < 1) {
		return fmt.Errorf("eta %g: want above 0, below 1", o.Eta)
	}
	if o.BaseRTTNs < 1e3 || o.BaseRTTNs > 1e9 {
		return fmt.Errorf("base RTT %d ns: want 1 us to 1 s", o.BaseRTTNs)
	}
	if o.InitialWindow > maxLDCPWindow {
		return fmt.Errorf("initial window of %d packets: want at most %d", o.InitialWindow, maxLDCPWindow)
	}
	return nil
}

// q24Fits says whether the fraction is above 0 for the BPF code too.
func q24Fits(f float64) bool { return f > 0 && q24(f) > 0 }

// RegisterLDCP registers congestion control "ldcp" (bpf/cc/ldcp.bpf.c). Receivers must run it too: they echo each mark.
// Packets of the first round trip are as ECN-capable as others unless tc.FirstRTT runs on the sender.
func RegisterLDCP(o LDCPOptions, options ...Option) (*Control, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("ldcp: %w", err)
	}
	spec, err := loadLdcp()
	if err != nil {
		return nil, err
	}
	params := struct{ Alpha, Beta, Gamma, Eta uint32 }{q24(o.Alpha), q24(o.Beta), q24(o.Gamma), q24(o.Eta)}
	return register(spec, definition{
		name: "ldcp", params: params, table: ldcpTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
		vars: map[string]any{
			ldcpVarLineRateBps: o.LineRateBps, ldcpVarBaseRttNs: o.BaseRTTNs, ldcpVarInitialWindow: o.InitialWindow,
		},
	}, options)
}
