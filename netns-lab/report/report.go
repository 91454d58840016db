// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	_ "embed"
	"errors"
	"fmt"
	"html/template"
	"io"
	"slices"
	"strconv"
	"strings"

	"pcn/netns-lab/experiment"
	"pcn/netns-lab/result"
)

//go:embed report.html.tmpl
var pageText string

//go:embed report.css
var styleText string

// maxPortRows bounds the table of the busiest ports of a run.
const maxPortRows = 8

// page is what the template shows.
type page struct {
	Style      template.CSS
	Experiment *experiment.Experiment
	PFC, PCN   string // parameters, in words; PCN is empty if no run is of it
	Hash       string
	Runs       []runView
	Met, Total int // expectations
	Outcomes   []outcomeView
	Figures    []figureView
	Facts      []fact
}

// runView is one run, under the label it has everywhere in the report.
type runView struct {
	*result.Run
	Label string
	Flows []flowRow
	Ports []result.Port
}

type outcomeView struct {
	result.Outcome
	Label string
}

// figureView is one figure.
type figureView struct {
	Title, Caption string
	SVG            template.HTML
}

// flowRow is a flow, or all flows of the bursts to one host.
type flowRow struct {
	Name, Route, Proto, Start, End, Received string
	Packets, Marked                          uint64
	CNPs, SendRate, Retransmissions, ECN     string // empty for bursts
}

// fact is a line of the manifests, with a value for each run.
type fact struct {
	Name   string
	Values []string
}

// Write writes the report of one or more runs of an experiment, in the order given.
// It is an error if one of them is of another experiment.
func Write(w io.Writer, e *experiment.Experiment, runs []*result.Run) error {
	if len(runs) == 0 {
		return errors.New("report: there is no run (hint: give the folder of a run)")
	}
	for _, r := range runs {
		if r.Manifest.ExperimentSHA256 != e.Hash() {
			return fmt.Errorf("report: run of scheme %s is of experiment %s, SHA-256 %s, not of %s, SHA-256 %s (hint: report them apart)",
				r.Manifest.Scheme, r.Manifest.Experiment, r.Manifest.ExperimentSHA256, e.Name, e.Hash())
		}
	}
	views := viewsOf(runs)
	figures, err := drawAll(e, views)
	if err != nil {
		return fmt.Errorf("draw figures of experiment %s: %w", e.Name, err)
	}
	p := page{
		Style:      template.CSS(styleText),
		Experiment: e,
		PFC:        pfcInWords(e.Switch.PFC),
		PCN:        pcnInWords(e.PCN, runs),
		Hash:       e.Hash(),
		Runs:       views,
		Figures:    figures,
		Facts:      factsOf(views),
	}
	for _, v := range views {
		for _, o := range result.Evaluate(e, v.Run) {
			p.Outcomes = append(p.Outcomes, outcomeView{o, v.Label})
			p.Total++
			if o.Pass {
				p.Met++
			}
		}
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"bytes": formatBytes,
		"time":  formatTime,
		"rate":  formatRate,
	}).Parse(pageText)
	if err != nil {
		return fmt.Errorf("parse template of report: %w", err)
	}
	if err := t.Execute(w, p); err != nil {
		return fmt.Errorf("write report of experiment %s: %w", e.Name, err)
	}
	return nil
}

// viewsOf labels each run by its scheme, and by its seed and number where that is
// not enough to tell it from another.
func viewsOf(runs []*result.Run) []runView {
	byScheme := func(r *result.Run) string { return strings.ToUpper(r.Manifest.Scheme) }
	bySeed := func(r *result.Run) string { return fmt.Sprintf("%s, seed %d", byScheme(r), r.Manifest.Seed) }
	count := make(map[string]int)
	for _, r := range runs {
		count[byScheme(r)]++
		count[bySeed(r)]++
	}
	var views []runView
	for i, r := range runs {
		label := byScheme(r)
		if count[label] > 1 {
			label = bySeed(r)
		}
		if count[label] > 1 {
			label = fmt.Sprintf("%s, run %d", label, i+1)
		}
		views = append(views, runView{Run: r, Label: label, Flows: flowRows(r.Flows), Ports: busiest(r.Ports)})
	}
	return views
}

// flowRows returns a row for each controlled flow, and one for all bursts to a host.
func flowRows(flows []result.Flow) []flowRow {
	var rows []flowRow
	bursts := make(map[string][]result.Flow)
	var order []string
	for _, f := range flows {
		if f.Proto != result.UDP {
			rows = append(rows, controlledRow(f))
			continue
		}
		if bursts[f.Dst] == nil {
			order = append(order, f.Dst)
		}
		bursts[f.Dst] = append(bursts[f.Dst], f)
	}
	for _, dst := range order {
		rows = append(rows, burstRow(dst, bursts[dst]))
	}
	return rows
}

