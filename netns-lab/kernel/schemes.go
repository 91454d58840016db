// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"math"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/netns-lab/experiment"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// The schemes that need more than a sender.
const (
	schemePFC   = "pfc"
	schemePCN   = "pcn"
	schemeDCQCN = "dcqcn"
	schemeQCN   = "qcn"
	schemeLDCP  = "ldcp"
	schemeIBCC  = "ibcc"

	schemeTIMELYTCD = "timely+tcd"
)

// loaders register the congestion control of each scheme of ours; with TCD, that of the scheme that it is made of.
var loaders = map[string]func(f *fabric) (*loader.Control, error){
	schemePFC:   loadLine,
	schemePCN:   loadPCN,
	schemeDCQCN: loadDCQCN,
	schemeQCN:   loadQCN,
	schemeIBCC:  loadIBCC,
	"timely":    loadTIMELY,
	"pcn_dctcp": loadDCTCP,
	schemeLDCP:  loadLDCP,
}

// loadControl registers the scheme's congestion control, and loads what receivers and senders need beside it.
func (f *fabric) loadControl() (err error) {
	if experiment.IsKernelControl(f.scheme) {
		f.control, err = loader.KernelControl(f.scheme)
		return err
	}
	load, ok := loaders[experiment.BaseScheme(f.scheme)]
	if !ok {
		return fmt.Errorf("scheme %q is not known", f.scheme)
	}
	if f.control, err = load(f); err != nil {
		return err
	}
	if f.np, err = f.loadNP(); err != nil {
		return err
	}
	switch base := experiment.BaseScheme(f.scheme); {
	case base == schemePCN || base == schemeDCQCN || base == schemeQCN || base == schemeIBCC || f.scheme == schemeTIMELYTCD:
		f.rp, err = tc.LoadRP(f.control, f.shift())
	case base == schemeLDCP:
		if dropsFirstRTT(f.plan.exp, f.scheme) {
			f.firstRTT, err = tc.LoadFirstRTT(f.control)
		}
	}
	return err
}

// loadNP loads the scheme's notification point; nil if it has none.
func (f *fabric) loadNP() (*tc.NP, error) {
	e := f.plan.exp
	switch base := experiment.BaseScheme(f.scheme); {
	case base == schemePCN && f.feedback() == loader.FeedbackACK:
		return nil, nil // receivers know nothing of PCN
	case base == schemePCN:
		return tc.LoadNP(tc.NPOptions{
			TNs: uint64(e.PCN.T), TJitterNs: uint64(float64(e.PCN.T) * float64(e.PCN.TJitter)),
			CongestedShare: float64(e.PCN.CongestedShare), RateUnitBps: uint32(e.PCN.RateUnit), IdealTime: true, DilationShift: f.shift(),
		})
	case base == schemeDCQCN || f.scheme == schemeTIMELYTCD:
		return f.loadMarkedNP(e.DCQCN.CNPInterval)
	case base == schemeIBCC:
		return f.loadMarkedNP(e.IBCC.BECNInterval)
	default:
		return nil, nil
	}
}

func (f *fabric) loadMarkedNP(interval experiment.Duration) (*tc.NP, error) {
	return tc.LoadMarkedNP(tc.MarkedNPOptions{
		IntervalNs: uint64(interval), TCD: experiment.HasTCD(f.scheme), IdealTime: true, DilationShift: f.shift(),
	})
}

func (f *fabric) shift() uint32 { return uint32(f.plan.exp.Dilation) }

func (f *fabric) lineRateBps() uint64 { return uint64(f.plan.exp.Topology.Rate) }

func loadLine(f *fabric) (*loader.Control, error) {
	return loader.RegisterLine(f.lineRateBps(), f.shift())
}

