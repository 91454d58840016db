// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
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
	e := v.fabric.plan.exp
	if e.OnlyPrograms() {
		reasons = append(reasons, lateInExactTime(m)...)
	}
	lossy := !e.PFCOn(v.fabric.algorithm.Name) || e.Disturbed() || e.LinkStates()
	if !lossy {
		lossyDrops, err := v.lossyDrops(run)
		if err != nil {
			return err
		}
		reasons = append(reasons, losses(v.lost, run, lossyDrops)...)
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

// exactLateNs is the most that ports may be late in a run of programs alone, whatever the round
// trip: computing takes no time there. What moves the clock on is only a program that makes calls
// while it waits, by 1 us each and more.
const exactLateNs = 100_000

// lateInExactTime says whether time went on while the machine computed. What hosts send is not
// judged: programs send when they like, so nothing says when a packet is due.
func lateInExactTime(m *result.Manifest) []string {
	if m.LatenessP99Ns <= exactLateNs {
		return nil
	}
	return []string{fmt.Sprintf("99%% of packets were up to %d ns late, over %d ns: computing "+
		"takes no time, so a program makes calls without end, or the kernel's clock ran on",
		m.LatenessP99Ns, exactLateNs)}
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

// timeoutCounters are what a flow counts that stands in a deadlock, whose packets are late and not
// lost, or whose packets a watchdog dropped.
var timeoutCounters = []string{
	"tcp retransmissions", "tcp RetransSegs", "tcpext TCPTimeouts", "tcpext TCPLostRetransmit",
}

// lossyDrops returns how many packets of lossy classes each port dropped; nil if there are none.
func (v *verdict) lossyDrops(run *result.Run) ([]uint64, error) {
	if !v.fabric.plan.exp.Switch.Lossy() {
		return nil, nil
	}
	drops := make([]uint64, len(run.Ports))
	for i := range run.Ports {
		s, err := v.fabric.qdisc.Stats(uint32(i + 1))
		if err != nil {
			return nil, err
		}
		drops[i] = s.Lossy
	}
	return drops, nil
}

// losses names each place that lost packets, but for those of lossy classes.
func losses(lost map[string]uint64, run *result.Run, lossyDrops []uint64) []string {
	var reasons []string
	excused := lossyDrops != nil || run.Manifest.Deadlock != nil || len(run.Watchdog) > 0
	for _, place := range slices.Sorted(maps.Keys(lost)) {
		if excused && (slices.Contains(timeoutCounters, place) || place == result.LostByWatchdog) {
			continue
		}
		if n := lost[place]; n > 0 {
			reasons = append(reasons, fmt.Sprintf("lost packets, %s: %d", place, n))
		}
	}
	for i, p := range run.Ports {
		n := p.DroppedPackets()
		if lossyDrops != nil {
			n -= lossyDrops[i]
		}
		if len(run.Watchdog) > 0 { // what it drops is no mistake
			n -= p.DroppedResetPackets
		}
		if n > 0 {
			reasons = append(reasons, fmt.Sprintf("port %s dropped %d packets", p.Name, n))
		}
	}
	return reasons
}

// linkConservation compares the ends of every link, when no packet is under way: a switch's ports
// took in what the ports towards it handed over and the CNMs that it made itself, less what the
// switch dropped. What programs sent to no host, or not by IP, counts for all switches together.
func (v *verdict) linkConservation(run *result.Run) ([]string, error) {
	cnms, err := v.fabric.switches.CNMs()
	if err != nil {
		return nil, err
	}
	in, out := map[string]uint64{}, map[string]uint64{} // of each switch
	var made, strange uint64
	for i, p := range run.Ports {
		s, err := v.fabric.qdisc.Stats(uint32(i + 1))
		if err != nil {
			return nil, err
		}
		in[p.Peer] += p.SentPackets - s.Drops[npecn.DropLink]
		out[p.Node] += p.EnqueuedPackets + p.RefusedPackets() + s.Drops[npecn.DropRefused]
	}
	var wrong []string
	for i, n := range v.fabric.plan.nodes {
		if n.isHost || v.fabric.exempt(i) {
			continue
		}
		own := out[n.name] - in[n.name]
		if v.fabric.algorithm.hearsCNMs() && out[n.name] >= in[n.name] {
			made += own
		} else if len(v.fabric.plan.exp.Programs) > 0 && out[n.name] < in[n.name] {
			strange += in[n.name] - out[n.name]
		} else if own != 0 {
			wrong = append(wrong, fmt.Sprintf(
				"switch %s was sent %d packets, but its ports took in %d",
				n.name, in[n.name], out[n.name]))
		}
	}
	drops, err := v.fabric.switches.Drops() // now, as what is above
	if err != nil {
		return nil, err
	}
	if dropped := drops.NoRoute + drops.NotIP; strange > 0 && strange != dropped {
		wrong = append(wrong, fmt.Sprintf(
			"switches' ports took in %d packets less than were sent to switches, and %d "+
				"were for no host", strange, dropped))
	}
	if made != cnms.Sent {
		wrong = append(wrong, fmt.Sprintf(
			"switches' ports took in %d packets of their own, but they made %d CNMs",
			made, cnms.Sent))
	}
	return wrong, nil
}
