// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// Bounds of the algorithms' parameters.
const (
	minFraction = Ratio(1.0 / 65536) // stands for "above 0"
	maxTimer    = Second
	minFlowRate = Rate(1e3)
	minQueue    = Bytes(1e3) // about a packet
	maxStages   = 100
	maxCCTI     = 127
	maxCCTDelay = Ratio(1<<14 - 1) // 14 bits of multiplier
)

func (d *decoder) validateSchemes(e *Experiment) {
	if len(e.Schemes) == 0 {
		d.fail("schemes", "\"schemes\" is missing", suggest("", schemes))
	}
	d.allKnown("schemes", "scheme", e.Schemes, slices.Concat(schemes, kernelControls))
	d.unique("schemes", "scheme", e.Schemes)
}

// validateAlgorithms checks the parameters of every scheme, whether it is run or not.
func (d *decoder) validateAlgorithms(e *Experiment) {
	line := e.Topology.Rate
	if line < minRate || line > maxRate {
		return // already refused, and with it what follows from it
	}
	if e.Marking != nil {
		for _, key := range []string{"kmin", "kmax", "pmax"} {
			d.required("marking.", key)
		}
		d.validateMarking("marking.", *e.Marking)
	}
	d.validatePCN(e.PCN)
	d.validateDCQCN(e.DCQCN, line)
	d.validateTIMELY(e.TIMELY, line)
	d.validateQCN(e.QCN, line)
	d.validateDCTCP(e.DCTCP)
	d.validateLDCP(e.LDCP)
	d.validateIBCC(e.IBCC)
}

func (d *decoder) validateMarking(path string, m Marking) {
	config.InRange(d.Decoder, path+"kmax", m.KMax, 1, 1e9)
	if m.KMin > m.KMax {
		d.fail(path+"kmin", fmt.Sprintf("kmin %s is above kmax %s", m.KMin, m.KMax), "")
	}
	config.InRange(d.Decoder, path+"pmax", m.PMax, minFraction, 1)
}

func (d *decoder) validatePCN(p PCN) {
	config.InRange(d.Decoder, "pcn.T", p.T, Microsecond, 100*Millisecond)
	config.InRange(d.Decoder, "pcn.T_jitter", p.TJitter, 0, 0.5)
	config.InRange(d.Decoder, "pcn.w_min", p.WMin, minFraction, 1)
	config.InRange(d.Decoder, "pcn.w_max", p.WMax, p.WMin, 1)
	config.InRange(d.Decoder, "pcn.congested_share", p.CongestedShare, 0, 1)
	if config.InRange(d.Decoder, "pcn.rate_unit", p.RateUnit, 1000, 1_000_000); p.RateUnit > 0 && 8_000_000_000%p.RateUnit != 0 {
		d.fail("pcn.rate_unit", fmt.Sprintf("%s does not divide 8Gbps", p.RateUnit), "1kbps, 10kbps, 100kbps or 1Mbps do")
	}
	d.known("pcn.feedback", "feedback", p.Feedback, []string{FeedbackCNP, FeedbackACK, FeedbackECE, FeedbackAuto})
}

func (d *decoder) validateDCQCN(p DCQCN, line Rate) {
	d.known("dcqcn.set", "set of parameters", p.Set, slices.Sorted(maps.Keys(dcqcnSets)))
	config.InRange(d.Decoder, "dcqcn.g", p.G, minFraction, 1)
	config.InRange(d.Decoder, "dcqcn.alpha_timer", p.AlphaTimer, Microsecond, maxTimer)
	config.InRange(d.Decoder, "dcqcn.rate_timer", p.RateTimer, Microsecond, maxTimer)
	config.InRange(d.Decoder, "dcqcn.byte_counter", p.ByteCounter, 0, 10e9)
	config.CountInRange(d.Decoder, "dcqcn.fast_recovery", p.FastRecovery, 1, maxStages)
	config.InRange(d.Decoder, "dcqcn.rate_ai", p.RAI, 1, maxRate)
	config.InRange(d.Decoder, "dcqcn.rate_hai", p.RHAI, 1, maxRate)
	config.InRange(d.Decoder, "dcqcn.cnp_interval", p.CNPInterval, 0, maxTimer)
	config.InRange(d.Decoder, "dcqcn.decrease_interval", p.DecreaseInterval, 0, maxTimer)
	config.InRange(d.Decoder, "dcqcn.initial_alpha", p.InitialAlpha, 0, 1)
	config.InRange(d.Decoder, "dcqcn.min_rate", p.MinRate, minFlowRate, line)
	d.validateMarking("dcqcn.marking.", p.Marking)
}