func loadPCN(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.PCN
	return loader.RegisterPCN(loader.PCNOptions{
		LineRateBps: f.lineRateBps(), MinRateBps: uint64(p.RateUnit), WMin: float64(p.WMin), WMax: float64(p.WMax), DilationShift: f.shift(),
		RateUnitBps: uint32(p.RateUnit),
		Feedback:    f.feedback(), TNs: uint64(p.T), CongestedShare: float64(p.CongestedShare),
	})
}

// feedback is what PCN's senders go by.
func (f *fabric) feedback() loader.Feedback {
	if f.plan.exp.PCN.Feedback == experiment.FeedbackECE {
		return loader.FeedbackACK
	}
	return loader.Feedback(f.plan.exp.PCN.Feedback)
}

func loadDCQCN(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.DCQCN
	return loader.RegisterDCQCN(loader.DCQCNOptions{
		RecoveryOptions: loader.RecoveryOptions{
			LineRateBps: f.lineRateBps(), MinRateBps: uint64(p.MinRate),
			RAIBps: uint64(p.RAI), RHAIBps: uint64(p.RHAI),
			TimerNs: uint64(p.RateTimer), ByteCounterBytes: uint64(p.ByteCounter), FastRecovery: uint32(p.FastRecovery),
		},
		G: float64(p.G), InitialAlpha: float64(p.InitialAlpha), AlphaTimerNs: uint64(p.AlphaTimer),
		DecreaseIntervalNs: uint64(p.DecreaseInterval), ClampTarget: p.ClampTarget, AlphaFirst: p.AlphaFirst,
		TCD: experiment.HasTCD(f.scheme), DilationShift: f.shift(),
	})
}

func loadQCN(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.QCN
	half := loader.HalfActive
	if p.HalfFrom == "hai" {
		half = loader.HalfHyper
	}
	return loader.RegisterQCN(loader.QCNOptions{
		RecoveryOptions: loader.RecoveryOptions{
			LineRateBps: f.lineRateBps(), MinRateBps: uint64(p.MinRate),
			RAIBps: uint64(p.RAI), RHAIBps: uint64(p.RHAI),
			TimerNs: uint64(p.Timer), ByteCounterBytes: uint64(p.ByteCounter),
			HyperBytes:   uint64(p.HAIAfterPackets) * uint64(f.plan.exp.Frame),
			FastRecovery: uint32(p.FastRecovery), Half: half,
		},
		Gd: float64(p.Gd), MinDecreaseFactor: float64(p.MinDecreaseFactor), DilationShift: f.shift(),
	})
}

func loadTIMELY(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.TIMELY
	minRTTNs := uint64(p.MinRTT)
	if minRTTNs == 0 {
		minRTTNs = f.plan.baseRTTNs()
	}
	var tcdHoldNs uint64
	if experiment.HasTCD(f.scheme) {
		tcdHoldNs = uint64(p.TCDHold)
	}
	return loader.RegisterTIMELY(loader.TIMELYOptions{
		LineRateBps: f.lineRateBps(), MinRateBps: uint64(p.MinRate), DeltaBps: uint64(p.Delta),
		TLowNs: uint64(p.TLow), THighNs: uint64(p.THigh), MinRTTNs: minRTTNs, SegmentBytes: uint64(p.Segment),
		EWMA: float64(p.EWMA), Beta: float64(p.Beta), MaxCut: float64(p.MaxCut),
		HAIAfter: uint32(p.HAIAfter), HAIFactor: uint32(p.HAIFactor), DeltaFactor: p.DeltaFactor,
		TCDHoldNs: tcdHoldNs, DilationShift: f.shift(),
	})
}

func loadIBCC(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.IBCC
	return loader.RegisterIBCC(loader.IBCCOptions{
		LineRateBps: f.lineRateBps(), TimerNs: uint64(p.Timer), Increase: uint32(p.Increase), Min: uint32(p.Min),
		CCT: cct(p), TCD: experiment.HasTCD(f.scheme), DilationShift: f.shift(),
	})
}

