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

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

//go:embed report.html.tmpl
var pageText string

//go:embed report.css
var styleText string

// Limits of the tables of a run.
const (
	maxPortRows  = 8  // only the busiest ports have rows
	maxGroupRows = 16 // a larger group of flows has one row
)

// Group has the runs of one experiment.
type Group struct {
	Experiment *experiment.Experiment
	Runs       []*result.Run
}

// page is the data of the template.
type page struct {
	Code     liveCode
	Brief    bool // there are no tables of flows and ports, which would make the page large
	Title    string
	of       string        // the experiments, for errors
	Overview []overviewRow // nil for no overview
	Groups   []groupView
}

// groupView is the section of an experiment.
type groupView struct {
	Experiment *experiment.Experiment
	ID         string
	PFC        string   // parameters, in words
	Schemes    []string // parameters of those that were run, in words
	Hash       string
	Cases      []caseView
	Met, Total int // number of expectations
	Compared   []result.CompareOutcome
	Engines    []result.EngineRow // only if several engines ran the same
	Figures    []figureView
	drawn      []*figure
	Network    *netView // nil if it is not drawn
}

// caseView has the runs of one case.
type caseView struct {
	Name       string
	Experiment *experiment.Experiment // of the case
	Runs       []runView
	Met        int // number of expectations
	Outcomes   []outcomeView
	Facts      []fact
	// Only with a trace or a workload:
	Completions []completionRow
	Tiers       []tierRow
}

// runView is one run with its label, which is the same everywhere in its section.
type runView struct {
	*result.Run
	Label string
	Flows []flowRow
	Ports []result.Port
}

type outcomeView struct {
	result.Outcome
	runView
}

// overviewRow is a row of the table of all runs and their costs.
type overviewRow struct {
	Group *groupView
	runView
	Packets          uint64 // sent by ports
	PacketsPerSecond float64
	Expected         tally
	Compared         tally // comparisons of the run's scheme
}

// tally counts met conditions, and has the names of unmet ones.
type tally struct {
	Met, Total int
	Unmet      []string
}

func (t *tally) add(what string, met bool) {
	t.Total++
	if met {
		t.Met++
		return
	}
	t.Unmet = append(t.Unmet, what)
}

type figureView struct {
	Title, Caption string
	SVG            template.HTML // as compact as the page needs it
	drawn          template.HTML
	Number         int    // among the figures that the script draws, from 1 on; 0: none of them
	File           string // name of its files, without ending
	Downloads      []download
	figure         *figure
	live           *liveFigure
}

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

// Write writes the report of one or more runs of an experiment and its cases, in the given order.
// It fails if a run belongs to another experiment.
func Write(w io.Writer, e *experiment.Experiment, runs []*result.Run) error {
	g, err := viewOf(Group{e, runs}, 0)
	if err != nil {
		return err
	}
	return page{Title: e.Title, of: "experiment " + e.Name, Groups: []groupView{*g}}.write(w)
}

// WriteMany writes a report with a section for each group, and a table of all runs and their costs.
// The costs differ between machines.
func WriteMany(w io.Writer, groups []Group) error {
	if len(groups) == 0 {
		return errNoRun
	}
	p := page{}
	var names []string
	for i, g := range groups {
		view, err := viewOf(g, i)
		if err != nil {
			return err
		}
		p.Groups = append(p.Groups, *view)
		p.Overview = append(p.Overview, view.overview()...)
		names = append(names, g.Experiment.Name)
	}
	p.Title = "Runs of " + strings.Join(names, ", ")
	p.of = "experiments " + strings.Join(names, ", ")
	return p.write(w)
}

var errNoRun = errors.New("report: there are no runs (hint: give the folder of a run)")

func (p page) write(w io.Writer) error {
	var views [][]figureView
	for _, g := range p.Groups {
		views = append(views, g.Figures)
	}
	noPDF, err := addDownloads(views)
	if err != nil {
		return err
	}
	t, err := template.New("report").Funcs(template.FuncMap{
		"bytes": formatBytes,
		"time":  formatTime,
		"rate":  formatRate,
		"upper": strings.ToUpper,
		"brief": func() bool { return p.Brief },
	}).Parse(figuresText + pageText)
	if err != nil {
		return fmt.Errorf("parse template of report: %w", err)
	}
	err = writeSmall(w, func(w io.Writer, thrift thrift) error {
		if p.Code, err = pageCode(views, noPDF, thrift); err != nil {
			return err
		}
		p.Brief = thrift.brief
		return t.Execute(w, p)
	})
	if err != nil {
		return fmt.Errorf("write report of %s: %w", p.of, err)
	}
	return nil
}

