// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"

	"github.com/pcn-linux/pcn/config"
)

// FlowControl is how a lossless network keeps buffers from overflowing.
type FlowControl string

// The flow controls.
const (
	FlowPFC  FlowControl = "pfc"  // IEEE 802.1Qbb
	FlowCBFC FlowControl = "cbfc" // InfiniBand's credits
)

func flowControls() []FlowControl { return []FlowControl{FlowPFC, FlowCBFC} }

// CBFC holds the parameters of credit-based flow control for each ingress port and class.
type CBFC struct {
	// Buffer is the buffer for which a switch grants credits to the port at the other end of a
	// link. Ten frames to 1GB, default 280KB (TCD, section 3.1).
	Buffer Bytes `yaml:"buffer"`
	// Period is Tc, the time between two credit updates. 1us to 10ms, default 20us.
	Period Duration `yaml:"period"`
}

// FECN holds the marking parameters of switches for InfiniBand's congestion control (annex A10):
// schemes ibcc and ibcc+tcd.
type FECN struct {
	// Threshold is the queue above which packets are marked. To 1GB, default 50KB (TCD, section
	// 3.1).
	Threshold Bytes `yaml:"threshold"`
	// PacketSize is Packet_Size: shorter frames are not marked. To 9018B, default 0.
	PacketSize Bytes `yaml:"packet_size"`
	// MarkingRate is Marking_Rate, the mean number of packets between marked ones. To 65535,
	// default 0: all are marked.
	MarkingRate uint `yaml:"marking_rate"`
	// Victims is Victim_Mask: packets that waited for credits are marked too. Default false.
	Victims bool `yaml:"victims"`
}

// TCD holds the parameters of ternary congestion detection (SIGCOMM'21).
type TCD struct {
	// MaxTon is max(T_on): a port that has been ON for longer is no longer undetermined. 1us to
	// 10ms. Default: see [Experiment.MaxTon].
	MaxTon Duration `yaml:"max_ton"`
	// Epsilon is epsilon in the default of MaxTon under PFC: the smallest share of the rate that
	// congestion downstream must take away to count. 0.001 to 1, default 0.05.
	Epsilon Ratio `yaml:"epsilon"`
}

// MaxTon returns max(T_on): the longest time that a port is ON between two OFF periods while a port
// downstream is congested.
//
// A port at rate C sends into a buffer that drains at (1 - epsilon) C. Under PFC it is ON from XON
// to XOFF, and for the time tau, twice the delay of a link, in which the PAUSE and RESUME take
// effect, while the buffer falls further:
//
//	(XOFF - XON + min(XON, (1 - epsilon) C tau)) / (epsilon C) + tau
//
// Under CBFC it sends no more in a period than drained in the one before, so it is ON for at most
// Tc. Both derivations are this project's.
func (e *Experiment) MaxTon() Duration {
	if e.TCD.MaxTon != 0 {
		return e.TCD.MaxTon
	}
	if e.Switch.FlowControl == FlowCBFC {
		return e.Switch.CBFC.Period
	}
	epsilon, bytesPerNs, tauNs := float64(e.TCD.Epsilon), float64(e.Topology.Rate)/8e9,
		2*float64(e.Topology.Delay)
	falls := (1 - epsilon) * bytesPerNs * tauNs
	apart := float64(e.Switch.PFC.XOFF - e.Switch.PFC.XON)
	if d := e.Switch.PFC.Dynamic; d != nil {
		apart = float64(d.XONOffset)
	} else {
		falls = min(falls, float64(e.Switch.PFC.XON))
	}
	return Duration((apart+falls)/(epsilon*bytesPerNs) + tauNs)
}

func (d *decoder) validateDetection(e *Experiment) {
	sw := e.Switch
	if !d.checkKnown("switch.flow_control", "flow control", string(sw.FlowControl),
		toStrings(flowControls())) {
		return
	}
	if sw.FlowControl == FlowCBFC && d.has("switch.pfc.off") && sw.PFC.Off {
		d.fail("switch.pfc.off", "a network with credits is lossless",
			"remove it, or flow_control: cbfc")
	}
	config.InRange(d.Decoder, "switch.cbfc.buffer", sw.CBFC.Buffer, 10*e.Frame, 1e9)
	config.InRange(d.Decoder, "switch.cbfc.period", sw.CBFC.Period, Microsecond, 10*Millisecond)
	config.InRange(d.Decoder, "fecn.threshold", e.FECN.Threshold, 0, 1e9)
	config.InRange(d.Decoder, "fecn.packet_size", e.FECN.PacketSize, 0, 9018)
	config.CountInRange(d.Decoder, "fecn.marking_rate", e.FECN.MarkingRate, 0, 65535)
	config.InRange(d.Decoder, "tcd.epsilon", e.TCD.Epsilon, 0.001, 1)
	if e.TCD.MaxTon != 0 {
		config.InRange(d.Decoder, "tcd.max_ton", e.TCD.MaxTon, Microsecond, 10*Millisecond)
	}
	if sw.Detectors && sw.PortBuffer != 0 {
		d.fail("switch.detectors",
			"detectors are for queues that drop nothing, and there is port_buffer",
			"keep one of them")
	}
	for i, scheme := range e.Schemes {
		if (e.tcdOf(scheme) || sw.Detectors) && !e.PFCOn(scheme) {
			d.fail(fmt.Sprintf("schemes[%d]", i),
				fmt.Sprintf("TCD is for lossless networks, and that of %s is not", scheme),
				"turn switch.pfc on")
		}
	}
}

// Detector names a method that tells by marks whether a port is congested.
type Detector string

// The detectors of a run with [Switch.Detectors].
const (
	DetectTCD Detector = "tcd" // packets that TCD marks CE
	// packets that NP-ECN marks in bins where it marks more than [Experiment.CongestedShare]
	DetectPCN   Detector = "pcn"
	DetectNPECN Detector = "np-ecn" // all packets that NP-ECN marks
	DetectECN   Detector = "ecn"    // ECN by a threshold, [Experiment.ECNThreshold]
	DetectFECN  Detector = "fecn"   // FECN, with its root and victim rule
	// packets that TCD marks UE: these are never wrong, because they claim nothing
	DetectUE Detector = "ue"
)

func detectors() []Detector {
	return []Detector{DetectTCD, DetectPCN, DetectNPECN, DetectECN, DetectFECN, DetectUE}
}
