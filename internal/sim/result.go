// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// result assembles the result when no packet is under way any more.
func (w *world) result() (*result.Run, error) {
	e, r := w.plan.exp, &w.record
	r.gatherPFC(w)
	run := &result.Run{
		Experiment: e.Source(), Flows: r.flows, Series: r.series, PFC: r.pfc,
		PauseRepeats: r.repeats, Completions: r.complete, Trace: e.TracedFlows(),
	}
	if w.pfcDog != nil {
		run.Watchdog = w.pfcDog.events
	}
	for id := range w.ports {
		run.Ports = append(run.Ports, w.portRow(id))
	}
	m := &run.Manifest
	m.Experiment, m.ExperimentSHA256, m.Scheme = e.Name, e.Hash(), w.plan.scheme.Name
	m.Seed = e.Seed
	m.DilationShift, m.Case = e.Dilation.Shift, e.CaseName
	m.DurationNs, m.WarmupNs, m.SampleNs = int64(e.Duration), int64(e.Warmup), int64(e.Sample)
	m.BaseRTTNs = int64(w.plan.exp.BaseRTTNs(w.plan.routes))
	m.Deadlock = r.deadlock
	m.Engine, m.Deterministic = string(experiment.EngineSim), true
	w.judge(run)
	var err error
	run.States, err = w.states()
	return run, err
}

func (w *world) portRow(id int) result.Port {
	p := &w.ports[id]
	c := &p.counters
	row := result.Port{
		Name: w.plan.portNames[id], Node: w.plan.nodeNames[p.node],
		Peer: w.plan.nodeNames[p.peer], Tier: w.plan.tiers[p.node],
		RateBps: w.plan.network.Links[id/2].RateBps, DelayNs: p.delay,
		EnqueuedPackets: c.enqueuedPackets, EnqueuedBytes: c.enqueuedBytes,
		SentPackets: c.sentPackets, SentBytes: c.sentBytes, MarkedPackets: p.markedPackets,
		DroppedBufferPackets: p.droppedBuffer, QueueMaxBytes: max(p.longest, p.queueMax),
	}
	// packets that a queue's limit drops count as taken in, as the kernel's ports count them
	row.DroppedWREDPackets, row.DroppedTailPackets = p.droppedWRED, p.droppedTail
	row.EnqueuedPackets += p.droppedWRED + p.droppedTail
	row.DroppedResetPackets = p.droppedReset
	for i := range p.queues {
		q := &p.queues[i]
		row.QueuedPackets += uint64(q.packets)
		row.PauseSent += q.pauseSent
		row.ResumeSent += q.resumeSent
		row.PauseReceived += q.pauseReceived
		row.ResumeReceived += q.resumeReceived
		row.PausedNs += int64(q.pausedNs)
	}
	return row
}

// judge says whether the result is valid: a lossless network loses nothing.
func (w *world) judge(run *result.Run) {
	m := &run.Manifest
	m.LostPackets = map[string]uint64{}
	if w.linkLosses > 0 {
		m.LostPackets[result.LostOnLinks] = w.linkLosses
	}
	if w.pfcDog != nil && w.pfcDog.refused > 0 {
		m.LostPackets[result.LostByWatchdog] = w.pfcDog.refused
	}
	var reasons []string
	if w.lossless {
		for i, p := range run.Ports {
			// what a failed link takes with it, a watchdog drops, or a lossy class, is no mistake
			lossy := w.ports[i].droppedLossy
			if n := p.DroppedPackets() - p.DroppedResetPackets - lossy; n > 0 {
				reasons = append(reasons, fmt.Sprintf("port %s dropped %d packets", p.Name, n))
			}
		}
	}
	reasons = append(reasons, run.Conservation()...)
	m.Reasons, m.Verdict = reasons, result.Valid
	if len(reasons) > 0 {
		m.Verdict = result.Invalid
	}
}
