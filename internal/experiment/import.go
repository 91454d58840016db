// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/goal"
	"github.com/pcn-linux/pcn/internal/hpcc"
	"github.com/pcn-linux/pcn/internal/network"
	"github.com/pcn-linux/pcn/internal/workload"
)

// Largest numbers of TCP flows of a run. On Linux each has a port of its own.
const (
	maxTCPFlows       = 45_000
	maxSimulatedFlows = 2_000_000
)

// MaxFlows returns how many TCP flows the engine can run.
func (e Engine) MaxFlows() int {
	if e == EngineSim {
		return maxSimulatedFlows
	}
	return maxTCPFlows
}

// tooManyFlows returns the message and the hint for so many flows.
func (e *Experiment) tooManyFlows(n int) (msg, hint string) {
	return fmt.Sprintf("%d flows are too many", n), fmt.Sprintf("at most %d", e.Engine.MaxFlows())
}

// importTopology reads the topology's file. The rate of the topology becomes that of the fastest
// host link, until it is known which hosts have traffic.
func (d *decoder) importTopology(e *Experiment) {
	t := &e.Topology
	t.Rate, t.Delay = 0, 0
	file, text, ok := d.attachedText("topology.file", e, t.File)
	if !ok {
		return
	}
	parsed, err := hpcc.ParseTopology(text)
	if err != nil {
		d.failParse(file, err)
		return
	}
	for _, l := range parsed.Links {
		rate, delay := Rate(l.RateBps), Duration(l.DelayNs)
		switch {
		case rate < leastRate || rate > e.maxRate():
			d.failFile(file, l.Line, fmt.Sprintf("%s is out of range", rate),
				fmt.Sprintf("%s to %s", leastRate, e.maxRate()))
			return
		case delay < e.minDelay() || delay > maxDelay:
			d.failFile(file, l.Line,
				fmt.Sprintf("%s is out of range", delay),
				fmt.Sprintf("%s to %s", e.minDelay(), maxDelay))
			return
		}
		if delay < minDelay || rate > maxRate {
			e.simOnly = append(e.simOnly, "topology.file")
		}
		if !parsed.Switch[l.A] || !parsed.Switch[l.B] {
			t.Rate = max(t.Rate, rate)
		}
	}
	if parsed.Surplus > 0 {
		e.warn("%s:%d: the file says that it has %d links, and has more: the number rules, as in "+
			"the simulator", t.File, parsed.Surplus, len(parsed.Links))
	}
	t.Imported = network.Import(parsed)
}

// tracedGroup is the group of a trace's flows.
const tracedGroup = "t"

// addTrace adds the flows of the trace's file.
func (d *decoder) addTrace(e *Experiment) {
	if !d.has("trace") || !d.hasRequired("trace.", "file") {
		return
	}
	file, text, ok := d.attachedText("trace.file", e, e.Trace.File)
	if !ok {
		return
	}
	if goal.Is(text) {
		d.addSchedule(e, file, text)
		return
	}
	if d.has("trace.ranks") {
		d.fail("trace.ranks", "\"ranks\" is for GOAL schedules", "remove it")
		return
	}
	if !d.checkFormat(e, text) {
		return
	}
	flows, lines, surplus, err := e.Trace.parse(text, e.HostRate)
	if err != nil {
		d.failParse(file, err)
		return
	}
	if surplus > 0 {
		e.warn("%s:%d: the file says that it has %d flows, and has more: the number rules, as in "+
			"the simulator", e.Trace.File, surplus, len(flows))
	}
	if most := e.Engine.MaxFlows(); len(flows) > most {
		msg, hint := e.tooManyFlows(len(flows))
		d.failFile(file, lines[most], msg, hint)
		return
	}
	for i, f := range flows {
		if msg, hint := d.checkTraced(e, f); msg != "" {
			d.failFile(file, lines[i], msg, hint)
			return // further flows probably have the same mistake
		}
		if f.Priority >= Priorities {
			e.simOnly = append(e.simOnly, "trace.file")
		}
		line := e.HostRate(f.Src)
		e.Flows = append(e.Flows, Flow{
			Name: tracedGroup + strconv.Itoa(i), Group: tracedGroup, From: f.Src, To: f.Dst,
			Priority: int(f.Priority), Start: Duration(f.StartNs), Size: Bytes(f.SizeBytes),
			InitialRate: line, LimitRate: line, Traced: true,
		})
	}
}

// FlowFormat is the simulator that a flow file is for.
type FlowFormat string

// The simulators.
const (
	FlowsHPCC FlowFormat = "hpcc"
	FlowsRDMA FlowFormat = "ns3-rdma"
)

func flowFormats() []FlowFormat { return []FlowFormat{FlowsHPCC, FlowsRDMA} }

