// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"time"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// Packets over links that a CPU does in a second, and what a run costs besides. Linux did 31000 to
// 32000 in hol and appendix-a; the simulation 0.6 to 6 million, most of the experiments 3 to 5. A
// microVM boots in 3 s. To build a network, each node meets every other: the 568 nodes of clos-full
// cost 228 s, the 20 of hol hardly any.
const (
	kernelPerSecond = 31e3
	simPerSecond    = 3e6
	boot            = 3 * time.Second
	buildPair       = 228 * time.Second / (568 * 568)
)

// Cost returns how long one CPU is expected to take for so many runs of an experiment, 0 if nobody
// knows. Experiments that do not say what they cost are taken to be as large as they can be: all
// senders at the rate of their link all the time.
func Cost(e *experiment.Experiment, engine experiment.Engine, runs int) time.Duration {
	packets := packetsOf(e) * float64(runs)
	switch engine {
	case experiment.EngineSim:
		return seconds(packets / simPerSecond)
	case experiment.EngineKernel:
		nodes := time.Duration(len(e.Topology.Network().Nodes()))
		return seconds(packets/kernelPerSecond) +
			time.Duration(runs)*(boot+nodes*nodes*buildPair)
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
