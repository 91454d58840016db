// SPDX-License-Identifier: Apache-2.0

package experiment

// Where the sets of parameters come from. L is the line rate, [Topology.Rate].
//
//	PCN        Cheng et al., Re-architecting Congestion Management in Lossless Ethernet, NSDI 2020
//	DCQCN      Zhu et al., Congestion Control for Large-Scale RDMA Deployments, SIGCOMM 2015
//	TIMELY     Mittal et al., TIMELY: RTT-based Congestion Control for the Datacenter, SIGCOMM 2015
//	snippet    timely-code-snippet.cc, which TIMELY's authors published; PCN's reference 35
//	ns3-rdma   github.com/bobzhuyb/ns3-rdma: mix/config.txt, and branch timely, timely-sender.cc
//	hpcc       github.com/alibaba-edu/High-Precision-Congestion-Control: simulation/run.py --cc dcqcn
//	QCN        IEEE 802.1Qau and IEEE8021-CN-MIB; Prabhakar, QCN: Quantized Congestion Notification (slides)
//	DCTCP      Alizadeh et al., Data Center TCP, SIGCOMM 2010; RFC 8257
//	ibcc       InfiniBand Architecture Specification, volume 1, annex A10; the CCT and the timer of IBM's simulator, github.com/hcyang99/ib_model
//	LDCP       Dai et al., PFC-Free Low Delay Control Protocol, draft-dai-tsvwg-pfc-free-congestion-control-00

// PCN holds the parameters of Photonic Congestion Notification (NSDI'20, section 4).
type PCN struct {
	// T is the period at which a receiver sends CNPs. Default 50us.
	T Duration `yaml:"T"`
	// TJitter makes each window T * (1 +- TJitter), so that flows do not keep their phase. 0 to 0.5, default 0.
	TJitter Ratio `yaml:"T_jitter"`
	// WMin is w_min of Algorithm 1. Above 0, at most WMax, default 1/128.
	WMin Ratio `yaml:"w_min"`
	// WMax is w_max of Algorithm 1. At most 1, default 0.5.
	WMax Ratio `yaml:"w_max"`
	// CongestedShare is the share of marked packets above which a receiver asks for a decrease. 0 to 1, default 0.95.
	CongestedShare Ratio `yaml:"congested_share"`
	// RateUnit is what RecRate counts in CNPs, and the least rate of a flow. 1kbps to 1Mbps, a divisor of 8Gbps, default
	// 1Mbps (Fig. 9).
	RateUnit Rate `yaml:"rate_unit"`
	// Feedback is what senders go by: cnp (default), ack or ece, with which receivers send no CNPs and TCP's AccECN or
	// its ECE (RFC 3168) tells of marks, or auto, ACKs while no CNPs come.
	Feedback string `yaml:"feedback"`
}

// What PCN's senders go by, PCN.Feedback.
const (
	FeedbackCNP  = "cnp"
	FeedbackACK  = "ack"
	FeedbackECE  = "ece"
	FeedbackAuto = "auto"
)

