// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
)

//go:embed reproduction.html.tmpl
var reproductionText string

// Reproduction is the data of the page that holds our figures against the papers'.
type Reproduction struct {
	Summary string
	Figures []ReproducedFigure
}

// ReproducedFigure is a figure of a paper.
type ReproducedFigure struct {
	ID, Title, Note string
	Claims          []ReproducedClaim
	// Sweeps has what each engine measured, and Bands the curves over time.
	Sweeps []Sweep
	Bands  []*Bands

	Drawn []figureView // filled in by WriteReproduction
}

// ReproducedClaim is a row of the table.
type ReproducedClaim struct {
	What, Quote, Paper, Simulation, Kernel, Verdict, Command string
	Missed, Shows                                            string
	// Min and Max are the paper's band and Low to High our interval; infinite if there is no end.
	Min, Max, Low, Value, High float64
	HasValue                   bool
	Met                        bool
}

const (
	stripWidth = 160.0 // of the picture of a band and an interval
	stripLeft  = 4.0
)

// Strip draws the paper's band as a bar, and our value and interval over it.
func (c ReproducedClaim) Strip() template.HTML {
	if !c.HasValue || math.IsInf(c.Value, 0) {
		return ""
	}
	top := 0.0
	for _, v := range []float64{c.Min, c.Max, c.Low, c.Value, c.High} {
		if !math.IsInf(v, 0) {
			top = max(top, v)
		}
	}
	if top <= 0 {
		top = 1
	}
	x := func(v float64) float64 {
		return stripLeft + min(max(v/(1.15*top), 0), 1)*(stripWidth-2*stripLeft)
	}
	color := "#b00020"
	if c.Met {
		color = "#176b2c"
	}
	return template.HTML(fmt.Sprintf(`<svg class="claim" width="%g" height="14" `+
		`viewBox="0 0 %[1]g 14" role="img" `+
		`aria-label="band and interval"><rect x="%.1f" y="2" width="%.1f" height="10" `+
		`fill="#d5dbe6"/><line x1="%.1f" x2="%.1f" y1="7" y2="7" stroke="%s" stroke-width="2"/>`+
		`<circle cx="%.1f" cy="7" r="3" fill="%s"/></svg>`, stripWidth, x(c.Min),
		max(x(c.Max)-x(c.Min), 1), x(c.Low), x(c.High), color, x(c.Value), color))
}

// WriteReproduction writes the page. The same results give the same bytes.
func WriteReproduction(w io.Writer, r Reproduction) error {
	for i := range r.Figures {
		if err := r.Figures[i].draw(); err != nil {
			return fmt.Errorf("draw figure %s: %w", r.Figures[i].ID, err)
		}
	}
	var views [][]figureView
	for i := range r.Figures {
		views = append(views, r.Figures[i].Drawn)
	}
	t, err := template.New("reproduction").Parse(figuresText + reproductionText)
	if err != nil {
		return fmt.Errorf("parse template of page: %w", err)
	}
	err = drawPage(w, t, views, func(code liveCode, _ thrift) any {
		return struct {
			Reproduction
			Code liveCode
		}{r, code}
	})
	if err != nil {
		return fmt.Errorf("write page: %w", err)
	}
	return nil
}

// draw draws the curves over time, and metrics over cases where there are several.
func (f *ReproducedFigure) draw() error {
	var figures []*figure
	for _, b := range f.Bands {
		for _, x := range b.figures() {
			if b.e.CaseName != "" {
				x.title += ", " + b.e.CaseName
			}
			figures = append(figures, x)
		}
	}
	for _, s := range f.Sweeps {
		if len(s.Points) < 2 {
			continue
		}
		for _, m := range s.Metrics {
			if x := s.figure(m); x != nil {
				x.title = m.Name
				figures = append(figures, x)
			}
		}
	}
	var err error
	f.Drawn, err = figureViews(fileName(f.ID)+"-", figures)
	return err
}
