// SPDX-License-Identifier: Apache-2.0

package loader

import "fmt"

// DCQCNOptions are the parameters of DCQCN's reaction point (SIGCOMM 2015, sec. 3.1; bpf/algo/dcqcn.h).
type DCQCNOptions struct {
	RecoveryOptions
	G                  float64 // above 0, at most 1
	InitialAlpha       float64 // 0 to 1
	AlphaTimerNs       uint64  // K
	DecreaseIntervalNs uint64  // cuts are at least so far apart; 0: every CNP cuts
	ClampTarget        bool    // TR = CR at every cut; else only after a cycle of recovery
	AlphaFirst         bool    // alpha is updated before the cut
	TCD                bool    // a CNP that says UE holds the rate; the control's name is "dcqcn_tcd"
	DilationShift      uint32
	MaxFlows           uint32 // 0: 65536
}

// RegisterDCQCN registers congestion control "dcqcn", or with TCD "dcqcn_tcd" (bpf/cc/dcqcn.bpf.c).
func RegisterDCQCN(o DCQCNOptions, options ...Option) (*Control, error) {
	if err := o.check(o.DilationShift); err != nil {
		return nil, fmt.Errorf("dcqcn: %w", err)
	}
	if !(o.G > 0 && o.G <= 1 && o.InitialAlpha >= 0 && o.InitialAlpha <= 1) || o.AlphaTimerNs == 0 {
		return nil, fmt.Errorf("dcqcn: g %g, initial alpha %g, alpha timer %d ns: want 0 < g <= 1, 0 <= alpha <= 1, a timer", o.G, o.InitialAlpha, o.AlphaTimerNs)
	}
	spec, err := loadDcqcn()
	if err != nil {
		return nil, err
	}
	params := struct {
		Recovery                                 recoveryParams
		AlphaTimerNs, DecreaseIntervalNs         uint64
		G, InitialAlpha, ClampTarget, AlphaFirst uint32
	}{o.params(), o.AlphaTimerNs, o.DecreaseIntervalNs, q24(o.G), q24(o.InitialAlpha), boolean(o.ClampTarget), boolean(o.AlphaFirst)}
	return register(spec, definition{
		name: "dcqcn", tcd: o.TCD, params: params, table: dcqcnTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
		limits: limits{o.MinRateBps, o.LineRateBps},
	}, options)
}