// DCQCN holds the parameters of DCQCN. Defaults are those of sets paper (SIGCOMM'15,
// Fig. 14), ns3-rdma and hpcc, in this order.
type DCQCN struct {
	// Set is where the defaults are from: paper (default), ns3-rdma or hpcc.
	Set string `yaml:"set"`
	// G is g, the weight of the newest sample in alpha. Above 0, at most 1. 1/256 in all sets.
	G Ratio `yaml:"g"`
	// AlphaTimer is K: without a CNP for so long, alpha decays. 1us to 1s. 55us, 55us, 1us.
	AlphaTimer Duration `yaml:"alpha_timer"`
	// RateTimer is the period of the increase timer. 1us to 1s. 55us, 60us, 300us.
	RateTimer Duration `yaml:"rate_timer"`
	// ByteCounter is how many bytes a cycle of the byte counter lasts, 0: the timer alone. To 10GB. 10MB, 300MB, 0.
	ByteCounter Bytes `yaml:"byte_counter"`
	// FastRecovery is F, the cycles of fast recovery. 1 to 100. 5, 5, 1.
	FastRecovery uint `yaml:"fast_recovery"`
	// RAI is R_AI, the step of active increase. 1bps to 800Gbps. 40Mbps, 40Mbps, L/5000.
	RAI Rate `yaml:"rate_ai"`
	// RHAI is R_HAI, the step of hyper increase. 1bps to 800Gbps. 200Mbps, 200Mbps, L/500. The paper names none: ns3-rdma's.
	RHAI Rate `yaml:"rate_hai"`
	// CNPInterval is how far apart CNPs for a flow are at least, 0: one for every marked packet. To 1s. 50us, 50us, 0.
	CNPInterval Duration `yaml:"cnp_interval"`
	// DecreaseInterval is how far apart cuts are at least, 0: every CNP cuts. To 1s. 0, 0, 4us.
	DecreaseInterval Duration `yaml:"decrease_interval"`
	// ClampTarget sets TR = CR at every cut; else only if a cycle has ended since the last cut. true, true, false.
	ClampTarget bool `yaml:"clamp_target"`
	// AlphaFirst updates alpha before the cut, not after it. false, true, false.
	AlphaFirst bool `yaml:"alpha_first"`
	// InitialAlpha is alpha before the first CNP. 0 to 1. 1, 0.5, 1.
	InitialAlpha Ratio `yaml:"initial_alpha"`
	// MinRate is a rate that a flow never goes below. 1kbps to L. 100Mbps, 100Mbps, 1000Mbps, and at most L/10.
	MinRate Rate `yaml:"min_rate"`
	// Marking is that of the switches. 5KB/200KB/0.01, 40KB/1000KB/1, and 100KB/400KB/0.2 for each 25Gbps of L.
	Marking Marking `yaml:"marking"`
}

// TIMELY holds the parameters of TIMELY. Defaults are those of sets snippet, paper
// (SIGCOMM'15) and ns3-rdma, in this order.
type TIMELY struct {
	// Set is where the defaults are from: snippet (default), paper or ns3-rdma.
	Set string `yaml:"set"`
	// EWMA is alpha, the weight of the newest RTT difference. Above 0, at most 1. 0.02, 0.875, 0.875.
	EWMA Ratio `yaml:"ewma"`
	// Beta is the factor of decreases. Above 0, at most 1. 0.8 in all sets.
	Beta Ratio `yaml:"beta"`
	// TLow is the RTT below which the rate always grows. 0 to THigh. 0, 50us, 50us.
	TLow Duration `yaml:"t_low"`
	// THigh is the RTT above which the rate always falls. To 1s. 1ms, 500us, 500us.
	THigh Duration `yaml:"t_high"`
	// MinRTT is what gradients are relative to; 0 is twice the propagation delay of the longest path. To 1s. 0, 20us, 20us.
	MinRTT Duration `yaml:"min_rtt"`
	// Delta is the step of an increase. 1bps to 800Gbps. L/1000, 10Mbps, 10Mbps.
	Delta Rate `yaml:"delta"`
	// HAIAfter is after how many completions with falling RTT hyper increase begins, 0: never. To 1000. 5, 5, 0.
	HAIAfter uint `yaml:"hai_after"`
	// HAIFactor is N, the steps of a hyper increase. 1 to 1000. 5, 5, 1.
	HAIFactor uint `yaml:"hai_factor"`
	// DeltaFactor scales increases and THigh's cut by min(time since the last update / MinRTT, 1). true, false, false.
	DeltaFactor bool `yaml:"delta_factor"`
	// Segment is how many acknowledged bytes make a completion, 0: every ACK does. To 10MB. 0, 64KB, 16KB.
	Segment Bytes `yaml:"segment"`
	// MaxCut is the largest share of the rate that one update takes away. Above 0, at most 1. 0.5, 1, 1.
	MaxCut Ratio `yaml:"max_cut"`
	// MinRate is a rate that a flow never goes below. 1kbps to L. L/1000, L/1000, L/100.
	MinRate Rate `yaml:"min_rate"`
	// TCDHold is how long a mark is in force under timely+tcd. CNPs come at least [DCQCN.CNPInterval] apart. 1us to 1s. 55us in all sets.
	TCDHold Duration `yaml:"tcd_hold"`
}