// checkFormat checks what a flow file is said to be.
func (d *decoder) checkFormat(e *Experiment, text string) bool {
	ok := d.checkKnown("trace.format", "format", string(e.Trace.Format), toStrings(flowFormats()))
	switch {
	case d.has("trace.format") && workload.IsTrace(text):
		d.fail("trace.format", "the file is a trace in CSV, and no flow file of a simulator",
			"remove format:")
		return false
	case d.has("trace.packet") && e.Trace.Format != FlowsRDMA:
		d.fail("trace.packet", "\"packet\" is for flow files of ns3-rdma",
			"write format: ns3-rdma")
		return false
	case e.Trace.Packet < 1 || e.Trace.Packet > 9000:
		config.InRange(d.Decoder, "trace.packet", e.Trace.Packet, 1, 9000)
		return false
	}
	return ok
}

// parse parses a trace or a flow file; surplus is the first line with a flow too many, or 0. Of a
// flow file, the first flow starts at t = 0, and the lowest priority group is priority 0.
func (t Trace) parse(
	text string, line func(host string) Rate,
) (flows []workload.Flow, lines []int, surplus int, err error) {
	if workload.IsTrace(text) {
		flows, lines, err = workload.ParseTrace(text)
		return flows, lines, 0, err
	}
	list, surplus, err := t.parseFlows(text, line)
	if err != nil {
		return nil, nil, 0, err
	}
	var first uint64
	var lowest int
	for i, f := range list {
		if i == 0 {
			first, lowest = f.StartNs, f.Priority
		}
		first, lowest = min(first, f.StartNs), min(lowest, f.Priority)
	}
	for _, f := range list {
		flows = append(flows, workload.Flow{
			StartNs: int64(f.StartNs - first), Src: network.ImportedHost(f.From),
			Dst: network.ImportedHost(f.To), SizeBytes: f.SizeBytes,
			Priority: uint8(f.Priority - lowest),
		})
		lines = append(lines, f.Line)
	}
	return flows, lines, surplus, nil
}

// parseFlows parses a flow file. Flows here end with their data. So a flow of ns3-rdma must be able
// to send its packets before it stops, at line rate; its stop means nothing more.
func (t Trace) parseFlows(
	text string, line func(host string) Rate,
) (flows []hpcc.Flow, surplus int, err error) {
	if t.Format != FlowsRDMA {
		return hpcc.ParseFlows(text)
	}
	list, err := hpcc.ParseStopFlows(text)
	if err != nil {
		return nil, 0, err
	}
	for _, f := range list {
		f.SizeBytes = f.Packets * uint64(t.Packet)
		needsNs := float64(f.SizeBytes) * 8e9 /
			float64(max(line(network.ImportedHost(f.From)), 1))
		if lasts := f.StopNs - f.StartNs; needsNs > float64(lasts) {
			return nil, 0, &Error{Line: f.Line, Msg: fmt.Sprintf("the flow stops after %s, "+
				"before its %d packets can be sent: flows here end with their data. Write fewer "+
				"packets", Duration(lasts), f.Packets)}
		}
		flows = append(flows, f.Flow)
	}
	return flows, 0, nil
}

// checkTraced returns the mistake in a flow of a trace and a hint; "" if there is none.
func (d *decoder) checkTraced(e *Experiment, f workload.Flow) (msg, hint string) {
	for _, host := range []string{f.Src, f.Dst} {
		if d.isHost != nil && !d.isHost[host] {
			return d.notAHost(host)
		}
	}
	start := Duration(f.StartNs)
	switch {
	case f.Src == f.Dst:
		return fmt.Sprintf("flow goes from %s to itself", f.Src), ""
	case int(f.Priority) >= e.priorities():
		return fmt.Sprintf("priority %d is out of range", f.Priority),
			fmt.Sprintf("0 to %d", e.priorities()-1)
	case e.Duration > 0 && (start < -e.Warmup || start >= e.Duration):
		return fmt.Sprintf("start %s is out of range", start),
			fmt.Sprintf("%s to %s, by warmup: and duration:", -e.Warmup, e.Duration-1)
	}
	return "", ""
}

// notAHost returns the mistake of a flow that begins or ends at what is no host. A flow file of a
// simulator has numbers of nodes, which the mistake names.
func (d *decoder) notAHost(host string) (msg, hint string) {
	number, isNumber := strings.CutPrefix(host, "H")
	hint = "flows are between hosts: " + inShort(d.hosts)
	switch {
	case d.isSwitch[host]:
		return fmt.Sprintf("%s is a switch", host), hint
	case isNumber && d.isSwitch["S"+number]:
		return fmt.Sprintf("node %s is a switch, S%[1]s", number), hint
	}
	return fmt.Sprintf("unknown host %q", host), config.Suggest(host, d.hosts)
}
