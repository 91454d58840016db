// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

const (
	// settleNs is from the end of preparing to the start of the warm-up.
	settleNs = 200_000
	// stepNs is how often events are taken and progress is told, in the papers' time.
	stepNs = 1_000_000
	// decidedNs is how long after the end ports have decided all that ideally happened before it.
	decidedNs = 8 * quantumNs
	// quiesceNs is how long the packets under way may take to arrive when the senders have stopped.
	quiesceNs = 50_000_000
	// lateShare of the base RTT is what the 99th percentile of lateness may be at most.
	lateShare = 0.05
)

// Progress is told how far a run is, in the papers' ns.
type Progress func(doneNs, totalNs int64)

// Run runs one scheme of the experiment on the kernel it is on, and removes all it made, whatever happens.
//
// The result's manifest says whether the run can be believed. Tool, QEMU, Deterministic and Wall are left to the
// caller.
func Run(ctx context.Context, e *experiment.Experiment, scheme string, progress Progress) (run *result.Run, err error) {
	p, err := newPlan(e)
	if err != nil {
		return nil, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	f, err := newFabric(p, scheme)
	if err != nil {
		return nil, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	defer func() { err = errors.Join(err, f.close()) }()
	run, err = f.measure(ctx, progress)
	if err != nil {
		return nil, fmt.Errorf("run scheme %s of experiment %s: %w", scheme, e.Name, err)
	}
	return run, nil
}

// measure sends the traffic and collects what happens.
func (f *fabric) measure(ctx context.Context, progress Progress) (*result.Run, error) {
	sending, stop := context.WithCancel(ctx)
	defer stop()
	t, err := newTraffic(sending, f)
	if err != nil {
		return nil, err
	}
	closed := false
	defer func() {
		stop()
		if !closed {
			_ = t.close() // the error that led here says more
		}
	}()
	e := f.plan.exp
	t0Ns := f.startOf(t)
	if err := f.changeRates(t0Ns); err != nil {
		return nil, err
	}
	if err := t.loadBursts(t0Ns); err != nil {
		return nil, err
	}
	if early := t0Ns - uint64(e.Warmup); f.clock.nowNs() > early {
		return nil, fmt.Errorf("the machine is too slow to prepare %d burst packets in time: raise `dilation`", t.burstFrames())
	}
	c, err := newCollector(f, t, t0Ns)
	if err != nil {
		return nil, err
	}
	defer c.close()
	busy0, total0, err := cpuTimes()
	if err != nil {
		return nil, err
	}
	t.start(sending, t0Ns)
	if err := f.follow(ctx, c, progress); err != nil {
		return nil, err
	}
	if err := f.clock.sleepUntil(ctx, c.endNs+decidedNs); err != nil {
		return nil, err
	}
	if err := c.snapshot(); err != nil {
		return nil, err
	}
	busy1, total1, err := cpuTimes()
	if err != nil {
		return nil, err
	}
	closed = true
	stop()
	if err := t.close(); err != nil {
		return nil, err
	}
	if err := f.quiesce(ctx, c.deadlock != nil); err != nil {
		return nil, err
	}
	if err := c.drain(); err != nil {
		return nil, err
	}
	run, err := c.run()
	if err != nil {
		return nil, err
	}
	if total1 > total0 {
		run.Manifest.GuestCPUBusy = float64(busy1-busy0) / float64(total1-total0)
	}
	if err := f.judge(c, run); err != nil {
		return nil, err
	}
	run.Manifest.Kernel, err = kernelRelease()
	return run, err
}

// changeRates tells the ports their rates to come.
func (f *fabric) changeRates(t0Ns uint64) error {
	for id := uint32(1); id < uint32(len(f.plan.ports)); id++ {
		if err := f.qdisc.ChangeRates(id, f.plan.rateChanges(id, t0Ns)); err != nil {
			return err
		}
	}
	return nil
}

// startOf chooses t = 0: on a bin of the series, and far enough ahead to send all bursts to their ports.
func (f *fabric) startOf(t *traffic) uint64 {
	const sendNs = 100_000 // of the kernel's time, for one packet on a slow machine
	sampleNs := uint64(f.plan.exp.Sample)
	prepare := uint64(t.burstFrames()) * sendNs >> f.clock.shift
	start := f.clock.nowNs() + settleNs + prepare + uint64(f.plan.exp.Warmup)
	return (start + sampleNs - 1) / sampleNs * sampleNs
}

// follow waits until the end of the measured time, and looks at the senders at the end of every bin.
func (f *fabric) follow(ctx context.Context, c *collector, progress Progress) error {
	e := f.plan.exp
	begin, sampleNs := c.t0Ns-uint64(e.Warmup), uint64(e.Sample)
	total := int64(c.endNs - begin)
	told := begin
	for at := begin; at < c.endNs; {
		at += sampleNs // the measured time is whole bins
		if err := f.clock.sleepUntil(ctx, at); err != nil {
			return err
		}
		if err := c.sampleSenders(at/sampleNs - 1); err != nil {
			return err
		}
		if at-told < stepNs && at < c.endNs {
			continue
		}
		told = at
		if err := errors.Join(c.drain(), c.watchDeadlock()); err != nil {
			return err
		}
		if progress != nil {
			progress(int64(at-begin), total)
		}
		select {
		case err := <-c.t.errs:
			return err
		default:
		}
	}
	return nil
}

// quiesce waits until no packet is left in any port. In a deadlock some are for good: it waits until no other is.
func (f *fabric) quiesce(ctx context.Context, deadlock bool) error {
	const stillNs = 500_000
	var last, lastNs uint64
	for end := f.clock.nowNs() + quiesceNs; ; {
		held, err := f.held()
		if err != nil || held == 0 {
			return err
		}
		now := f.clock.nowNs()
		if held != last {
			last, lastNs = held, now
		}
		if now > end || deadlock && now > lastNs+stillNs {
			return nil // the conservation check tells which port holds what
		}
		if err := f.clock.sleepUntil(ctx, f.clock.nowNs()+100_000); err != nil {
			return err
		}
	}
}

// held is how many packets the ports hold.
func (f *fabric) held() (uint64, error) {
	var n uint64
	for id := 1; id < len(f.plan.ports); id++ {
		s, err := f.qdisc.Stats(uint32(id))
		if err != nil {
			return 0, err
		}
		n += s.QueuedPackets + s.WirePackets
	}
	return n, nil
}

// judge says in the manifest whether the run can be believed (fidelity, losses, conservation).
func (f *fabric) judge(c *collector, run *result.Run) error {
	m := &run.Manifest
	var reasons []string
	if limit := int64(lateShare * float64(m.BaseRTTNs)); m.LatenessP99Ns > limit {
		reasons = append(reasons, fmt.Sprintf("99%% of packets were up to %d ns late, over 5%% of the base RTT (%d ns): raise `dilation`", m.LatenessP99Ns, limit))
	}
	if m.CausalityViolations > 0 {
		reasons = append(reasons, fmt.Sprintf("%d packets came after their ideal time had been decided: raise `dilation`", m.CausalityViolations))
	}
	if f.plan.exp.PFCOn(f.scheme) { // a lossy network may lose packets
		reasons = append(reasons, losses(c.lost, run)...)
	}
	if c.pfcOverflow > 0 {
		reasons = append(reasons, fmt.Sprintf("%d PAUSE or RESUME events found a port's event ring full", c.pfcOverflow))
	}
	reasons = append(reasons, c.creditsLost...)
	for _, flow := range run.Flows {
		if flow.Proto == result.TCP && !flow.ECN && needsECN(f.plan.exp, f.scheme) {
			reasons = append(reasons, fmt.Sprintf("flow %s did not negotiate ECN", flow.Name))
		}
	}
	reasons = append(reasons, run.Conservation()...)
	wrong, err := f.linkConservation(run)
	if err != nil {
		return err
	}
	reasons = append(reasons, wrong...)
	if err := c.eventsLost(); err != nil {
		reasons = append(reasons, err.Error())
	}
	m.LostPackets = c.lost
	m.Reasons = reasons
	m.Verdict = result.Valid
	if len(reasons) > 0 {
		m.Verdict = result.Invalid
	}
	return nil
}

// ofTimeouts are what a flow that stands in a deadlock counts: its packets are late, and not lost.
var ofTimeouts = []string{"tcp retransmissions", "tcp RetransSegs", "tcpext TCPTimeouts", "tcpext TCPLostRetransmit"}

// losses names each place that lost packets.
func losses(lost map[string]uint64, run *result.Run) []string {
	var reasons []string
	for _, place := range slices.Sorted(maps.Keys(lost)) {
		if run.Manifest.Deadlock != nil && slices.Contains(ofTimeouts, place) {
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