// QCN holds the parameters of 802.1Qau: of the congestion point (CP), a switch, and of
// the reaction point (RP), a sender. The standard's are for 10Gbps, and scale with L where this is said.
type QCN struct {
	// Qeq is Q_eq, the queue to keep (CP). 1KB to 1GB. Default 26KB, above 10Gbps 26KB * L / 10Gbps (MIB: cpQueueSizeSetPoint).
	Qeq Bytes `yaml:"qeq"`
	// W is w, the weight of the queue's change against its offset (CP). 1/256 to 64, default 2 (MIB: cpFeedbackWeight).
	W Ratio `yaml:"w"`
	// SampleBase is how many bytes are between samples without congestion (CP). 1KB to 1GB, default 150KB (MIB: cpMinSampleBase).
	SampleBase Bytes `yaml:"sample_base"`
	// SampleJitter makes each distance between samples that * (1 +- SampleJitter) (CP). 0 to 0.5, default 0.15 (802.1Qau).
	SampleJitter Ratio `yaml:"sample_jitter"`
	// Timer is the period of the increase timer (RP). 1us to 1s, default 15ms (MIB: rpgTimeReset).
	Timer Duration `yaml:"timer"`
	// ByteCounter is how many bytes a cycle of the byte counter lasts (RP). 1KB to 10GB, default 150KB (MIB: rpgByteReset).
	ByteCounter Bytes `yaml:"byte_counter"`
	// FastRecovery is the cycles of fast recovery (RP). 1 to 100, default 5 (MIB: rpgThreshold).
	FastRecovery uint `yaml:"fast_recovery"`
	// RAI is R_AI, the step of active increase (RP). 1bps to 800Gbps, default 5Mbps * L / 10Gbps (MIB: rpgAiRate).
	RAI Rate `yaml:"rate_ai"`
	// RHAI is R_HAI, the step of hyper increase (RP). 1bps to 800Gbps, default 50Mbps * L / 10Gbps (MIB: rpgHaiRate).
	RHAI Rate `yaml:"rate_hai"`
	// Gd is G_d: a cut takes so much of the rate for each of the 63 steps of feedback (RP). Above 0, at most 1, default 1/128 (MIB: rpgGd).
	Gd Ratio `yaml:"gd"`
	// MinDecreaseFactor is the least share of the rate that a cut leaves (RP). Above 0, at most 1, default 0.5 (MIB: rpgMinDecFac).
	MinDecreaseFactor Ratio `yaml:"min_decrease_factor"`
	// MinRate is a rate that a flow never goes below (RP). 1kbps to L, default 5Mbps, at most L/10 (MIB: rpgMinRate).
	MinRate Rate `yaml:"min_rate"`
	// HAIAfterPackets is how many packets must be sent after a cut before hyper increase (RP). To 1000000, default 500 (slides).
	HAIAfterPackets uint `yaml:"hai_after_packets"`
	// HalfFrom is from when on the timer and the byte counter run twice as fast (RP): "ai", active
	// increase (slides; default), or "hai", hyper increase (ns3-rdma).
	HalfFrom string `yaml:"half_from"`
}

// DCTCP holds the parameters of scheme pcn_dctcp, our DCTCP.
type DCTCP struct {
	// G is g, the weight of the newest window in alpha. A power of 1/2 from 1/1024 to 1, default 1/16 (RFC 8257).
	G Ratio `yaml:"g"`
	// InitialAlpha is alpha before the first window. 0 to 1, default 1 (RFC 8257).
	InitialAlpha Ratio `yaml:"initial_alpha"`
	// Marking is that of the switches, also for every congestion control of Linux. Default 30KB * L / 10Gbps
	// for both, and 1: a threshold, as in the paper.
	Marking Marking `yaml:"marking"`
}

