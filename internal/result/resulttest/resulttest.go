// SPDX-License-Identifier: Apache-2.0

// Package resulttest makes up runs for tests. They look like Fig. 2 of PCN
// (NSDI'20), but no kernel ran them: the curves are drawn by formula. Tests need
// them to be of the right shape and to add up, not to be true.
package resulttest

import (
	"fmt"
	"math"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/result"
)

// The made-up course of events, in ns after t = 0.
const (
	us         = int64(1000)
	ms         = 1000 * us
	burstEndNs = 3*ms - 100*us

	pfcPauseFromNs  = 250 * us // S1 pauses S0 from here
	hostPauseFromNs = 400 * us // S0 pauses its hosts from here
	pfcPauseToNs    = 3*ms + 200*us
	pcnPauseFromNs  = 80 * us
	pcnPauseToNs    = 900 * us
)

// Small is an experiment with which [Fig2] can be made up, to add keys to.
const Small = `
name: small
title: Two flows and a burst
topology: {kind: fig1, burst_hosts: 3}
schemes: [pfc, pcn]
duration: 15ms
flows:
  - {name: F0, from: H0, to: R0}
  - {name: F1, from: H1, to: R1}
bursts:
  - {name: burst, from: H2..H4, to: R1, size: 64KB}
`

// Fig2 returns a made-up run of the experiment or of its case, which must be of topology fig1 with
// flows F0 and F1. Every scheme but pcn behaves as pfc, and takes its time to recover.
func Fig2(e *experiment.Experiment, scheme string) *result.Run {
	r := &result.Run{
		Manifest: result.Manifest{
			Tool:             "synthetic",
			Experiment:       e.Name,
			Case:             e.CaseName,
			ExperimentSHA256: e.Hash(),
			Scheme:           scheme,
			Seed:             e.Seed,
			DilationShift:    e.Dilation.Shift,
			DurationNs:       int64(e.Duration),
			WarmupNs:         int64(e.Warmup),
			SampleNs:         int64(e.Sample),
			BaseRTTNs:        30 * us,
			Kernel:           "no kernel",
			QEMU:             "no QEMU",
			Deterministic:    true,
			GuestCPUBusy:     0.8125,
			LatenessP50Ns:    20,
			LatenessP99Ns:    90,
			LatenessMaxNs:    260,
			LostPackets:      map[string]uint64{"tcp retransmissions": 0},
			Verdict:          result.Valid,
			Reasons:          []string{},
			Wall:             result.Wall{TotalS: 56, BootS: 4, Host: "nowhere"},
		},
		Experiment: e.Source(),
		PFC:        pfcEvents(scheme),

		PauseRepeats: repeats(pfcEvents(scheme), int64(e.Sample)),
	}
	addSeries(r, scheme)
	addFlows(r, e)
	addPorts(r, e)
	return r
}

// pfcEvents returns PAUSE and RESUME frames that come and go.
func pfcEvents(scheme string) []result.PFCEvent {
	if scheme == "pcn" {
		return toggles("S1", "S0", pcnPauseFromNs, pcnPauseToNs, 20*us, 12*us)
	}
	var events []result.PFCEvent
	events = append(events, toggles("S1", "S0", pfcPauseFromNs, pfcPauseToNs, 14*us, 12*us)...)
	events = append(events, toggles("S0", "H0", hostPauseFromNs, pfcPauseToNs, 26*us, 23*us)...)
	events = append(events, toggles("S0", "H1", hostPauseFromNs, pfcPauseToNs, 28*us, 25*us)...)
	return events
}

// toggles returns a PAUSE each period, followed by a RESUME, which take effect from
// fromNs to toNs.
func toggles(from, to string, fromNs, toNs, periodNs, pausedNs int64) []result.PFCEvent {
	const delayNs = 5 * us
	var events []result.PFCEvent
	for at := fromNs; at < toNs; at += periodNs {
		end := min(at+pausedNs, toNs)
		events = append(events,
			result.PFCEvent{SentNs: at - delayNs, EffectNs: at, From: from, To: to, Class: 3,
				Kind: result.Pause},
			result.PFCEvent{SentNs: end - delayNs, EffectNs: end, From: from, To: to, Class: 3,
				Kind: result.Resume},
		)
	}
	return events
}

