// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strconv"

	"github.com/pcn-linux/pcn/internal/goal"
)

// addSchedule adds the messages of a GOAL schedule, each as a flow that waits for others.
func (d *decoder) addSchedule(e *Experiment, file, text string) {
	if d.has("trace.format") || d.has("trace.packet") {
		d.fail("trace", "the file is a GOAL schedule, and no flow file of a simulator",
			"remove format: and packet:")
		return
	}
	schedule, err := goal.Parse(text)
	if err != nil {
		d.failParse(file, err)
		return
	}
	hosts := d.hostsOfRanks(e, len(schedule.Ranks))
	if hosts == nil {
		return
	}
	messages, err := schedule.Messages()
	if err != nil {
		d.failParse(file, err)
		return
	}
	if most := e.Engine.MaxFlows(); len(messages) > most {
		msg, hint := e.tooManyFlows(len(messages))
		d.failFile(file, messages[most].Line, msg, hint)
		return
	}
	first := int32(len(e.Flows))
	for i, m := range messages {
		from, to := hosts[m.From], hosts[m.To]
		start := Duration(m.NotBeforeNs)
		switch {
		case from == to:
			d.failFile(file, m.Line, fmt.Sprintf("rank %d sends to rank %d, and both are on %s",
				m.From, m.To, from), "give each rank a host of its own")
			return
		case e.Duration > 0 && len(m.Waits) == 0 && start >= e.Duration:
			d.failFile(file, m.Line, fmt.Sprintf("rank %d computes until %s, and the run ends at "+
				"%s", m.From, start, e.Duration), "write a longer duration")
			return
		}
		line := e.HostRate(from)
		e.Flows = append(e.Flows, Flow{
			Name: tracedGroup + strconv.Itoa(i), Group: tracedGroup, From: from, To: to,
			Start: start, Size: max(Bytes(m.Bytes), 1), InitialRate: line, LimitRate: line,
			Traced: true,
		})
		for _, w := range m.Waits {
			wait := Wait{Delay: Duration(w.DelayNs), Then: []Part{{first + int32(i), 1}}}
			for _, on := range w.For {
				wait.For = append(wait.For, Part{first + int32(on), 1})
			}
			e.within = append(e.within, wait)
		}
	}
}

// hostsOfRanks returns the host of each rank; nil if that fails.
func (d *decoder) hostsOfRanks(e *Experiment, ranks int) []string {
	hosts, before := d.hosts, len(d.Errs)
	if d.has("trace.ranks") {
		hosts = e.Trace.Ranks
		d.checkAllKnown("trace.ranks", "host", hosts, d.hosts)
		d.checkUnique("trace.ranks", "host", hosts)
	}
	switch {
	case len(d.Errs) > before:
		return nil
	case len(hosts) < ranks:
		d.fail("trace.file", fmt.Sprintf("the schedule has %d ranks, and there are %d hosts for "+
			"them", ranks, len(hosts)), "write a larger topology, or ranks: with more hosts")
		return nil
	}
	return hosts
}