func controlledRow(f result.Flow) flowRow {
	return flowRow{
		Name: f.Name, Route: f.Src + " → " + f.Dst, Proto: string(f.Proto), Start: formatTime(f.StartNs), End: formatEnd(f.EndNs),
		Received: formatBytes(f.ReceivedBytes), Packets: f.Packets, Marked: f.MarkedPackets,
		CNPs: fmt.Sprintf("%d, %d", f.CNPDecrease, f.CNPIncrease), SendRate: formatRate(f.SendRateBps),
		Retransmissions: strconv.FormatUint(f.Retransmissions, 10), ECN: yesNo(f.ECN),
	}
}

func burstRow(dst string, flows []result.Flow) flowRow {
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
		Name: fmt.Sprintf("%d burst flows", len(flows)), Route: "→ " + dst, Proto: string(first.Proto), Start: formatTime(start), End: formatEnd(end),
		Received: formatBytes(received), Packets: packets, Marked: marked,
	}
}

// busiest returns the ports with the longest queues and, among equals, most bytes sent.
func busiest(ports []result.Port) []result.Port {
	sorted := slices.SortedStableFunc(slices.Values(ports), func(a, b result.Port) int {
		return cmp.Or(-cmp.Compare(a.QueueMaxBytes, b.QueueMaxBytes), -cmp.Compare(a.SentBytes, b.SentBytes))
	})
	return sorted[:min(len(sorted), maxPortRows)]
}

// factsOf returns the manifests of the runs side by side, but for the wall clock.
func factsOf(runs []runView) []fact {
	var facts []fact
	for _, f := range []struct {
		name  string
		value func(m result.Manifest) string
	}{
		{"Tool", func(m result.Manifest) string { return m.Tool }},
		{"Kernel", func(m result.Manifest) string { return m.Kernel }},
		{"QEMU", func(m result.Manifest) string { return cmp.Or(m.QEMU, "none") }},
		{"Deterministic", func(m result.Manifest) string { return yesNo(m.Deterministic) }},
		{"Seed", func(m result.Manifest) string { return strconv.FormatUint(m.Seed, 10) }},
		{"Dilation", func(m result.Manifest) string { return fmt.Sprintf("%d times slower", uint64(1)<<m.DilationShift) }},
		{"Warm-up, duration", func(m result.Manifest) string { return formatTime(m.WarmupNs) + ", " + formatTime(m.DurationNs) }},
		{"Base round trip", func(m result.Manifest) string { return formatTime(m.BaseRTTNs) }},
		{"Lateness p50, p99, max", func(m result.Manifest) string {
			return strings.Join([]string{formatTime(m.LatenessP50Ns), formatTime(m.LatenessP99Ns), formatTime(m.LatenessMaxNs)}, ", ")
		}},
		{"Guest CPU busy", func(m result.Manifest) string {
			return experiment.Quantity{Value: m.GuestCPUBusy, Unit: experiment.UnitShare}.String()
		}},
		{"Packets lost outside the ports", func(m result.Manifest) string { return strconv.FormatUint(sum(m.LostPackets), 10) }},
		{"Causality violations", func(m result.Manifest) string { return strconv.FormatUint(m.CausalityViolations, 10) }},
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

func pfcInWords(p experiment.PFC) string {
	if p.Dynamic != nil {
		return fmt.Sprintf("dynamic, XOFF at %s of the free buffer, XON %s below", p.Dynamic.Alpha, p.Dynamic.XONOffset)
	}
	return fmt.Sprintf("static, XOFF %s, XON %s", p.XOFF, p.XON)
}

func pcnInWords(p experiment.PCN, runs []*result.Run) string {
	isPCN := func(r *result.Run) bool { return r.Manifest.Scheme == "pcn" }
	if !slices.ContainsFunc(runs, isPCN) {
		return ""
	}
	return fmt.Sprintf("T %s, T_jitter %s, w_min %s, w_max %s, congested above %s", p.T, p.TJitter, p.WMin, p.WMax, p.CongestedShare)
}

func formatTime(ns int64) string {
	return experiment.Quantity{Value: float64(ns), Unit: experiment.UnitTime}.String()
}

func formatRate(bps uint64) string {
	return experiment.Quantity{Value: float64(bps), Unit: experiment.UnitRate}.String()
}

func formatEnd(ns *int64) string {
	if ns == nil {
		return "not ended"
	}
	return formatTime(*ns)
}

// formatBytes returns a size to 4 significant digits.
func formatBytes(b uint64) string {
	scale, unit := 1.0, "B"
	switch {
	case b >= 1e6:
		scale, unit = 1e6, "MB"
	case b >= 1e3:
		scale, unit = 1e3, "KB"
	}
	return strconv.FormatFloat(float64(b)/scale, 'g', 4, 64) + unit
}

func yesNo(b bool) string {
	if b {
		return "yes"
	}
	return "no"
}
