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
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
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
	// Seeds sums up several seeds, on each engine: their medians are what the report shows beside
	// figures over time, which are of Runs, one seed's. Empty for one seed.
	Seeds []*result.SeedsSummary
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
	About      about
	PFC        string   // parameters, in words
	Schemes    []string // parameters of those that were run, in words
	Hash       string
	Cases      []caseView
	Compared   []result.CompareOutcome
	Engines    []result.EngineRow // only if several engines ran the same
	Seeds      seedsView          // of several seeds
	Metrics    []metricRow
	Figures    []figureView
	found      []*figure // those of the finding, the first of drawn
	drawn      []*figure
	Network    *netView // nil if it is not drawn
	Ports      *portMap // in its place, of a large network
}

// caseView has the runs of one case.
type caseView struct {
	Name       string
	Experiment *experiment.Experiment // of the case
	Runs       []runView
	Met        int // number of expectations
	Outcomes   []outcomeView
	Measured   string // heading of what was measured
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
	result.Outcome // of several seeds, with the medians
	runView
	overSeeds string // the medians and their intervals, of several seeds
}

// Value returns what was measured, as text.
func (o outcomeView) Value() string { return cmp.Or(o.overSeeds, o.Outcome.Value()) }

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

// Write writes the report of one or more runs of an experiment and its cases, in the given order.
// It fails if a run belongs to another experiment.
func Write(w io.Writer, g Group) error {
	view, err := viewOf(g, 0)
	if err != nil {
		return err
	}
	e := g.Experiment
	return page{Title: e.Title, of: "experiment " + e.Name, Groups: []groupView{*view}}.write(w)
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
	err = drawPage(w, t, views, func(code liveCode, thrift thrift) any {
		p.Code, p.Brief = code, thrift.brief
		return p
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
	cases, err := casesOf(e, viewsOf(g.Runs), g.Seeds)
	if err != nil {
		return nil, err
	}
	several, err := seedsOf(g)
	if err != nil {
		return nil, err
	}
	view := &groupView{
		Experiment: e,
		ID:         fmt.Sprintf("experiment-%d", i+1),
		About:      aboutOf(e.About, schemesOf(g.Runs), e.Catalogue()),
		PFC:        pfcInWords(e.Switch.PFC),
		Schemes:    schemesInWords(e, g.Runs),
		Hash:       e.Hash(),
		Cases:      cases,
		Seeds:      several,
		Metrics:    metricRows(e, g),
	}
	view.Compared, view.Engines = result.EvaluateCompare(e, g.Runs), result.EngineRows(e, g.Runs)
	if several.Count > 0 {
		view.Compared, view.Engines = comparedOverSeeds(g.Seeds), nil
	}
	for i := range cases {
		view.Cases[i].Measured = several.Measured()
	}
	view.found = view.findings()
	if view.drawn, err = figuresOf(*view); err == nil {
		view.Figures, err = figureViews("", view.drawn)
	}
	view.explain()
	view.About.addControls(e.FlowGroups)
	if err == nil {
		view.Network, err = netViewOf(*view)
	}
	n := cases[0].Experiment.Topology.Network()
	if err == nil && len(n.Nodes()) > maxViewNodes {
		view.Ports = portMapOf(alike(cases, n), n, view.ID+"-ports")
	}
	if err != nil {
		return nil, fmt.Errorf("draw figures of experiment %s: %w", e.Name, err)
	}
	return view, nil
}

// Finding says what was found: what the experiment compares or, if that is nothing, what its
// metrics or figures show.
func (g groupView) Finding() string {
	text := ""
	for _, f := range g.found {
		if f.sentence != "" {
			text += f.sentence + ". "
		}
	}
	if text == "" {
		text = figureFinding(g.drawn)
	}
	return strings.TrimSpace(text)
}

// explain explains what the section's texts mention.
func (g *groupView) explain() {
	texts := []string{g.Experiment.Title}
	for _, f := range g.drawn {
		texts = append(texts, f.heading(), f.caption)
	}
	g.About.explain(texts...)
}

// findings draws what was found, if the experiment compares schemes, or has a metric that differs
// between its cases. A report begins with these sentences, and then these figures.
func (g groupView) findings() []*figure {
	var figures []*figure
	compared := detectorsTogether(g.Compared)
	for _, o := range compared[:min(len(compared), maxFindings)] {
		figures = append(figures, compareFigure(o))
	}
	rows := metricOverCases(g.Metrics)
	if figures == nil && len(g.Cases) > 1 && rows != nil {
		figures = append(figures, metricFigure(rows))
	}
	return figures
}

// figureFinding returns the sentence of the first figure that is of every case. If there is none it
// is the first figure's, which may be "".
func figureFinding(all []*figure) string {
	if len(all) == 0 {
		return ""
	}
	f := all[0]
	if i := slices.IndexFunc(all, ofEveryCase); i >= 0 {
		f = all[i]
	}
	if f.sentence == "" {
		return ""
	}
	return f.sentence + "."
}

// ofEveryCase reports whether a figure has a sentence that is not of one case among several.
func ofEveryCase(f *figure) bool { return !f.oneCase && f.sentence != "" }

// maxFindings is how many comparisons the first sentences of a report have.
const maxFindings = 2

// Sentence says whether the runs can be believed, and how much is as in the paper.
func (g groupView) Sentence() string {
	runs, invalid := len(g.Runs()), 0
	for _, r := range g.Runs() {
		if r.Manifest.Verdict != result.Valid {
			invalid++
		}
	}
	if g.Seeds.Count > 0 {
		runs, invalid = g.Seeds.Runs, g.Seeds.Invalid
	}
	text := "The run is valid"
	switch {
	case runs == 1 && invalid == 1:
		text = "The run is not valid: do not use its numbers"
	case invalid > 0:
		text = fmt.Sprintf("%d of %d runs are not valid: do not use their numbers", invalid, runs)
	case runs == 2:
		text = "Both runs are valid"
	case runs > 2:
		text = fmt.Sprintf("All %d runs are valid", runs)
	}
	what := "results"
	if g.Seeds.Count > 0 {
		text = fmt.Sprintf("Medians of %d seeds. %s", g.Seeds.Count, text)
		what = "medians"
	}
	results := g.judged()
	if results.Total == 0 {
		return text + ". Nothing was held against a paper."
	}
	return fmt.Sprintf("%s. %d of %d %s are within their bounds%s.", text, results.Met,
		results.Total, what, notMet(results.Unmet))
}

// HasPaper reports whether a comparison has a number of a paper.
func (g groupView) HasPaper() bool {
	return slices.ContainsFunc(g.Compared, func(o result.CompareOutcome) bool {
		return slices.ContainsFunc(o.Values, func(v result.CompareValue) bool {
			return v.Paper != nil
		})
	})
}

// judged counts what has bounds, expectations and comparisons.
func (g groupView) judged() tally {
	var results tally
	for _, c := range g.Cases {
		for _, o := range c.Outcomes {
			results.add(o.Expect.What+" ("+o.Label+")", o.Pass)
		}
	}
	for _, c := range g.Compared {
		for _, v := range c.Values {
			if v.Judged {
				results.add(c.Compare.What+" ("+strings.ToUpper(v.Scheme)+")", v.Pass)
			}
		}
		for _, relation := range c.Relations() {
			results.add(c.Compare.What+" ("+relation.Asked+")", relation.Holds)
		}
	}
	return results
}

// notMet names what is not within its bounds, if that is little: otherwise the tables do.
func notMet(unmet []string) string {
	const most = 3
	if len(unmet) == 0 || len(unmet) > most {
		return ""
	}
	return "; not: " + strings.Join(unmet, "; ")
}

// casesOf sorts runs by case, in the order of the experiment. Of several seeds, it judges the
// medians.
func casesOf(
	e *experiment.Experiment, runs []runView, seeds []*result.SeedsSummary,
) ([]caseView, error) {
	names := e.CaseNames()
	var cases []caseView
	for _, name := range names {
		c := caseView{Name: name}
		for _, r := range runs {
			if r.Manifest.Case == name {
				c.add(r, outcomesOf(e, r.Run, seeds))
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

// add adds a run and what it was expected to be.
func (c *caseView) add(r runView, outcomes []outcomeView) {
	c.Runs = append(c.Runs, r)
	for _, o := range outcomes {
		o.runView = r
		c.Outcomes = append(c.Outcomes, o)
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

// Listed returns the runs whose verdict is shown at the top of the section: invalid ones, and those
// with a deadlock.
func (g groupView) Listed() []runView {
	return slices.DeleteFunc(g.Runs(), func(r runView) bool {
		return r.Manifest.Verdict == result.Valid && r.Manifest.Deadlock == nil
	})
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
		label := result.LabelOf(r.Manifest.Case, strings.ToUpper(r.Manifest.Scheme))
		if several {
			label += ", " + string(r.Manifest.RanOn())
		}
		return label
	}
	bySeed := func(r *result.Run) string {
		return fmt.Sprintf("%s, seed %d", byScheme(r), r.Manifest.Seed)
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
