// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/result"
)

// verdict judges whether a run is valid, by its fidelity, losses and conservation of packets.
type verdict struct {
	fabric      *fabric
	lost        map[string]uint64 // packets, by place
	pfcOverflow uint64
	creditsLost []string
}

// judge writes the verdict and its reasons into the manifest.
func (v *verdict) judge(run *result.Run) error {
	m := &run.Manifest
	reasons := m.Late()
	if v.fabric.plan.exp.PFCOn(v.fabric.algorithm.Name) { // a lossy network may lose packets
		reasons = append(reasons, losses(v.lost, run)...)
	}
	if v.pfcOverflow > 0 {
		reasons = append(reasons, fmt.Sprintf(
			"%d PAUSE or RESUME events found a port's event ring full", v.pfcOverflow))
	}
	reasons = append(reasons, v.creditsLost...)
	reasons = append(reasons, v.withoutECN(run)...)
	reasons = append(reasons, run.Conservation()...)
	wrong, err := v.linkConservation(run)
	if err != nil {
		return err
	}
	reasons = append(reasons, wrong...)
	if err := v.fabric.checkEvents(); err != nil {
		reasons = append(reasons, err.Error())
	}
	m.LostPackets = v.lost
	m.Reasons = reasons
	m.Verdict = result.Valid
	if len(reasons) > 0 {
		m.Verdict = result.Invalid
	}
	return nil
}

// withoutECN names the TCP flows that did not negotiate ECN, if the scheme is useless without it.
func (v *verdict) withoutECN(run *result.Run) []string {
	if !v.fabric.algorithm.NeedsECN {
		return nil
	}
	var reasons []string
	for _, flow := range run.Flows {
		if flow.Proto == result.TCP && !flow.ECN {
			reasons = append(reasons, fmt.Sprintf("flow %s did not negotiate ECN", flow.Name))
		}
	}
	return reasons
}

// timeoutCounters are what a flow that stands in a deadlock counts: its packets are late, and not
// lost.
var timeoutCounters = []string{
	"tcp retransmissions", "tcp RetransSegs", "tcpext TCPTimeouts", "tcpext TCPLostRetransmit",
}

// losses names each place that lost packets.
func losses(lost map[string]uint64, run *result.Run) []string {
	var reasons []string
	for _, place := range slices.Sorted(maps.Keys(lost)) {
		if run.Manifest.Deadlock != nil && slices.Contains(timeoutCounters, place) {
			continue
		}
		if n := lost[place]; n > 0 {
			reasons = append(reasons, fmt.Sprintf("lost packets, %s: %d", place, n))
		}
	}
	for _, p := range run.Ports {
		if n := p.DroppedPackets(); n > 0 {
			reasons = append(reasons, fmt.Sprintf("port %s dropped %d packets", p.Name, n))
		}
	}
	return reasons
}

// linkConservation compares the ends of every link, when no packet is under way: a switch's ports
// took in what the ports towards it handed over and the CNMs that it made itself, less what the
// switch dropped.
func (v *verdict) linkConservation(run *result.Run) ([]string, error) {
	cnms, err := v.fabric.switches.CNMs()
	if err != nil {
		return nil, err
	}
	in, out := map[string]uint64{}, map[string]uint64{} // of each switch
	var made uint64
	for _, p := range run.Ports {
		in[p.Peer] += p.SentPackets
		out[p.Node] += p.EnqueuedPackets + p.RefusedPackets()
	}
	var wrong []string
	for _, n := range v.fabric.plan.nodes[v.fabric.plan.hosts:] {
		own := out[n.name] - in[n.name]
		if v.fabric.algorithm.hearsCNMs() && out[n.name] >= in[n.name] {
			made += own
		} else if own != 0 {
			wrong = append(wrong, fmt.Sprintf(
				"switch %s was sent %d packets, but its ports took in %d",
				n.name, in[n.name], out[n.name]))
		}
	}
	if made != cnms.Sent {
		wrong = append(wrong, fmt.Sprintf(
			"switches' ports took in %d packets of their own, but they made %d CNMs",
			made, cnms.Sent))
	}
	return wrong, nil
}