// IBCC holds the parameters of InfiniBand's congestion control at the hosts; those of the switches are [FECN].
type IBCC struct {
	// Increase is CCTI_Increase: by so much a BECN raises CCTI. 1 to 127, default 1.
	Increase uint `yaml:"ccti_increase"`
	// Limit is CCTI_Limit, the last entry of the congestion control table (CCT). 1 to 127, default 127.
	Limit uint `yaml:"ccti_limit"`
	// Min is CCTI_Min. 0 to Limit, default 0.
	Min uint `yaml:"ccti_min"`
	// Timer is CCTI_Timer: each time it ends CCTI falls by 1. InfiniBand counts it in 1.024us. 1us to 1s, default 20us.
	Timer Duration `yaml:"ccti_timer"`
	// Delay is that of the CCT's last entry, in packet times: the line rate is divided by it and 1. Above 0, to 16383, default 15.
	Delay Ratio `yaml:"cct_delay"`
	// Exponent makes entry i a delay of Delay * (i / Limit)^Exponent. 1 to 4, default 2.
	Exponent uint `yaml:"cct_exponent"`
	// BECNInterval is how far apart BECNs for a flow are at least, 0: one for every marked packet. To 1s, default 0.
	BECNInterval Duration `yaml:"becn_interval"`
}

// What switches do about LDCP's packets of the first round trip.
const (
	FirstRTTDrop = "drop" // they are not ECN-capable, and are dropped from K on
	FirstRTTECT  = "ect"  // they are ECN-capable, and are marked like all others
)

// How an LDCP receiver tells of marks.
const (
	FeedbackEcho   = "echo"   // each packet's mark, in its ACK
	FeedbackAccECN = "accecn" // a counter of marks, in each ACK
)

// LDCP holds the parameters of LDCP. The draft leaves most of them open; alpha, beta, gamma and eta are those of
// Huawei's RoCE driver.
type LDCP struct {
	// Alpha is the increase of the window in a round trip without marks, in packets. Above 0, at most 1, default 1.
	Alpha Ratio `yaml:"alpha"`
	// Beta is the decrease of the window for each marked packet, in packets. Above 0, at most 1, default 0.5.
	Beta Ratio `yaml:"beta"`
	// Gamma is the increase of a window below one packet, and its minimum. Above 0, at most 1, default 0.25.
	Gamma Ratio `yaml:"gamma"`
	// Eta is the factor of decreases of a window below one packet. Above 0, below 1, default 0.5.
	Eta Ratio `yaml:"eta"`
	// InitialWindow is IW, in bytes of frames; 0 is line rate x base RTT of the flow's path. To 100MB, default 0.
	InitialWindow Bytes `yaml:"initial_window"`
	// FastStart is what switches do about packets of the first round trip: "drop", they are not ECN-capable, and
	// are dropped from K on (default), or "ect", they are ECN-capable, and are marked like all others.
	FastStart string `yaml:"first_rtt"`
	// K is the queue from which on switches drop packets that are not ECN-capable (WRED). To 1GB, default one and a half KMin of the marking.
	K Bytes `yaml:"wred_k"`
	// DelayedAck is m: a receiver acknowledges every m-th packet that is not marked. 1 or 2, which is what Linux can do; default 1.
	DelayedAck uint `yaml:"ack_every"`
	// Feedback is how receivers tell of marks: "echo", as RFC 8257 has it (default), or "accecn", Accurate ECN.
	Feedback string `yaml:"feedback"`
	// Marking is that of the switches. Default 5KB and 20KB * L / 10Gbps, and 1: a ramp, by which flows do not keep their phase.
	Marking Marking `yaml:"marking"`
}

// dcqcnSets are the sets of parameters for DCQCN, for a line rate.
var dcqcnSets = map[string]func(Rate) DCQCN{
	"paper": func(line Rate) DCQCN {
		return DCQCN{
			Set:          "paper",
			G:            1.0 / 256,
			AlphaTimer:   55 * Microsecond,
			RateTimer:    55 * Microsecond,
			ByteCounter:  10e6,
			FastRecovery: 5,
			RAI:          40e6,
			RHAI:         200e6,
			CNPInterval:  50 * Microsecond,
			ClampTarget:  true,
			InitialAlpha: 1,
			MinRate:      min(100e6, line/10),
			Marking:      Marking{KMin: 5e3, KMax: 200e3, PMax: 0.01},
		}
	},
	"ns3-rdma": func(line Rate) DCQCN {
		return DCQCN{
			Set:          "ns3-rdma",
			G:            1.0 / 256,
			AlphaTimer:   55 * Microsecond,
			RateTimer:    60 * Microsecond,
			ByteCounter:  300e6,
			FastRecovery: 5,
			RAI:          40e6,
			RHAI:         200e6,
			CNPInterval:  50 * Microsecond,
			ClampTarget:  true,
			AlphaFirst:   true,
			InitialAlpha: 0.5,
			MinRate:      min(100e6, line/10),
			Marking:      Marking{KMin: 40e3, KMax: 1000e3, PMax: 1},
		}
	},
	"hpcc": func(line Rate) DCQCN {
		return DCQCN{
			Set:              "hpcc",
			G:                1.0 / 256,
			AlphaTimer:       Microsecond,
			RateTimer:        300 * Microsecond,
			FastRecovery:     1,
			RAI:              line / 5000,
			RHAI:             line / 500,
			DecreaseInterval: 4 * Microsecond,
			InitialAlpha:     1,
			MinRate:          min(1000e6, line/10),
			Marking:          Marking{KMin: 100e3 * Bytes(line) / 25e9, KMax: 400e3 * Bytes(line) / 25e9, PMax: 0.2},
		}
	},
}

