// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"maps"
	"slices"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/jsonout"
	"github.com/pcn-linux/pcn/internal/reproduce"
	"github.com/pcn-linux/pcn/internal/sweep"
)

// sweptJSON is what pcn sweep --json prints.
type sweptJSON struct {
	Sweep  string      `json:"sweep"`   // name of the sweep
	Pass   bool        `json:"pass"`    // all runs are valid, and all bounds are met
	Runs   int         `json:"runs"`    // how many there are, invalid ones too
	Means  []meanJSON  `json:"means"`   // one for each point, scheme and metric
	Bounds []boundJSON `json:"bounds"`  // one for each bound of the file
	Not    []notValid  `json:"invalid"` // runs that are in no mean
}

// meanJSON is the mean of a metric over the seeds, with its 95% confidence interval.
type meanJSON struct {
	Point  string         `json:"point"`  // values of its parameters
	Scheme string         `json:"scheme"` // congestion control of the flows
	Metric string         `json:"metric"` // its name in the sweep's file
	Unit   string         `json:"unit"`   // ns, bps, bytes, share or count
	Seeds  int            `json:"seeds"`  // that have a value; fewer than runs if some have none
	Mean   jsonout.Number `json:"mean"`   // null without any value
	Low    jsonout.Number `json:"low"`    // lower end of the interval
	High   jsonout.Number `json:"high"`   // upper end of the interval
}

// boundJSON says whether a mean is within a bound.
type boundJSON struct {
	Point  string `json:"point"`  // values of its parameters
	Scheme string `json:"scheme"` // that the bound is for
	Metric string `json:"metric"` // its name in the sweep's file
	Mean   string `json:"mean"`   // as the table has it
	Bound  string `json:"bound"`  // such as: at most 2ms
	Pass   bool   `json:"pass"`   // the mean is within the bound
}

// notValid is a run that can't be believed.
type notValid struct {
	Run     string   `json:"run"`     // its folder in cells
	Reasons []string `json:"reasons"` // why it is invalid
}

func sweptOf(res *sweep.Results) sweptJSON {
	s := res.Sweep
	out := sweptJSON{Sweep: s.Name, Pass: true, Runs: len(res.Rows), Means: []meanJSON{},
		Bounds: []boundJSON{}, Not: []notValid{}}
	for _, g := range res.Groups {
		for i, m := range s.Metrics {
			x := g.Estimates[i]
			mean := meanJSON{Point: s.Points[g.Point].Label(), Scheme: g.Scheme, Metric: m.Name,
				Unit: jsonout.UnitOf(m.Metric.Unit()), Seeds: x.N,
				Mean: jsonout.Number(x.Mean), Low: jsonout.Number(x.Low),
				High: jsonout.Number(x.High)}
			if x.N == 0 {
				mean.Mean, mean.Low, mean.High = jsonout.None, jsonout.None, jsonout.None
			}
			out.Means = append(out.Means, mean)
		}
	}
	for _, o := range res.Outcomes() {
		out.Pass = out.Pass && o.Pass
		out.Bounds = append(out.Bounds, boundJSON{s.Points[o.Group.Point].Label(), o.Group.Scheme,
			o.Metric, o.Mean, o.Bound, o.Pass})
	}
	for _, row := range res.Rows {
		if len(row.Reasons) > 0 {
			out.Pass = false
			out.Not = append(out.Not, notValid{row.ID, row.Reasons})
		}
	}
	return out
}

// claimJSON is one claim of a paper, as pcn reproduce --json prints it.
type claimJSON struct {
	Figure  string         `json:"figure"`  // such as pcn-fig2
	Claim   string         `json:"claim"`   // what is measured
	Quote   string         `json:"quote"`   // the paper's words
	Verdict string         `json:"verdict"` // met, not met or not run
	Missed  string         `json:"missed"`  // why it is not met, as far as is known; else open
	Results []claimedValue `json:"results"` // one for each engine that ran
}

// claimedValue is what one engine says of a claim.
type claimedValue struct {
	Engine string         `json:"engine"` // sim or kernel
	Unit   string         `json:"unit"`   // ns, bps, bytes, share or count
	Seeds  int            `json:"seeds"`  // with a value
	Value  jsonout.Number `json:"value"`  // null if it was never reached
	Low    jsonout.Number `json:"low"`    // lower end of the 95% interval
	High   jsonout.Number `json:"high"`   // upper end of the interval
}

func claimsOf(r *reproduce.Reproduction) []claimJSON {
	all := []claimJSON{}
	for _, row := range r.Rows {
		c := claimJSON{Figure: row.Figure.ID(), Claim: row.Claim.What, Quote: row.Claim.Quote,
			Verdict: string(row.Verdict), Results: []claimedValue{}}
		if row.Verdict == reproduce.NotMet {
			c.Missed = cmp.Or(row.Claim.Missed, "open")
		}
		for _, engine := range slices.Sorted(maps.Keys(row.Results)) {
			e := row.Results[engine]
			c.Results = append(c.Results, claimedValue{string(engine), jsonout.UnitOf(e.Unit),
				e.Seeds, jsonout.Number(e.Value), jsonout.Number(e.Low), jsonout.Number(e.High)})
		}
		all = append(all, c)
	}
	return all
}

// figureJSON is a figure that pcn reproduce --list --json prints.
type figureJSON struct {
	Figure     string `json:"figure"`     // its name for pcn reproduce
	Title      string `json:"title"`      // what it shows
	Experiment string `json:"experiment"` // name of the experiment that reproduces it
	Claims     int    `json:"claims"`     // how many the paper makes
}

// schemeJSON is a scheme, as pcn scheme list --json and pcn scheme show --json print it.
type schemeJSON struct {
	Name    string      `json:"name"`    // in experiments
	Title   string      `json:"title"`   // what it is, in a line
	Source  string      `json:"source"`  // paper or code that it comes from
	Control string      `json:"control"` // TCP congestion control of its senders
	Sender  string      `json:"sender"`  // how senders are controlled
	Params  []paramJSON `json:"params"`  // of its section in experiments
}

// paramJSON is a parameter of a scheme.
type paramJSON struct {
	Key     string   `json:"key"`     // in experiments
	Default string   `json:"default"` // a value or a formula
	Range   string   `json:"range"`   // such as 1us to 1s; empty for flags and choices
	Choices []string `json:"choices"` // values it may have; empty for numbers
	Doc     string   `json:"doc"`     // what it does
}

func schemeOf(s scheme.Scheme) schemeJSON {
	out := schemeJSON{Name: s.Name, Title: s.Title, Source: s.Source, Control: s.Control,
		Sender: string(s.Sender), Params: []paramJSON{}}
	if s.Object == nil {
		return out
	}
	for _, p := range s.Object.Params {
		out.Params = append(out.Params, paramJSON{s.Section + "." + p.Key, p.Default, p.Range,
			append([]string{}, p.Choices...), p.Doc})
	}
	return out
}