// viewOf prepares the i-th section.
func viewOf(g Group, i int) (*groupView, error) {
	e := g.Experiment
	if len(g.Runs) == 0 {
		return nil, errNoRun
	}
	for _, r := range g.Runs {
		if r.Manifest.ExperimentSHA256 != e.Hash() {
			return nil, fmt.Errorf("report: a run of scheme %s has experiment %s, SHA-256 %s, "+
				"but others have %s, SHA-256 %s (hint: report them separately)",
				r.Manifest.Scheme, r.Manifest.Experiment, r.Manifest.ExperimentSHA256,
				e.Name, e.Hash())
		}
	}
	cases, err := casesOf(e, viewsOf(g.Runs))
	if err != nil {
		return nil, err
	}
	view := &groupView{
		Experiment: e,
		ID:         fmt.Sprintf("experiment-%d", i+1),
		PFC:        pfcInWords(e.Switch.PFC),
		Schemes:    schemesInWords(e, g.Runs),
		Hash:       e.Hash(),
		Cases:      cases,
		Compared:   result.EvaluateCompare(e, g.Runs),
		Engines:    result.EngineRows(e, g.Runs),
	}
	for _, c := range cases {
		view.Met += c.Met
		view.Total += len(c.Outcomes)
	}
	if view.drawn, err = figuresOf(*view); err == nil {
		view.Figures, err = figureViews("", view.drawn)
	}
	if err == nil {
		view.Network, err = netViewOf(*view)
	}
	if err != nil {
		return nil, fmt.Errorf("draw figures of experiment %s: %w", e.Name, err)
	}
	return view, nil
}

// Sentence says what happened: whether the runs can be believed, and what is as in the paper.
func (g groupView) Sentence() string {
	runs, invalid := g.Runs(), 0
	for _, r := range runs {
		if r.Manifest.Verdict != result.Valid {
			invalid++
		}
	}
	text := "The run is valid"
	switch {
	case len(runs) == 1 && invalid == 1:
		text = "The run is not valid: do not use its numbers"
	case invalid > 0:
		text = fmt.Sprintf("%d of %d runs are not valid: do not use their numbers", invalid,
			len(runs))
	case len(runs) == 2:
		text = "Both runs are valid"
	case len(runs) > 2:
		text = fmt.Sprintf("All %d runs are valid", len(runs))
	}
	results := tally{Met: g.Met, Total: g.Total}
	for _, c := range g.Compared {
		for _, v := range c.Values {
			if v.Judged {
				results.add(c.Compare.What, v.Pass)
			}
		}
		for _, relation := range c.Relations() {
			results.add(relation.Asked, relation.Holds)
		}
	}
	if results.Total == 0 {
		return text + ". Nothing was held against a paper."
	}
	return fmt.Sprintf("%s. %d of %d results are within their bounds.", text, results.Met,
		results.Total)
}

// casesOf sorts runs by case, in the order of the experiment.
func casesOf(e *experiment.Experiment, runs []runView) ([]caseView, error) {
	names := e.CaseNames()
	var cases []caseView
	for _, name := range names {
		c := caseView{Name: name}
		for _, r := range runs {
			if r.Manifest.Case == name {
				c.add(e, r)
			}
		}
		if len(c.Runs) > 0 {
			cases = append(cases, c)
		}
	}
	for i := range cases {
		c := &cases[i]
		var err error
		if c.Experiment, err = e.Case(c.Name); err != nil {
			return nil, fmt.Errorf("report: %w", err)
		}
		c.Facts = factsOf(c.Runs)
		c.Completions, c.Tiers = completionRows(*c), tierRows(*c)
	}
	for _, r := range runs {
		if !slices.Contains(names, r.Manifest.Case) {
			return nil, fmt.Errorf("report: a run of scheme %s has case %q, "+
				"but experiment %s has no such case", r.Manifest.Scheme, r.Manifest.Case, e.Name)
		}
	}
	return cases, nil
}