func (d *decoder) validateTIMELY(p TIMELY, line Rate) {
	d.known("timely.set", "set of parameters", p.Set, slices.Sorted(maps.Keys(timelySets)))
	config.InRange(d.Decoder, "timely.ewma", p.EWMA, minFraction, 1)
	config.InRange(d.Decoder, "timely.beta", p.Beta, minFraction, 1)
	config.InRange(d.Decoder, "timely.t_low", p.TLow, 0, maxTimer)
	config.InRange(d.Decoder, "timely.t_high", p.THigh, Microsecond, maxTimer)
	if p.TLow > p.THigh {
		d.fail("timely.t_low", fmt.Sprintf("t_low %s is above t_high %s", p.TLow, p.THigh), "")
	}
	config.InRange(d.Decoder, "timely.min_rtt", p.MinRTT, 0, maxTimer)
	config.InRange(d.Decoder, "timely.delta", p.Delta, 1, maxRate)
	config.CountInRange(d.Decoder, "timely.hai_after", p.HAIAfter, 0, 1000)
	config.CountInRange(d.Decoder, "timely.hai_factor", p.HAIFactor, 1, 1000)
	config.InRange(d.Decoder, "timely.segment", p.Segment, 0, 10e6)
	config.InRange(d.Decoder, "timely.max_cut", p.MaxCut, minFraction, 1)
	config.InRange(d.Decoder, "timely.min_rate", p.MinRate, minFlowRate, line)
	config.InRange(d.Decoder, "timely.tcd_hold", p.TCDHold, Microsecond, maxTimer)
}

func (d *decoder) validateQCN(p QCN, line Rate) {
	config.InRange(d.Decoder, "qcn.qeq", p.Qeq, minQueue, 1e9)
	config.InRange(d.Decoder, "qcn.w", p.W, 1.0/256, 64)
	config.InRange(d.Decoder, "qcn.sample_base", p.SampleBase, minQueue, 1e9)
	config.InRange(d.Decoder, "qcn.sample_jitter", p.SampleJitter, 0, 0.5)
	config.InRange(d.Decoder, "qcn.timer", p.Timer, Microsecond, maxTimer)
	config.InRange(d.Decoder, "qcn.byte_counter", p.ByteCounter, minQueue, 10e9)
	config.CountInRange(d.Decoder, "qcn.fast_recovery", p.FastRecovery, 1, maxStages)
	config.InRange(d.Decoder, "qcn.rate_ai", p.RAI, 1, maxRate)
	config.InRange(d.Decoder, "qcn.rate_hai", p.RHAI, 1, maxRate)
	config.InRange(d.Decoder, "qcn.gd", p.Gd, minFraction, 1)
	config.InRange(d.Decoder, "qcn.min_decrease_factor", p.MinDecreaseFactor, minFraction, 1)
	config.InRange(d.Decoder, "qcn.min_rate", p.MinRate, minFlowRate, line)
	config.CountInRange(d.Decoder, "qcn.hai_after_packets", p.HAIAfterPackets, 0, 1e6)
	d.known("qcn.half_from", "increase", p.HalfFrom, []string{"ai", "hai"})
}

func (d *decoder) validateDCTCP(p DCTCP) {
	config.InRange(d.Decoder, "dctcp.g", p.G, 1.0/1024, 1)
	if fraction, _ := math.Frexp(float64(p.G)); p.G > 0 && fraction != 0.5 {
		d.fail("dctcp.g", fmt.Sprintf("%s is not a power of 1/2", p.G), "write 1/16")
	}
	config.InRange(d.Decoder, "dctcp.initial_alpha", p.InitialAlpha, 0, 1)
	d.validateMarking("dctcp.marking.", p.Marking)
}

func (d *decoder) validateIBCC(p IBCC) {
	config.CountInRange(d.Decoder, "ibcc.ccti_limit", p.Limit, 1, maxCCTI)
	config.CountInRange(d.Decoder, "ibcc.ccti_increase", p.Increase, 1, maxCCTI)
	config.CountInRange(d.Decoder, "ibcc.ccti_min", p.Min, 0, p.Limit)
	config.InRange(d.Decoder, "ibcc.ccti_timer", p.Timer, Microsecond, maxTimer)
	config.InRange(d.Decoder, "ibcc.cct_delay", p.Delay, minFraction, maxCCTDelay)
	config.CountInRange(d.Decoder, "ibcc.cct_exponent", p.Exponent, 1, 4)
	config.InRange(d.Decoder, "ibcc.becn_interval", p.BECNInterval, 0, maxTimer)
}

func (d *decoder) validateLDCP(p LDCP) {
	config.InRange(d.Decoder, "ldcp.alpha", p.Alpha, minFraction, 1)
	config.InRange(d.Decoder, "ldcp.beta", p.Beta, minFraction, 1)
	config.InRange(d.Decoder, "ldcp.gamma", p.Gamma, minFraction, 1)
	config.InRange(d.Decoder, "ldcp.eta", p.Eta, minFraction, 1-minFraction)
	config.InRange(d.Decoder, "ldcp.initial_window", p.InitialWindow, 0, 100e6)
	d.known("ldcp.first_rtt", "way to start", p.FastStart, []string{FirstRTTDrop, FirstRTTECT})
	config.InRange(d.Decoder, "ldcp.wred_k", p.K, 0, 1e9)
	d.known("ldcp.feedback", "feedback", p.Feedback, []string{FeedbackEcho, FeedbackAccECN})
	config.CountInRange(d.Decoder, "ldcp.ack_every", p.DelayedAck, 1, 2)
	d.validateMarking("ldcp.marking.", p.Marking)
}
