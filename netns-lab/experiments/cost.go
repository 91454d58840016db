// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// simPerSecond are the packets over links that the simulation does in a second of one CPU: 0.6 to 6
// million, in most experiments 3 to 5.
const simPerSecond = 3e6

// linux is what runs on Linux take of one CPU.
type linux struct {
	packetsPerSecond float64       // over links
	boot             time.Duration // of a microVM, and what every run takes besides
	pair             time.Duration // to build a network, each node meets every other
}

var (
	// uml is User Mode Linux. It did 540000 packets in appendix-a and hol under dcqcn, 320000 under
	// pcn and in dynamics, 190000 in clos-w1, and took 4.2 s for the 568 nodes of clos-full.
	uml = linux{packetsPerSecond: 300e3, boot: 600 * time.Millisecond,
		pair: 3600 * time.Millisecond / (568 * 568)}
	// qemu is a CPU that is emulated. It did 31000 to 32000 packets in hol and appendix-a, and took
	// 228 s for the 568 nodes of clos-full.
	qemu = linux{packetsPerSecond: 31e3, boot: 3 * time.Second,
		pair: 228 * time.Second / (568 * 568)}
)

// Cost returns how long one CPU is expected to take for so many runs of an experiment, 0 if nobody
// knows. Runs on Linux take much longer in a microVM whose CPU is emulated. Experiments that do not
// say what they cost are taken to be as large as they can be: all senders at the rate of their link
// all the time.
func Cost(
	e *experiment.Experiment, engine experiment.Engine, emulated bool, runs int,
) time.Duration {
	packets := packetsOf(e) * float64(runs)
	switch engine {
	case experiment.EngineSim:
		return seconds(packets / simPerSecond)
	case experiment.EngineKernel:
		on := uml
		if emulated {
			on = qemu
		}
		nodes := time.Duration(len(e.Topology.Network().Nodes()))
		return seconds(packets/on.packetsPerSecond) +
			time.Duration(runs)*(on.boot+nodes*nodes*on.pair)
	default:
		return 0 // fluid models take seconds
	}
}

func seconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// packetsOf returns how many packets the ports send in a run: what the file says, or what the
// senders could.
func packetsOf(e *experiment.Experiment) float64 {
	length := func(e *experiment.Experiment) float64 { return float64(e.Warmup + e.Duration) }
	if e.Cost.Packets > 0 {
		whole, err := experiment.Parse(e.Name, e.Source()) // without what was chosen
		if runs := runsOf(whole, err); runs > 0 {
			return float64(e.Cost.Packets) / float64(runs) * length(e) / length(whole)
		}
	}
	n := e.Topology.Network()
	senders := map[string]bool{}
	for _, g := range e.FlowGroups {
		for _, host := range g.From {
			senders[host] = true
		}
	}
	count := len(senders)
	if e.Trace.File != "" || len(e.Workload) > 0 {
		count = len(n.Hosts)
	}
	const links = 3 // of a path, and as many for the acknowledgements, which are fewer
	perSecond := float64(e.Topology.Rate) / 8 / float64(e.Frame)
	return float64(count) * perSecond * length(e) / float64(experiment.Second) * 2 * links
}

// runsOf returns how many runs an experiment has: its schemes in all its cases.
func runsOf(e *experiment.Experiment, err error) (runs int) {
	if err != nil {
		return 0
	}
	for _, name := range e.CaseNames() {
		if c, err := e.Case(name); err == nil {
			runs += len(c.Schemes)
		}
	}
	return runs
}