// timelySets are the sets of parameters for TIMELY, for a line rate.
var timelySets = map[string]func(Rate) TIMELY{
	"snippet": func(line Rate) TIMELY {
		return TIMELY{
			Set:         "snippet",
			EWMA:        0.02,
			Beta:        0.8,
			THigh:       Millisecond,
			Delta:       line / 1000,
			HAIAfter:    5,
			HAIFactor:   5,
			DeltaFactor: true,
			MaxCut:      0.5,
			MinRate:     line / 1000,
			TCDHold:     55 * Microsecond,
		}
	},
	"paper": func(line Rate) TIMELY {
		return TIMELY{
			Set:       "paper",
			EWMA:      0.875,
			Beta:      0.8,
			TLow:      50 * Microsecond,
			THigh:     500 * Microsecond,
			MinRTT:    20 * Microsecond,
			Delta:     10e6,
			HAIAfter:  5,
			HAIFactor: 5,
			Segment:   64e3,
			MaxCut:    1,
			MinRate:   line / 1000,
			TCDHold:   55 * Microsecond,
		}
	},
	"ns3-rdma": func(line Rate) TIMELY {
		return TIMELY{
			Set:       "ns3-rdma",
			EWMA:      0.875,
			Beta:      0.8,
			TLow:      50 * Microsecond,
			THigh:     500 * Microsecond,
			MinRTT:    20 * Microsecond,
			Delta:     10e6,
			HAIFactor: 1,
			Segment:   16000,
			MaxCut:    1,
			MinRate:   line / 100,
			TCDHold:   55 * Microsecond,
		}
	},
}

func qcnDefaults(line Rate) QCN {
	return QCN{
		Qeq:               26000 * Bytes(max(line, 10e9)) / 10e9,
		W:                 2,
		SampleBase:        150e3,
		SampleJitter:      0.15,
		Timer:             15 * Millisecond,
		ByteCounter:       150e3,
		FastRecovery:      5,
		RAI:               line / 2000,
		RHAI:              line / 200,
		Gd:                1.0 / 128,
		MinDecreaseFactor: 0.5,
		MinRate:           min(5e6, line/10),
		HAIAfterPackets:   500,
		HalfFrom:          "ai",
	}
}

func dctcpDefaults(line Rate) DCTCP {
	return DCTCP{G: 1.0 / 16, InitialAlpha: 1, Marking: stepMarking(line)}
}

func ldcpDefaults(line Rate) LDCP {
	return LDCP{Alpha: 1, Beta: 0.5, Gamma: 0.25, Eta: 0.5, FastStart: FirstRTTDrop, DelayedAck: 1, Feedback: FeedbackEcho, Marking: rampMarking(line)}
}

func ibccDefaults() IBCC {
	return IBCC{Increase: 1, Limit: 127, Timer: 20 * Microsecond, Delay: 15, Exponent: 2}
}

// rampMarking marks more the longer the queue.
func rampMarking(line Rate) Marking {
	threshold := 20e3 * Bytes(line) / 10e9
	return Marking{KMin: threshold / 4, KMax: threshold, PMax: 1}
}

// stepMarking marks everything above one threshold.
func stepMarking(line Rate) Marking {
	threshold := 30e3 * Bytes(line) / 10e9
	return Marking{KMin: threshold, KMax: threshold, PMax: 1}
}
