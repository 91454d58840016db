// SPDX-License-Identifier: Apache-2.0

package report

import (
	"cmp"
	"fmt"
	"image/color"
	"slices"

	"gonum.org/v1/plot/vg"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// maxDrawn is the largest number of objects in a figure if the experiment does not choose them.
const maxDrawn = 6

// Heights of the panels, in points.
const (
	pauseHeight vg.Length = 88
	stripHeight vg.Length = 10 // for each link
	panelHeight vg.Length = 112
)

// flowColors are the colours of flows, ports and schemes. The first are those of PCN, Fig. 2. All
// stand out from white by 3 to 1, and from a dark page too. Of such colours, the others are as far
// from each other and from the first as a search found, for each kind of colour blindness.
var flowColors = []color.Color{
	color.RGBA{R: 0x9b, G: 0x1c, B: 0x1c, A: 0xff},
	color.RGBA{R: 0x2b, G: 0x35, B: 0xc9, A: 0xff},
	color.RGBA{R: 0x9f, G: 0x97, B: 0x00, A: 0xff},
	color.RGBA{R: 0xd6, G: 0x41, B: 0x89, A: 0xff},
	color.RGBA{R: 0x56, G: 0x07, B: 0x61, A: 0xff},
	color.RGBA{R: 0x54, G: 0x76, B: 0xff, A: 0xff},
}

// figuresOf draws every figure that the runs have data for: first what was found. Figures over time
// show only the first case.
func figuresOf(g groupView) ([]*figure, error) {
	figures, err := timeFigures(g.Cases[0], len(g.Cases))
	if err != nil {
		return nil, err
	}
	for _, f := range figures {
		if g.Seeds.Count > 0 {
			f.sentence = fmt.Sprintf("Seed %d: %s", g.Seeds.Shown, f.heading())
			f.caption += fmt.Sprintf(" Of seed %d alone.", g.Seeds.Shown)
		}
	}
	figures = slices.Concat(g.found, figures)
	compared := detectorsTogether(g.Compared)
	for _, o := range compared[min(len(compared), maxFindings):] {
		figures = append(figures, compareFigure(o))
	}
	figures = append(figures, caseFigures(g)...)
	return append(figures, workloadFigures(g.Cases[0], len(g.Cases))...), nil
}

// figureViews prepares figures for a page. Names of their files start with the prefix.
func figureViews(prefix string, figures []*figure) ([]figureView, error) {
	var views []figureView
	for i, f := range figures {
		svg, err := f.svg()
		if err != nil {
			return nil, err
		}
		views = append(views, figureView{Title: fmt.Sprintf("(%s) %s.", letters(i), f.heading()),
			Caption: f.caption, drawn: svg, File: prefix + letters(i) + "-" + fileName(f.title),
			figure: f, live: f.live()})
	}
	return views, nil
}

// timeFigures draws the figures over time of a case. If there are several cases, captions say so.
func timeFigures(c caseView, cases int) ([]*figure, error) {
	var figures []*figure
	for _, draw := range []func(*experiment.Experiment, []runView) (*figure, error){
		pauseFigure, throughputFigure, queueFigure, qdiscFigure, statesFigure, sendRateFigure,
		portRateFigure,
	} {
		f, err := draw(c.Experiment, c.Runs)
		if err != nil {
			return nil, err
		}
		if f == nil {
			continue
		}
		if cases > 1 {
			f.oneCase = true
			f.caption += fmt.Sprintf(" Case %s only, the first of %d.", c.Name, cases)
		}
		figures = append(figures, f)
	}
	return figures, nil
}

// letters returns the i-th of a to z, aa, ab and so on.
func letters(i int) string {
	last := string(rune('a' + i%26))
	if i < 26 {
		return last
	}
	return letters(i/26-1) + last
}

// mostOf returns the names with the largest totals, largest first.
func mostOf(runs []runView, count func(r runView, add func(name string, amount float64))) []string {
	totals := make(map[string]float64)
	for _, r := range runs {
		count(r, func(name string, amount float64) { totals[name] += amount })
	}
	var names []string
	for name := range totals {
		names = append(names, name)
	}
	slices.SortFunc(names, func(a, b string) int {
		return cmp.Or(cmp.Compare(totals[b], totals[a]),
			cmp.Compare(len(a), len(b)), cmp.Compare(a, b)) // 9 before 10
	})
	return names[:min(len(names), maxDrawn)]
}

// wholeRange returns the time from the first start to the last end of a run, in ms.
func wholeRange(runs []runView) (from, to float64) {
	for _, r := range runs {
		from = min(from, toMs(-r.Manifest.WarmupNs))
		to = max(to, toMs(r.Manifest.DurationNs))
	}
	return from, to
}

func toMs(ns int64) float64 {
	return float64(ns) / 1e6
}

// arrowAt is the position of arrows as a share of a panel's height: between the data and the label.
const arrowAt = 0.74

// headroom returns the upper end of an axis, with room above the data for the label and the arrow.
func headroom(top float64) float64 {
	if top == 0 {
		return 1
	}
	return 1.5 * top
}
