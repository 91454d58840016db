// SPDX-License-Identifier: Apache-2.0

package loader

import "fmt"

// Half says from when on the timer and the byte counter of QCN's rate increase run twice as fast.
type Half uint32

// The halvings (bpf/algo/recovery.h).
const (
	HalfNever  Half = iota
	HalfActive      // from active increase on, as Prabhakar's slides have it
	HalfHyper       // in hyper increase, as ns3-rdma has it
)

// RecoveryOptions are the parameters of QCN's rate increase, which DCQCN took over (802.1Qau; bpf/algo/recovery.h).
type RecoveryOptions struct {
	LineRateBps      uint64 // rate at which flows start, and never exceed, 1 to MaxRateBps
	MinRateBps       uint64 // floor
	RAIBps, RHAIBps  uint64 // R_AI, R_HAI
	TimerNs          uint64 // a cycle of the timer
	ByteCounterBytes uint64 // a cycle of the byte counter; 0: none
	HyperBytes       uint64 // no hyper increase before so much was sent since the cut
	FastRecovery     uint32 // F: cycles of fast recovery
	Half             Half
	TargetGuard      bool // the first cycle after a deep cut lowers the target
}

func (o RecoveryOptions) check(shift uint32) error {
	if err := checkRate(o.LineRateBps, shift); err != nil {
		return err
	}
	switch {
	case o.MinRateBps == 0 || o.MinRateBps > o.LineRateBps:
		return fmt.Errorf("minimum rate %d bit/s: want 1 bit/s to the line rate, %d bit/s", o.MinRateBps, o.LineRateBps)
	case o.TimerNs == 0:
		return fmt.Errorf("timer 0 ns: want more")
	case o.FastRecovery == 0:
		return fmt.Errorf("no cycle of fast recovery: want 1 or more")
	case o.Half > HalfHyper:
		return fmt.Errorf("halving %d: there is none", o.Half)
	}
	return nil
}

// recoveryParams is struct recovery_params.
type recoveryParams struct {
	LineRateBps, MinRateBps               uint64
	RAIBps, RHAIBps                       uint64
	TimerNs, ByteCounterBytes, HyperBytes uint64
	Threshold, Half, TargetGuard, Pad     uint32
}

func (o RecoveryOptions) params() recoveryParams {
	return recoveryParams{
		LineRateBps: o.LineRateBps, MinRateBps: o.MinRateBps,
		RAIBps: o.RAIBps, RHAIBps: o.RHAIBps,
		TimerNs: o.TimerNs, ByteCounterBytes: o.ByteCounterBytes, HyperBytes: o.HyperBytes,
		Threshold: o.FastRecovery, Half: uint32(o.Half), TargetGuard: boolean(o.TargetGuard),
	}
}

// boolean is a bool as the BPF code has it in its parameters.
func boolean(b bool) uint32 {
	if b {
		return 1
	}
	return 0
}
