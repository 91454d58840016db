// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// State has the verdicts of the congestion detectors on an egress port in a bin, and the ground
// truth. Only runs whose switches have detectors have states.
//
// The ground truth is computed from the senders' rates in a network without pauses: see
// docs/tcd.md.
type State struct {
	TimeNs      int64    `csv:"time_ns"`      // start of the bin
	Port        string   `csv:"port"`         // such as S0->S1
	TCD         TCDState `csv:"tcd"`          // after the last packet that the port sent
	OffNs       int64    `csv:"off_ns"`       // time paused, or with packets but without credits
	SentPackets uint64   `csv:"sent_packets"` // of all classes
	// Packets that each detector marked, or would have marked:
	NPECNPackets uint64 `csv:"np_ecn_packets"` // by NP-ECN, which is PCN's
	ECNPackets   uint64 `csv:"ecn_packets"`    // by the length of the queue
	FECNPackets  uint64 `csv:"fecn_packets"`   // by InfiniBand's FECN
	TCDCEPackets uint64 `csv:"tcd_ce_packets"` // by TCD, as congested
	TCDUEPackets uint64 `csv:"tcd_ue_packets"` // by TCD, as undetermined
	// Ground truth:
	InputBps  uint64 `csv:"input_bps"` // what senders would send through it, by the ground truth
	Congested bool   `csv:"congested"` // by the ground truth
}

// TCDState is TCD's state of a port.
type TCDState string

// The states of a port in TCD. TCD does not mark packets of a draining port.
const (
	NonCongestion TCDState = "non-congestion"
	Draining      TCDState = "draining"
	Undetermined  TCDState = "undetermined"
	Congestion    TCDState = "congestion"
)

// UnmarshalText implements [encoding.TextUnmarshaler].
func (s *TCDState) UnmarshalText(text []byte) error {
	return unmarshalName(s, text, NonCongestion, Draining, Undetermined, Congestion)
}

func compareStates(a, b State) int {
	return cmp.Or(cmp.Compare(a.TimeNs, b.TimeNs), compareNatural(a.Port, b.Port))
}

var errNoStates = errors.New("the run's switches had no detectors")

// StatesOf returns the states of a port, in the order of time.
func (r *Run) StatesOf(port string) []State {
	var states []State
	for _, s := range r.States {
		if s.Port == port {
			states = append(states, s)
		}
	}
	slices.SortStableFunc(states, func(a, b State) int { return cmp.Compare(a.TimeNs, b.TimeNs) })
	return states
}

// Marks returns how many packets of the bin a detector marked, or would have.
func (s State) Marks(d experiment.Detector, congestedShare float64) uint64 {
	switch d {
	case experiment.DetectTCD:
		return s.TCDCEPackets
	case experiment.DetectPCN:
		if float64(s.NPECNPackets) <= congestedShare*float64(s.SentPackets) {
			return 0
		}
		return s.NPECNPackets
	case experiment.DetectNPECN:
		return s.NPECNPackets
	case experiment.DetectECN:
		return s.ECNPackets
	case experiment.DetectFECN:
		return s.FECNPackets
	default:
		return s.TCDUEPackets
	}
}

// CongestedShare returns the share of marked packets above which PCN takes a flow to be congested,
// in the run's experiment.
func (r *Run) CongestedShare() float64 {
	e, err := experiment.Parse(r.Manifest.Experiment, r.Experiment)
	if err != nil {
		return 0.95 // the default: PCN, section 4
	}
	return e.CongestedShare()
}

// truthHoldNs returns the time after congestion in which a mark is still right. It is at least a
// bin, since the ground truth is known only for whole bins and packets are under way for a part of
// one.
func (r *Run) truthHoldNs() int64 { return max(r.Manifest.SampleNs, r.Manifest.BaseRTTNs) }

// WrongMarks returns the number of packets that a detector marked, or would have marked, in the
// whole run (all), and how many of them while the port was not and had not just been congested
// (wrong).
func (r *Run) WrongMarks(d experiment.Detector) (wrong, all uint64, err error) {
	if len(r.States) == 0 {
		return 0, 0, errNoStates
	}
	share := r.CongestedShare()
	trueUntil := map[string]int64{}
	for _, s := range sorted(r.States, compareStates) {
		if s.Congested {
			trueUntil[s.Port] = s.TimeNs + r.Manifest.SampleNs + r.truthHoldNs()
		}
		n := s.Marks(d, share)
		all += n
		if until, ok := trueUntil[s.Port]; d != experiment.DetectUE && (!ok || s.TimeNs >= until) {
			wrong += n
		}
	}
	return wrong, all, nil
}

// wrongMarks returns the share of wrong marks.
func (r *Run) wrongMarks(m experiment.Measure, _ Interval) (float64, error) {
	wrong, all, err := r.WrongMarks(m.Detector)
	return float64(wrong) / float64(max(all, 1)), err
}

// statesWithin returns the states of a port in the bins that lie wholly within the window.
func (r *Run) statesWithin(port string, window Interval) ([]State, error) {
	var states []State
	for _, s := range r.StatesOf(port) {
		if s.TimeNs >= window.FromNs && s.TimeNs+r.Manifest.SampleNs <= window.ToNs {
			states = append(states, s)
		}
	}
	if len(states) == 0 {
		return nil, errNoStates
	}
	return states, nil
}

func (r *Run) detectorMarks(m experiment.Measure, port string, window Interval) (float64, error) {
	states, err := r.statesWithin(port, window)
	share, sum := r.CongestedShare(), 0.0
	for _, s := range states {
		sum += float64(s.Marks(m.Detector, share))
	}
	return sum, err
}

func (r *Run) offEndMetric(_ experiment.Measure, port string, window Interval) (float64, error) {
	end, err := r.offEnd(port, window)
	return float64(end), err
}

// offEnd returns the end of the last bin in which the port was OFF.
func (r *Run) offEnd(port string, window Interval) (int64, error) {
	states, err := r.statesWithin(port, window)
	end := int64(0)
	for _, s := range states {
		if s.OffNs > 0 {
			end = s.TimeNs + r.Manifest.SampleNs
		}
	}
	return end, err
}

// detectionTime returns the time from the last OFF until TCD finds congestion.
func (r *Run) detectionTime(_ experiment.Measure, port string, window Interval) (float64, error) {
	end, err := r.offEnd(port, window)
	if err != nil {
		return 0, err
	}
	if end == 0 {
		return 0, fmt.Errorf("port %s was never OFF", port)
	}
	for _, s := range r.StatesOf(port) {
		if s.TimeNs >= end-r.Manifest.SampleNs && s.TCD == Congestion {
			return float64(s.TimeNs + r.Manifest.SampleNs - end), nil
		}
	}
	return 0, &notReachedError{observedNs: window.ToNs - end, untilNs: window.ToNs}
}

func (r *Run) markedPackets(_ experiment.Measure, flow string) (float64, error) {
	n, found := uint64(0), false
	for _, f := range r.Flows {
		if f.Name == flow {
			n += f.MarkedPackets
			found = true
		}
	}
	if !found {
		return 0, fmt.Errorf("the run has no flow %s", flow)
	}
	return float64(n), nil
}
