// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/network"
)

// Disturbance is what a link of a wide-area or radio network does to packets, in each direction by
// itself. The seed decides all of it.
type Disturbance struct {
	// ErrorBurst is how many packets in a row a link with an error_rate loses on average. 1 to
	// 1000. Default: each loss is by itself.
	ErrorBurst int `yaml:"error_burst"`
	// Jitter is the most that a packet takes longer, each by a random time. Packets keep their
	// order. 0 to 10s, default 0.
	Jitter Duration `yaml:"jitter"`
	// Reorder is the share of packets that take ReorderDelay longer, and are overtaken by those
	// behind them. 0 to 0.5, default 0. Only Linux has it.
	Reorder Ratio `yaml:"reorder"`
	// ReorderDelay is how much longer these take. 1ns to 10s, required with Reorder.
	ReorderDelay Duration `yaml:"reorder_delay"`
}

// maxErrorBurst is the most that a link loses in a row on average.
const maxErrorBurst = 1000

func (x Disturbance) ofLink() network.Disturbance {
	return network.Disturbance{
		ErrorBurst: float64(x.ErrorBurst), JitterNs: uint64(x.Jitter),
		Reorder: float64(x.Reorder), ReorderNs: uint64(x.ReorderDelay),
	}
}

// Disturbed reports whether a link loses, delays or reorders packets.
func (e *Experiment) Disturbed() bool {
	return slices.ContainsFunc(e.Topology.Network().Links, network.Link.Disturbed)
}

// validateDisturbance checks what the links do that the section at path is about.
func (d *decoder) validateDisturbance(e *Experiment, path string, rate Ratio, x Disturbance) {
	if d.has(path + "error_rate") {
		config.InRange(d.Decoder, path+"error_rate", rate, 0, maxErrorRate)
	}
	if rate > 0 && e.Switch.FlowControl == FlowCBFC {
		d.onlySim(e, path+"error_rate",
			"links that lose packets, and with them credits, are in the simulator only")
	}
	if d.has(path + "error_burst") {
		config.CountInRange(d.Decoder, path+"error_burst", x.ErrorBurst, 1, maxErrorBurst)
		if rate == 0 {
			d.fail(path+"error_burst", "\"error_burst\" needs \"error_rate\"",
				"write error_rate: 1%")
		}
	}
	if d.has(path + "jitter") {
		config.InRange(d.Decoder, path+"jitter", x.Jitter, 0, maxDelay)
	}
	if d.has(path + "reorder") {
		config.InRange(d.Decoder, path+"reorder", x.Reorder, 0, maxErrorRate)
	}
	if d.has(path + "reorder_delay") {
		config.InRange(d.Decoder, path+"reorder_delay", x.ReorderDelay, 1, maxDelay)
	}
	if (x.Reorder > 0) != (x.ReorderDelay > 0) {
		d.fail(path, "\"reorder\" and \"reorder_delay\" need each other",
			"write both, such as reorder: 1%, reorder_delay: 2ms")
	}
	d.needsLinux(e, path+"reorder")
}

// needsLinux notes a key that only Linux knows, if the file has it. It fails if the experiment is
// for another engine.
func (d *decoder) needsLinux(e *Experiment, path string) {
	if !d.has(path) {
		return
	}
	e.linuxOnly = append(e.linuxOnly, path)
	if e.Engine != EngineKernel {
		d.fail(path, fmt.Sprintf("%q is on Linux only", keyOf(path)),
			"write engine: kernel, or remove engine:")
	}
}

// mostMoments is how many times the traces of all links have: the ports have no room for more.
const mostMoments = 1 << 20

// validateLinkTrace reads the trace that a port follows.
func (d *decoder) validateLinkTrace(e *Experiment, path string, l LinkEvent) {
	d.needsLinux(e, path+"trace")
	for _, other := range []string{"rate", "state", "at"} {
		if d.has(path + other) {
			d.fail(path+other, "a port follows its trace for the whole run",
				fmt.Sprintf("remove %q", other))
		}
	}
	if !d.hasRequired(path, "link") || !d.checkKnown(path+"link", "port", l.Port, d.ports) {
		return
	}
	where, text, ok := d.attachedText(path+"trace", e, l.Trace)
	if !ok {
		return
	}
	if e.traces == nil {
		e.traces = map[string][]uint32{}
	}
	moments := d.readMoments(where, text)
	if e.traces[l.Port] = moments; len(moments) > mostMoments {
		d.fail(path+"trace", fmt.Sprintf("%d lines are too many", len(moments)),
			fmt.Sprintf("at most %d in all traces", mostMoments))
	}
}

// readMoments reads a trace of mahimahi.
func (d *decoder) readMoments(file, text string) []uint32 {
	var moments []uint32
	for i, line := range strings.Split(strings.TrimRight(text, "\n"), "\n") {
		ms, err := strconv.ParseUint(strings.TrimSpace(line), 10, 31)
		if err != nil {
			d.failFile(file, i+1, fmt.Sprintf("%q is no time in ms", line),
				"a line of a trace is a whole number")
			return nil
		}
		if n := len(moments); n > 0 && uint32(ms) < moments[n-1] {
			d.failFile(file, i+1, fmt.Sprintf("%d ms is before the line above, %d", ms,
				moments[n-1]), "sort the trace by time")
			return nil
		}
		moments = append(moments, uint32(ms))
	}
	if moments[len(moments)-1] == 0 {
		d.failFile(file, len(moments), "the trace ends at 0 ms", "a trace lasts for 1 ms at least")
		return nil
	}
	return moments
}

// LinkTrace returns the times in ms at which a port sends 1500 bytes; nil if it follows no trace.
func (e *Experiment) LinkTrace(port string) []uint32 { return e.traces[port] }