// repeatsOfPause is how many frames each PAUSE is, of switches that repeat them.
const repeatsOfPause = 8

// repeats are the frames of PAUSE, all in the bin in which it is sent.
func repeats(events []result.PFCEvent, binNs int64) []result.PauseRepeats {
	var rows []result.PauseRepeats
	for _, e := range events {
		if e.Kind == result.Pause {
			rows = append(rows, result.PauseRepeats{TimeNs: e.SentNs / binNs * binNs, From: e.From,
				To: e.To, Class: e.Class, Frames: repeatsOfPause})
		}
	}
	return rows
}

// lossMs is until when F0 and F1 are slow; 3.3 for schemes that are not named.
var lossMs = map[string]float64{"qcn": 6.4, "dcqcn": 9, "timely": 30}

// rates returns the rates of F0 and F1 at a time, in bit/s.
func rates(scheme string, tNs int64) (f0, f1 float64) {
	ripple := 1 + 0.02*math.Sin(float64(tNs)/float64(130*us))
	t := float64(tNs) / float64(ms)
	until, slow := lossMs[scheme]
	if !slow {
		until = 3.3
	}
	switch {
	case t < 0.2:
		return 20e9, 20e9
	case scheme != "pcn" && t < until:
		return 2.6e9 * ripple * ripple, 2.4e9 * ripple
	case scheme != "pcn":
		return 20e9, 20e9
	case t < 3:
		f1 = 0.8e9 * ripple
		return min(39.5e9, (26+11*(t-0.2)/0.8)*1e9) - f1, f1
	default:
		f1 = 20e9 * (1 - 0.96*math.Exp(-(t-3)/3.4))
		return 39.8e9 - f1, f1
	}
}

// queues returns the queues of S0->S1 and S1->R1 at a time, in bytes.
func queues(scheme string, tNs int64) (s0s1, s1r1 uint64) {
	t := float64(tNs) / float64(ms)
	if t < 0 || t > 3.2 {
		return 0, 0
	}
	filled := min(1, t/0.25)
	s1r1 = uint64(7.6e6 * filled * min(1, (3.2-t)/2.6))
	if scheme != "pcn" {
		return uint64(1.02e6 * filled * min(1, (3.2-t)/0.1)), s1r1
	}
	return uint64(0.42e6 * math.Sin(math.Pi*min(t, 1.1)/1.1)), s1r1
}

func addSeries(r *result.Run, scheme string) {
	m := r.Manifest
	for t := -m.WarmupNs; t < m.DurationNs; t += m.SampleNs {
		f0, f1 := rates(scheme, t)
		s0s1, s1r1 := queues(scheme, t)
		_, next := queues(scheme, t+m.SampleNs)
		send0, send1 := rates(scheme, t+m.SampleNs)
		r.Series = append(r.Series,
			result.Sample{TimeNs: t, Kind: result.KindFlow, Name: "F0", RateBps: uint64(f0)},
			result.Sample{TimeNs: t, Kind: result.KindFlow, Name: "F1", RateBps: uint64(f1),
				MarkedPackets: s1r1 / 10_000},
			result.Sample{TimeNs: t, Kind: result.KindPort, Name: "S0->S1",
				RateBps: uint64(f0 + f1), QueueBytes: s0s1, QueueMaxBytes: s0s1 + 2000},
			result.Sample{TimeNs: t, Kind: result.KindPort, Name: "S1->R1", RateBps: 40e9,
				QueueBytes: s1r1, QueueMaxBytes: max(s1r1, next)},
			result.Sample{TimeNs: t, Kind: result.KindSender, Name: "F0",
				RateBps: uint64(1.02 * send0), SRTTNs: 31 * us,
				CNPs: uint64((t + m.WarmupNs) / (50 * us))},
			result.Sample{TimeNs: t, Kind: result.KindSender, Name: "F1",
				RateBps: uint64(1.05 * send1), SRTTNs: 31 * us,
				CNPs: uint64((t + m.WarmupNs) / (50 * us))},
		)
	}
}

