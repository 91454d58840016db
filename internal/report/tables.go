// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// This file has the tables of a report: its flows, its ports, and facts of its runs.

// flowRow describes a flow, all flows of a large group, or all bursts to one host.
type flowRow struct {
	Name, Route, Proto, Start, End, Received string
	Packets, Marked                          uint64
	CNPs, SendRate, Retransmissions, ECN     string // empty for bursts
}

// fact is a field of the manifest, with a value for each run.
type fact struct {
	Name   string
	Values []string
}

// flowRows returns a row for each controlled flow or large group, and one for all bursts to each
// host.
func flowRows(flows []result.Flow) []flowRow {
	var rows []flowRow
	bursts, groups := make(map[string][]*result.Flow), make(map[string][]*result.Flow)
	var order []string
	for i := range flows { // which may be a million
		f := &flows[i]
		if f.Proto != result.UDP {
			groups[f.Group] = append(groups[f.Group], f)
			continue
		}
		if bursts[f.Dst] == nil {
			order = append(order, f.Dst)
		}
		bursts[f.Dst] = append(bursts[f.Dst], f)
	}
	for i := range flows {
		f := &flows[i]
		group := groups[f.Group]
		switch {
		case f.Proto == result.UDP:
		// results of older versions have no groups
		case len(group) <= maxGroupRows || f.Group == "":
			rows = append(rows, controlledRow(f))
		case f.Name == group[0].Name:
			rows = append(rows, groupRow(group))
		}
	}
	for _, dst := range order {
		rows = append(rows, sumRow(fmt.Sprintf("%d burst flows", len(bursts[dst])), dst,
			bursts[dst]))
	}
	return rows
}

// groupRow returns the row of a large group of controlled flows.
func groupRow(flows []*result.Flow) flowRow {
	row := sumRow(fmt.Sprintf("%s, %d flows", flows[0].Group, len(flows)), receivers(flows), flows)
	var decrease, increase, retransmissions uint64
	ecn := true
	for _, f := range flows {
		decrease += f.CNPDecrease
		increase += f.CNPIncrease
		retransmissions += f.Retransmissions
		ecn = ecn && f.ECN
	}
	row.CNPs, row.Retransmissions, row.ECN = fmt.Sprintf("%d, %d", decrease, increase),
		strconv.FormatUint(retransmissions, 10), yesNo(ecn)
	return row
}

func controlledRow(f *result.Flow) flowRow {
	return flowRow{
		Name: f.Name, Route: f.Src + " → " + f.Dst, Proto: string(f.Proto),
		Start: formatTime(f.StartNs), End: formatEnd(f.EndNs),
		Received: formatBytes(f.ReceivedBytes), Packets: f.Packets, Marked: f.MarkedPackets,
		CNPs: fmt.Sprintf("%d, %d", f.CNPDecrease, f.CNPIncrease), SendRate: sendRateInWords(f),
		Retransmissions: strconv.FormatUint(f.Retransmissions, 10), ECN: yesNo(f.ECN),
	}
}

// sendRateInWords returns what the sender was at in the end: a rate, and a window if it has one.
func sendRateInWords(f *result.Flow) string {
	if f.CwndPackets == 0 {
		return formatRate(f.SendRateBps)
	}
	return fmt.Sprintf("%s, window %d packets", formatRate(f.SendRateBps), f.CwndPackets)
}

// sumRow sums up several flows: first start, last end, and all data received.
func sumRow(name, dst string, flows []*result.Flow) flowRow {
	first := flows[0]
	received, packets, marked := uint64(0), uint64(0), uint64(0)
	start, end := first.StartNs, first.EndNs
	for _, f := range flows {
		received += f.ReceivedBytes
		packets += f.Packets
		marked += f.MarkedPackets
		start = min(start, f.StartNs)
		if end != nil && (f.EndNs == nil || *f.EndNs > *end) {
			end = f.EndNs
		}
	}
	return flowRow{
		Name: name, Route: "→ " + dst, Proto: string(first.Proto), Start: formatTime(start),
		End:      formatEnd(end),
		Received: formatBytes(received), Packets: packets, Marked: marked,
	}
}

// busiest returns the ports with the longest queues and, for equal queues, the most bytes sent.
// Idle ports are in the order of names, whatever order an engine has them in.
func busiest(ports []result.Port) []result.Port {
	sorted := slices.SortedStableFunc(slices.Values(ports), func(a, b result.Port) int {
		return cmp.Or(-cmp.Compare(a.QueueMaxBytes, b.QueueMaxBytes),
			-cmp.Compare(a.SentBytes, b.SentBytes), cmp.Compare(a.Name, b.Name))
	})
	return sorted[:min(len(sorted), maxPortRows)]
}

// factsOf returns the manifests of the runs side by side, without the costs.
func factsOf(runs []runView) []fact {
	var facts []fact
	for _, f := range []struct {
		name  string
		value func(m result.Manifest) string
	}{
		{"Tool", func(m result.Manifest) string { return m.Tool }},
		{"Kernel", func(m result.Manifest) string { return cmp.Or(m.Kernel, m.Engine) }},
		{"QEMU", func(m result.Manifest) string { return cmp.Or(m.QEMU, "none") }},
		{"Deterministic", func(m result.Manifest) string { return yesNo(m.Deterministic) }},
		{"Seed", func(m result.Manifest) string { return strconv.FormatUint(m.Seed, 10) }},
		{"Dilation", func(m result.Manifest) string {
			return fmt.Sprintf("%d times slower", uint64(1)<<m.DilationShift)
		}},
		{"Warm-up, duration", func(m result.Manifest) string {
			return formatTime(m.WarmupNs) + ", " + formatTime(m.DurationNs)
		}},
		{"Base round trip", func(m result.Manifest) string { return formatTime(m.BaseRTTNs) }},
		{"Lateness p50, p99, max", func(m result.Manifest) string {
			return strings.Join([]string{formatTime(m.LatenessP50Ns), formatTime(m.LatenessP99Ns),
				formatTime(m.LatenessMaxNs)}, ", ")
		}},
		{"Guest CPU busy", func(m result.Manifest) string {
			return experiment.Quantity{Value: m.GuestCPUBusy, Unit: experiment.UnitShare}.String()
		}},
		{"Packets lost outside the ports", func(m result.Manifest) string {
			return strconv.FormatUint(sum(m.LostPackets), 10)
		}},
		{"Causality violations", func(m result.Manifest) string {
			return strconv.FormatUint(m.CausalityViolations, 10)
		}},
	} {
		line := fact{Name: f.name}
		for _, r := range runs {
			line.Values = append(line.Values, f.value(r.Manifest))
		}
		facts = append(facts, line)
	}
	return facts
}

func sum(counts map[string]uint64) uint64 {
	total := uint64(0)
	for _, n := range counts {
		total += n
	}
	return total
}
