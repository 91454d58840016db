// SPDX-License-Identifier: Apache-2.0

package loader

import "fmt"

// QCNOptions are the parameters of QCN's reaction point (802.1Qau; bpf/algo/qcn.h).
type QCNOptions struct {
	RecoveryOptions
	Gd                float64 // decrease for each unit of QntzFb, above 0, at most 1
	MinDecreaseFactor float64 // a cut leaves at least this share of the rate, 0 to 1
	DilationShift     uint32
	MaxFlows          uint32 // 0: 65536
}

// RegisterQCN registers congestion control "qcn" (bpf/cc/qcn.bpf.c).
func RegisterQCN(o QCNOptions, options ...Option) (*Control, error) {
	if err := o.check(o.DilationShift); err != nil {
		return nil, fmt.Errorf("qcn: %w", err)
	}
	if !(o.Gd > 0 && o.Gd <= 1 && o.MinDecreaseFactor >= 0 && o.MinDecreaseFactor <= 1) {
		return nil, fmt.Errorf("qcn: Gd %g, minimum decrease factor %g: want 0 < Gd <= 1, 0 <= factor <= 1", o.Gd, o.MinDecreaseFactor)
	}
	spec, err := loadQcn()
	if err != nil {
		return nil, err
	}
	params := struct {
		Recovery              recoveryParams
		Gd, MinDecreaseFactor uint32
	}{o.params(), q24(o.Gd), q24(o.MinDecreaseFactor)}
	return register(spec, definition{
		name: "qcn", params: params, table: qcnTable, maxFlows: o.MaxFlows, shift: o.DilationShift,
		limits: limits{o.MinRateBps, o.LineRateBps},
	}, options)
}