// flowBytes returns what a flow brought over according to the series.
func flowBytes(r *result.Run, name string) uint64 {
	sum := uint64(0)
	for _, s := range r.Series {
		if s.Kind == result.KindFlow && s.Name == name {
			sum += s.RateBps / 8 * uint64(r.Manifest.SampleNs) / 1e9
		}
	}
	return sum
}

func addFlows(r *result.Run, e *experiment.Experiment) {
	frame := uint64(e.Frame)
	for _, f := range e.Flows {
		bytes := flowBytes(r, f.Name)
		r.Flows = append(r.Flows, result.Flow{
			Name: f.Name, Group: f.Group, Scheme: r.Manifest.Scheme, Src: f.From, Dst: f.To,
			SrcAddr: "10.0.0.1", SrcPort: 40000, DstAddr: "10.0.1.1", DstPort: 5001,
			Proto: result.TCP, StartNs: int64(f.Start), SentBytes: bytes, ReceivedBytes: bytes,
			Packets:       bytes / frame,
			MarkedPackets: bytes / frame / 9, CNPDecrease: 51, CNPIncrease: 214, SendRateBps: 20e9,
			RecRateBps: 19.9e9, Stats: []result.Stat{{Key: "w", Value: 0.0078125}}, SRTTNs: 31 * us, ECN: true,
		})
	}
	for _, b := range e.Bursts {
		for i, host := range b.From {
			for j := range b.Flows {
				size := uint64(b.Size)
				r.Flows = append(r.Flows, result.Flow{
					Name: fmt.Sprintf("%s-%s-%d", b.Name, host, j), Group: b.Name,
					Scheme: r.Manifest.Scheme, Src: host, Dst: b.To,
					SrcAddr: fmt.Sprintf("10.0.0.%d", i+3), SrcPort: uint16(6000 + j),
					DstAddr: "10.0.1.2", DstPort: 6000,
					Proto: result.UDP, StartNs: int64(b.At), EndNs: new(burstEndNs - int64(i)*us),
					SentBytes: size, ReceivedBytes: size, Packets: size / frame,
				})
			}
		}
	}
}

func addPorts(r *result.Run, e *experiment.Experiment) {
	for i, name := range e.Topology.Network().Ports() {
		node, peer, _ := network.SplitPort(name)
		sent := uint64(1000 + i)
		p := result.Port{
			Name: name, Node: node, Peer: peer, RateBps: uint64(e.Topology.Rate),
			DelayNs:         int64(e.Topology.Delay),
			EnqueuedPackets: sent, EnqueuedBytes: sent * 1000, SentPackets: sent,
			SentBytes:     sent * 1000,
			LatenessP50Ns: 20, LatenessP99Ns: 90, LatenessMaxNs: 260,
		}
		for _, s := range r.Series {
			if s.Kind == result.KindPort && s.Name == name {
				p.QueueMaxBytes = max(p.QueueMaxBytes, s.QueueMaxBytes)
			}
		}
		for _, paused := range r.PausedIntervals(network.PortName(peer, node)) {
			p.PausedNs += paused.ToNs - paused.FromNs
		}
		countPFC(&p, r.PFC)
		r.Ports = append(r.Ports, p)
	}
}

// countPFC counts the frames on the link of a port.
func countPFC(p *result.Port, events []result.PFCEvent) {
	for _, e := range events {
		sent := e.From == p.Node && e.To == p.Peer
		received := e.From == p.Peer && e.To == p.Node
		switch {
		case sent && e.Kind == result.Pause:
			p.PauseSent++
		case sent:
			p.ResumeSent++
		case received && e.Kind == result.Pause:
			p.PauseReceived++
		case received:
			p.ResumeReceived++
		}
	}
}