// add adds a run and evaluates its expectations.
func (c *caseView) add(e *experiment.Experiment, r runView) {
	c.Runs = append(c.Runs, r)
	for _, o := range result.Evaluate(e, r.Run) {
		c.Outcomes = append(c.Outcomes, outcomeView{o, r})
		if o.Pass {
			c.Met++
		}
	}
}

// AllMet reports whether all expectations are met.
func (c caseView) AllMet() bool {
	return c.Met == len(c.Outcomes)
}

// Runs returns the runs of all cases.
func (g groupView) Runs() []runView {
	var runs []runView
	for _, c := range g.Cases {
		runs = append(runs, c.Runs...)
	}
	return runs
}

// Listed returns the runs whose verdict is shown at the top of the section. With several cases,
// these are only invalid runs and runs with a deadlock.
func (g groupView) Listed() []runView {
	runs := g.Runs()
	if len(g.Cases) > 1 {
		runs = slices.DeleteFunc(runs,
			func(r runView) bool {
				return r.Manifest.Verdict == result.Valid &&
					r.Manifest.Deadlock == nil
			})
	}
	return runs
}

// overview returns a row for each run.
func (g *groupView) overview() []overviewRow {
	var rows []overviewRow
	for _, c := range g.Cases {
		for _, r := range c.Runs {
			row := overviewRow{Group: g, runView: r}
			for _, p := range r.Run.Ports {
				row.Packets += p.SentPackets
			}
			if wall := r.Manifest.Wall.TotalS; wall > 0 {
				row.PacketsPerSecond = float64(row.Packets) / wall
			}
			for _, o := range c.Outcomes {
				if o.Label == r.Label {
					row.Expected.add(o.Expect.What, o.Pass)
				}
			}
			row.Compared = g.comparedOf(r.Manifest)
			rows = append(rows, row)
		}
	}
	return rows
}

// comparedOf counts the comparisons that judge a run's scheme on its engine.
func (g *groupView) comparedOf(m result.Manifest) tally {
	var t tally
	for _, o := range g.Compared {
		for _, v := range o.Values {
			if o.Engine == m.RanOn() && v.Scheme == m.Scheme && v.Judged {
				t.add(o.Compare.What, v.Pass)
			}
		}
	}
	return t
}

// viewsOf labels each run by its case and scheme, and by its engine if there are several. Where
// labels would be equal, it adds the seed, then a number.
func viewsOf(runs []*result.Run) []runView {
	several := len(result.EnginesOf(runs)) > 1
	byScheme := func(r *result.Run) string {
		label := result.LabelOf(r.Manifest.Case,
			strings.ToUpper(r.Manifest.Scheme))
		if several {
			label += ", " + string(r.Manifest.RanOn())
		}
		return label
	}
	bySeed := func(r *result.Run) string {
		return fmt.Sprintf("%s, seed %d", byScheme(r),
			r.Manifest.Seed)
	}
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
		views = append(views, runView{Run: r, Label: label, Flows: flowRows(r.Flows),
			Ports: busiest(r.Ports)})
	}
	return views
}

// flowRows returns a row for each controlled flow or large group, and one for all bursts to each
// host.
func flowRows(flows []result.Flow) []flowRow {
	var rows []flowRow
	bursts, groups := make(map[string][]result.Flow), make(map[string][]result.Flow)
	var order []string
	for _, f := range flows {
		if f.Proto != result.UDP {
			groups[f.Group] = append(groups[f.Group], f)
			continue
		}
		if bursts[f.Dst] == nil {
			order = append(order, f.Dst)
		}
		bursts[f.Dst] = append(bursts[f.Dst], f)
	}
	for _, f := range flows {
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
		rows = append(rows, burstRow(dst, bursts[dst]))
	}
	return rows
}