// cct is the congestion control table: its last entry's delay, and the others' by their distance from 0.
func cct(p experiment.IBCC) []loader.CCTEntry {
	table := make([]loader.CCTEntry, p.Limit+1)
	for i := range table {
		share := math.Pow(float64(i)/float64(p.Limit), float64(p.Exponent))
		table[i] = loader.NewCCTEntry(share * float64(p.Delay))
	}
	return table
}

func loadDCTCP(f *fabric) (*loader.Control, error) {
	p := f.plan.exp.DCTCP
	return loader.RegisterDCTCP(loader.DCTCPOptions{
		G: float64(p.G), InitialAlpha: float64(p.InitialAlpha), DilationShift: f.shift(),
	})
}

func loadLDCP(f *fabric) (*loader.Control, error) {
	e := f.plan.exp
	p, rttNs, frame := e.LDCP, f.plan.baseRTTNs(), uint64(e.Frame)
	return loader.RegisterLDCP(loader.LDCPOptions{
		Alpha: float64(p.Alpha), Beta: float64(p.Beta), Gamma: float64(p.Gamma), Eta: float64(p.Eta),
		LineRateBps: f.lineRateBps(), BaseRTTNs: rttNs,
		InitialWindow: uint32((uint64(p.InitialWindow) + frame - 1) / frame), DilationShift: f.shift(),
	})
}

// setMarker says what the port does about congestion under the scheme.
func setMarker(q *npecn.Port, e *experiment.Experiment, scheme string) {
	m, red := e.MarkingOf(scheme)
	switch {
	case scheme == schemePCN:
		q.Marker = npecn.NPECN
	case experiment.BaseScheme(scheme) == schemeIBCC:
		q.Marker = npecn.FECN
	case scheme == schemeQCN:
		q.Marker = npecn.QCN
		q.QCN = npecn.QCNOptions{
			QeqBytes: uint64(e.QCN.Qeq), W: float64(e.QCN.W),
			SampleBaseBytes: uint64(e.QCN.SampleBase), SampleJitter: float64(e.QCN.SampleJitter),
		}
	case red:
		q.Marker = npecn.RED
		q.RED = npecn.REDOptions{KMinBytes: uint64(m.KMin), KMaxBytes: uint64(m.KMax), PMax: float64(m.PMax)}
	}
	q.LimitBytes = uint64(e.Switch.PortBuffer)
	if dropsFirstRTT(e, scheme) {
		q.WREDBytes = max(uint64(e.LDCP.K), 1)
	}
}

// dropsFirstRTT says whether switches drop packets of LDCP's first round trip: not in a lossless network.
func dropsFirstRTT(e *experiment.Experiment, scheme string) bool {
	return scheme == schemeLDCP && e.LDCP.FastStart == experiment.FirstRTTDrop && !e.PFCOn(scheme)
}

// setDetection says what a switch port detects, and whether it marks by that.
func setDetection(q *npecn.Port, e *experiment.Experiment, scheme string) {
	q.FECN = npecn.FECNOptions{
		ThresholdBytes: uint64(e.FECN.Threshold), PacketBytes: uint32(e.FECN.PacketSize),
		MarkingRate: uint32(e.FECN.MarkingRate), Victims: e.FECN.Victims,
	}
	if !e.Switch.Detectors && !experiment.HasTCD(scheme) {
		return
	}
	q.Detect = npecn.Detection{
		MaxTonNs: uint64(e.MaxTon()), TCD: experiment.HasTCD(scheme), Watch: e.Switch.Detectors,
		ECNBytes: uint64(e.ECNThreshold()), OverBytes: uint64(e.ECNThreshold()),
	}
	if e.Switch.FlowControl == experiment.FlowCBFC {
		q.Detect.OverBytes = uint64(e.FECN.Threshold)
	}
}

// needsECN says whether flows under the scheme are useless without it.
func needsECN(e *experiment.Experiment, scheme string) bool {
	_, red := e.MarkingOf(scheme)
	return red || scheme == schemePCN || scheme == schemePFC || experiment.BaseScheme(scheme) == schemeIBCC
}
