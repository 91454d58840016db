// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"

	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// collector reads a run's events as they come, and its counters at the end.
type collector struct {
	fabric   *fabric
	traffic  *traffic
	window   window
	events   *eventLog
	senders  *senderLog
	qdiscs   *qdiscLog
	deadlock *deadlockWatch
	counters counters
}

func newCollector(f *fabric, t *traffic, w window) (*collector, error) {
	events, err := newEventLog(f, w, len(t.streams)+len(t.bursts.flows))
	if err != nil {
		return nil, err
	}
	c := &collector{
		fabric: f, traffic: t, window: w, events: events,
		senders:  newSenderLog(f, t.streams),
		deadlock: &deadlockWatch{fabric: f, window: w, paused: events.paused},
	}
	if c.qdiscs, err = f.startQdiscLog(); err != nil {
		return nil, errors.Join(err, c.close())
	}
	return c, nil
}

func (c *collector) close() error {
	return errors.Join(c.qdiscs.close(), c.events.reader.Close())
}

// snapshot reads the counters and the open bins at the end of the measured time. It reads ports
// first, because later reads keep the CPU busy and make packets late.
func (c *collector) snapshot() (err error) {
	if err := c.counters.readPorts(c.fabric, c.window.endNs, c.events); err != nil {
		return err
	}
	if err := c.counters.readArrivals(c.fabric, c.traffic, c.window, c.events); err != nil {
		return err
	}
	if err := c.counters.readSenders(c.senders, c.traffic.streams, c.window); err != nil {
		return err
	}
	c.counters.lost, err = c.counters.countLost(c.fabric)
	return err
}

// result assembles the result. It reads ports once more, now that no packet is under way.
func (c *collector) result() (*result.Run, error) {
	e := c.fabric.plan.exp
	rows := &rows{
		plan: c.fabric.plan, scheme: c.fabric.algorithm.Name, window: c.window,
		traffic: c.traffic, counters: &c.counters,
	}
	r := &result.Run{
		PFC: c.events.pfc, PauseRepeats: c.events.repeatRows(), Experiment: e.Source(),
		Flows: rows.flows(), Completions: rows.completions(), Trace: e.TracedFlows(),
	}
	series := &series{
		plan: c.fabric.plan, window: c.window, streams: c.traffic.streams, events: c.events,
	}
	var late npecn.Lateness
	for id := 1; id < len(c.fabric.plan.ports); id++ {
		s, err := c.fabric.qdisc.Stats(uint32(id))
		if err != nil {
			return nil, err
		}
		late.Add(c.counters.late[id])
		c.counters.addSettled(c.fabric.plan.ports[id].name, &s)
		r.Ports = append(r.Ports, rows.port(id, c.fabric.options.Ports[id], &s))
		r.Series = append(r.Series, series.port(id)...)
	}
	r.Series = append(r.Series, series.streamRows()...)
	for _, b := range c.traffic.bursts.flows {
		r.Series = append(r.Series, series.flow(b.name, b.id)...)
	}
	for _, s := range c.senders.watched {
		r.Series = append(r.Series, c.senders.rows(s, c.window)...)
	}
	var err error
	if r.States, err = c.states(); err != nil {
		return nil, err
	}
	c.addStorms(r)
	if r.Watchdog, err = c.watchdogRows(); err != nil {
		return nil, err
	}
	if r.Qdiscs, err = c.qdiscs.rows(); err != nil {
		return nil, err
	}
	c.fillManifest(&r.Manifest, &late)
	return r, nil
}

func (c *collector) fillManifest(m *result.Manifest, late *npecn.Lateness) {
	e := c.fabric.plan.exp
	m.Experiment, m.ExperimentSHA256, m.Scheme, m.Seed = e.Name, e.Hash(), c.fabric.algorithm.Name,
		e.Seed
	m.DilationShift, m.Case = e.Dilation.Shift, e.CaseName
	m.DurationNs, m.WarmupNs, m.SampleNs = int64(e.Duration), int64(e.Warmup), int64(e.Sample)
	m.Deadlock = c.deadlock.found
	m.BaseRTTNs = int64(c.fabric.plan.rttNs)
	m.LatenessP50Ns = int64(late.QuantileNs(0.5))
	m.LatenessP99Ns = int64(late.QuantileNs(0.99))
	m.LatenessMaxNs = int64(late.MaxNs)
	m.CausalityViolations = c.counters.causality
	m.HostLateness = result.HostLateness{
		Starts: c.lateStarts(), ACKs: latenessOf(&c.counters.lateACKs),
		Data: latenessOf(&c.counters.lateData),
	}
}

// latenessOf returns what the manifest says of a histogram.
func latenessOf(l *npecn.Lateness) result.Lateness {
	return result.Lateness{
		Count: l.Count(), P50Ns: int64(l.QuantileNs(0.5)), P99Ns: int64(l.QuantileNs(0.99)),
		MaxNs: int64(l.MaxNs),
	}
}

// lateStarts returns how late the first data was of flows that started in the measured time.
func (c *collector) lateStarts() result.Lateness {
	var late []int64
	for _, s := range c.traffic.streams {
		if at, ok := c.events.starts[s.key.Src]; ok {
			late = append(late, int64(at-s.startNs))
		}
	}
	return result.NewLateness(late)
}

func (c *collector) verdict() *verdict {
	return &verdict{
		fabric: c.fabric, lost: c.counters.lost,
		pfcOverflow: c.counters.pfcOverflow, creditsLost: c.counters.creditsLost,
	}
}