// groupRow returns the row of a large group of controlled flows.
func groupRow(flows []result.Flow) flowRow {
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

func controlledRow(f result.Flow) flowRow {
	return flowRow{
		Name: f.Name, Route: f.Src + " → " + f.Dst, Proto: string(f.Proto),
		Start: formatTime(f.StartNs), End: formatEnd(f.EndNs),
		Received: formatBytes(f.ReceivedBytes), Packets: f.Packets, Marked: f.MarkedPackets,
		CNPs: fmt.Sprintf("%d, %d", f.CNPDecrease, f.CNPIncrease), SendRate: sendRateInWords(f),
		Retransmissions: strconv.FormatUint(f.Retransmissions, 10), ECN: yesNo(f.ECN),
	}
}

// sendRateInWords returns what the sender was at in the end: a rate, and a window if it has one.
func sendRateInWords(f result.Flow) string {
	if f.CwndPackets == 0 {
		return formatRate(f.SendRateBps)
	}
	return fmt.Sprintf("%s, window %d packets", formatRate(f.SendRateBps), f.CwndPackets)
}

func burstRow(dst string, flows []result.Flow) flowRow {
	return sumRow(fmt.Sprintf("%d burst flows", len(flows)), dst, flows)
}

// sumRow sums up several flows: first start, last end, and all data received.
func sumRow(name, dst string, flows []result.Flow) flowRow {
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
			return fmt.Sprintf("%d times slower",
				uint64(1)<<m.DilationShift)
		}},
		{"Warm-up, duration", func(m result.Manifest) string {
			return formatTime(m.WarmupNs) +
				", " + formatTime(m.DurationNs)
		}},
		{"Base round trip", func(m result.Manifest) string { return formatTime(m.BaseRTTNs) }},
		{"Lateness p50, p99, max", func(m result.Manifest) string {
			return strings.Join([]string{formatTime(m.LatenessP50Ns), formatTime(m.LatenessP99Ns),
				formatTime(m.LatenessMaxNs)}, ", ")
		}},
		{"Guest CPU busy", func(m result.Manifest) string {
			return experiment.Quantity{Value: m.GuestCPUBusy, Unit: experiment.UnitShare}.String()
		}},
		{"Packets lost outside the ports",
			func(m result.Manifest) string { return strconv.FormatUint(sum(m.LostPackets), 10) }},
		{"Causality violations",
			func(m result.Manifest) string {
				return strconv.FormatUint(m.CausalityViolations,
					10)
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

func pfcInWords(p experiment.PFC) string {
	only := ""
	if len(p.Schemes) > 0 {
		only = ", for " + strings.ToUpper(strings.Join(p.Schemes, ", ")) + " only"
	}
	switch {
	case p.Off:
		return "off"
	case p.Dynamic != nil:
		return fmt.Sprintf("dynamic, XOFF at %s of the free buffer, XON %s below%s",
			p.Dynamic.Alpha, p.Dynamic.XONOffset, only)
	default:
		return fmt.Sprintf("static, XOFF %s, XON %s%s", p.XOFF, p.XON, only)
	}
}

// schemesInWords returns the main parameters of each scheme that was run.
func schemesInWords(e *experiment.Experiment, runs []*result.Run) []string {
	var words []string
	for _, scheme := range e.Schemes {
		wasRun := slices.ContainsFunc(runs,
			func(r *result.Run) bool { return r.Manifest.Scheme == scheme })
		if text := schemeInWords(e, scheme); wasRun && text != "" {
			words = append(words, strings.ToUpper(scheme)+" "+text)
		}
	}
	return words
}

// schemeInWords returns the parameters of a scheme: all, or where it has presets the name of its set and
// what the experiment gives beside.
func schemeInWords(e *experiment.Experiment, name string) string {
	s, err := e.Scheme(name)
	if err != nil {
		return ""
	}
	var words []string
	if values := e.Values(s); values != nil {
		if set := values.Set(); set != "" {
			words = append(words, "set "+set)
		}
		given := e.Settings(s).Given
		for _, p := range s.Object.Params {
			if strings.HasPrefix(p.Key, "marking.") {
				continue // told below
			}
			if _, ok := given[p.Key]; ok || values.Set() == "" {
				words = append(words, p.Key+" "+values.Get(p.Key).String())
			}
		}
	}
	if m, ok := e.MarkingOf(name); ok {
		words = append(words, fmt.Sprintf("marks from %s to %s by up to %s", m.KMin, m.KMax, m.PMax))
	}
	if s.TCD {
		words = append(words, fmt.Sprintf("max(T_on) %s", e.MaxTon()))
	}
	return strings.Join(words, ", ")
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

// formatBytes returns a size with 4 significant digits.
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
