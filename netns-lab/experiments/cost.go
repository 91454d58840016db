// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"time"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// cost is how large an experiment is: the runs of all its schemes in all its cases, and the packets
// that their ports send.
type cost struct {
	runs    int
	packets float64
}

// costs is the one place that says what experiments cost. The simulation counted the packets:
// `pcn run NAME --engine sim`, the sum of sent_packets in all ports.csv. qcn-buffers has a scheme
// that needs Linux; it counts as much as the other.
var costs = map[string]cost{
	"adversarial":       {28, 217e6},
	"appendix-a":        {1, 0.358e6},
	"clos-full":         {1, 0.177e6},
	"clos-w1":           {3, 5.45e6},
	"clos-w2":           {3, 7.08e6},
	"congestion-trees":  {3, 0.275e6},
	"deadlock":          {30, 39.6e6},
	"dynamics":          {4, 2.22e6},
	"feedback":          {4, 2.49e6},
	"feedback-lossy":    {3, 1.46e6},
	"hol":               {5, 8.36e6},
	"hol-hadoop":        {4, 0.424e6},
	"hol-shared-buffer": {2, 1.19e6},
	"hpcc":              {2, 0.591e6},
	"hpcc-dctcp":        {2, 0.034e6},
	"increase-law":      {1, 0.019e6},
	"ldcp-churn":        {4, 0.508e6},
	"ldcp-faststart":    {11, 0.738e6},
	"ldcp-incast":       {16, 7.84e6},
	"ldcp-steady":       {12, 2.43e6},
	"parking-lot":       {5, 6.45e6},
	"priorities":        {3, 2.14e6},
	"qcn-basic":         {1, 0.433e6},
	"qcn-buffers":       {12, 3.47e6},
	"qcn-model":         {4, 3.89e6},
	"rate-principle":    {10, 1.54e6},
	"scalability":       {5, 4.98e6},
	"sensitivity":       {4, 0.545e6},
	"stability-spots":   {4, 1.82e6},
	"tcd-fct":           {2, 1.18e6},
	"tcd-multiple":      {2, 0.440e6},
	"tcd-queues":        {4, 0.655e6},
	"tcd-senders":       {3, 0.321e6},
	"tcd-single":        {2, 0.215e6},
}

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
// knows. Experiments that do not come with the program are taken to be as large as they can be: all
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

// packetsOf returns how many packets the ports send in a run.
func packetsOf(e *experiment.Experiment) float64 {
	length := func(e *experiment.Experiment) float64 { return float64(e.Warmup + e.Duration) }
	if c, ok := costs[e.Name]; ok {
		if whole, err := Load(e.Name); err == nil {
			return c.packets / float64(c.runs) * length(e) / length(whole)
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
