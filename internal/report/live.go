// SPDX-License-Identifier: Apache-2.0

package report

import (
	_ "embed"
	"encoding/json"
	"fmt"
	"html/template"
	"image/color"
	"slices"
	"strings"

	"gonum.org/v1/plot"
)

// This file hands figures over time to the page's script, which draws them anew with values under
// the pointer, zoom, and a legend that hides curves. Readers without scripts keep the SVG.

//go:embed figures.html.tmpl
var figuresText string

//go:embed live.js
var liveScript string

//go:embed netview.js
var netviewScript string

//go:embed plot.js
var plotScript string

// maxLivePoints is how many values the script of one page gets in all. It keeps pages below 1 MB: a
// value takes about 5 bytes.
const maxLivePoints = 40_000

// plotted is a plot that remembers what was added to it.
type plotted struct {
	*plot.Plot
	layers      []plot.Plotter
	logarithmic bool // heights are logarithms to base 10
}

// Add adds layers to the plot.
func (p *plotted) Add(layers ...plot.Plotter) {
	p.Plot.Add(layers...)
	p.layers = append(p.layers, layers...)
}

// liveFigure is what the script needs of a figure.
type liveFigure struct {
	Title       string      `json:"title"`
	XLabel      string      `json:"xLabel"`
	XMin        float64     `json:"xMin"`
	XMax        float64     `json:"xMax"`
	Logarithmic bool        `json:"log,omitempty"`   // x has logarithms to base 10
	Names       []string    `json:"names,omitempty"` // what stands at x = 0, 1 and so on
	Thinned     bool        `json:"thinned,omitempty"`
	Legend      []liveEntry `json:"legend"`
	Panels      []livePanel `json:"panels"`
}

// liveEntry is an entry of the legend: a button that hides what has its name.
type liveEntry struct {
	Name string `json:"name"`
	liveLook
}

type liveLook struct {
	Line    string    `json:"line,omitempty"`
	Fill    string    `json:"fill,omitempty"`
	Dashes  []float64 `json:"dashes,omitempty"` // points
	Hatched bool      `json:"hatched,omitempty"`
	Marker  string    `json:"marker,omitempty"`
	Unlined bool      `json:"unlined,omitempty"` // only the marker is drawn
}

// livePanel has curves over the same x, rows of boxes, or what stands over names.
type livePanel struct {
	Run     string       `json:"run,omitempty"`
	Label   string       `json:"label,omitempty"`
	YLabel  string       `json:"yLabel,omitempty"`
	YMin    float64      `json:"yMin"`
	YMax    float64      `json:"yMax"`
	Height  float64      `json:"height"` // points
	Stacked bool         `json:"stacked,omitempty"`
	X       numbers      `json:"x,omitempty"`
	Same    bool         `json:"same,omitempty"` // x is that of the panel above
	Curves  []liveCurve  `json:"curves,omitempty"`
	Marks   []liveMarks  `json:"marks,omitempty"`
	Spans   [][2]numeral `json:"spans,omitempty"` // arrows between two times
	Rows    []liveRow    `json:"rows,omitempty"`  // from the top
	Log     bool         `json:"log,omitempty"`   // y has logarithms to base 10
	Over    []liveOver   `json:"over,omitempty"`
}

type liveCurve struct {
	Name string `json:"name"`           // the entry of the legend
	Note string `json:"note,omitempty"` // tells curves of one name apart; may be an entry, too
	liveLook
	Y   numbers `json:"y"`
	Low numbers `json:"low,omitempty"` // the lower end of a band up to y
}

// liveMarks are the rings of a paper's data points.
type liveMarks struct {
	Name string       `json:"name"`
	Line string       `json:"line"`
	At   [][2]numeral `json:"at"`
}

// liveOver is drawn over names: bars, or points with lines between them.
type liveOver struct {
	Name string `json:"name"` // the entry of the legend
	liveLook
	Bars      []liveBar    `json:"bars,omitempty"`
	Points    [][2]numeral `json:"points,omitempty"`
	Dots      [][2]numeral `json:"dots,omitempty"`      // single values
	Intervals [][3]numeral `json:"intervals,omitempty"` // x, low and high
	Without   []numeral    `json:"without,omitempty"`   // names without a value
}

// liveBar is a bar between two positions, on a foot. Without a value its text says why.
type liveBar struct {
	From, To, Foot, Value float64
	Text                  string
	Above                 float64 // the text stands above this height, too
	Failed                bool
}

// MarshalJSON writes a bar as a short list.
func (b liveBar) MarshalJSON() ([]byte, error) {
	list := []any{numeral(b.From), numeral(b.To), numeral(b.Foot), numeral(b.Value), b.Text}
	if b.Above > b.Value {
		list = append(list, numeral(b.Above))
	}
	if b.Failed {
		list[3] = nil
	}
	return json.Marshal(list)
}

type liveRow struct {
	Name  string    `json:"name"`
	Boxes []liveBox `json:"boxes"`
}

// liveBox is a part of a row, from one time to another.
type liveBox struct {
	Name     string // the entry of the legend, if the row has boxes of several
	From, To float64
	Share    float64
	Fill     string
}

// MarshalJSON writes a box as a short list.
func (b liveBox) MarshalJSON() ([]byte, error) {
	return json.Marshal([]any{numeral(b.From), numeral(b.To), numeral(b.Share), b.Fill, b.Name})
}

// live returns the figure for the script.
func (f *figure) live() *liveFigure {
	live := &liveFigure{Title: f.heading(), XLabel: f.xLabel, XMin: f.xMin, XMax: f.xMax,
		Logarithmic: f.logarithmic, Names: f.names}
	for _, entry := range f.legend {
		live.Legend = append(live.Legend, liveEntry{entry.text, lookOfSwatch(entry.swatch)})
	}
	for _, p := range f.panels {
		if f.names != nil {
			live.Panels = append(live.Panels, f.namedPanel(p))
			continue
		}
		live.Panels = append(live.Panels, f.livePanel(p))
	}
	return live
}

// namedPanel returns a panel of a figure with names on its horizontal axis.
func (f *figure) namedPanel(p panel) livePanel {
	live := livePanel{Run: p.run, YLabel: p.plot.Y.Label.Text, YMin: p.plot.Y.Min,
		YMax: p.plot.Y.Max, Height: p.height.Points(), Log: p.plot.logarithmic}
	of := func(name string, look liveLook) *liveOver {
		for i := range live.Over {
			if live.Over[i].Name == name {
				return &live.Over[i]
			}
		}
		live.Over = append(live.Over, liveOver{Name: name, liveLook: look})
		return &live.Over[len(live.Over)-1]
	}
	for _, layer := range p.plot.layers {
		switch l := layer.(type) {
		case *bars:
			for _, item := range l.items {
				o := of(f.entryOf(item.swatch), lookOfSwatch(item.swatch))
				foot := p.plot.Y.Min // on a logarithmic axis it may be below 0
				if item.stacked {
					foot = item.foot
				}
				o.Bars = append(o.Bars, liveBar{From: item.from, To: item.to, Foot: foot,
					Value: item.value, Text: item.text, Above: item.above,
					Failed: item.failed})
			}
		case *curve:
			o := of(l.name, liveLook{})
			o.liveLook = lookOfSwatch(l.swatch) // its intervals have less of one
			for _, at := range l.points {
				o.Points = append(o.Points, [2]numeral{numeral(at.x), numeral(at.y)})
			}
		case *dots:
			o := of(l.name, lookOfSwatch(l.swatch))
			for _, at := range l.at {
				o.Dots = append(o.Dots, [2]numeral{numeral(at.x), numeral(at.y)})
			}
		case *errorBars:
			o := of(l.name, liveLook{Line: hex(l.color)})
			for _, at := range l.at {
				o.Intervals = append(o.Intervals,
					[3]numeral{numeral(at.x), numeral(at.low), numeral(at.high)})
			}
		case *crosses:
			o := of(l.name, liveLook{Line: hex(l.color)})
			for _, at := range l.at {
				o.Without = append(o.Without, numeral(at))
			}
		}
	}
	return live
}

func (f *figure) livePanel(p panel) livePanel {
	live := livePanel{Run: p.run, YLabel: p.plot.Y.Label.Text, YMin: p.plot.Y.Min,
		YMax: p.plot.Y.Max, Height: p.height.Points()}
	rows := map[float64]*liveRow{} // by their lower end
	var order []float64
	row := func(at float64) *liveRow {
		if rows[at] == nil {
			rows[at] = &liveRow{Boxes: []liveBox{}}
			order = append(order, at)
		}
		return rows[at]
	}
	var drawn []*curve
	var paper []string // what its rings are
	for _, layer := range p.plot.layers {
		switch l := layer.(type) {
		case *panelLabel:
			live.Label = l.text
		case *area:
			c := &curve{points: l.high, swatch: swatch{fill: l.fill, line: l.line}, name: l.name}
			switch {
			case l.stacked:
				live.Stacked = true
				c.points = l.own()
			case l.band != nil:
				c.line, c.low, c.note = l.band, l.low, bandNote
			}
			drawn = append(drawn, c)
		case *curve:
			drawn = append(drawn, l)
		case *rings:
			marks := liveMarks{Name: l.name, Line: hex(l.color)}
			for _, at := range l.points {
				marks.At = append(marks.At, [2]numeral{numeral(at.x), numeral(at.y)})
			}
			live.Marks = append(live.Marks, marks)
		case *ringLegend:
			for _, entry := range l.entries {
				paper = append(paper, "○ "+entry.text)
			}
		case *arrow:
			live.Spans = append(live.Spans, [2]numeral{numeral(l.from), numeral(l.to)})
		case *strip:
			r := row(l.row)
			for _, b := range l.boxes(f.column) {
				r.Boxes = append(r.Boxes, liveBox{l.name, f.atColumn(b.from), f.atColumn(b.to),
					b.share, hex(l.fill)})
			}
		case *bands:
			r := row(l.row)
			for _, t := range l.times {
				r.Boxes = append(r.Boxes, liveBox{l.name, toMs(t.FromNs), toMs(t.ToNs), 1,
					hex(l.fill)})
			}
		}
	}
	live.Label = strings.Join(append([]string{live.Label}, paper...), "  ")
	slices.SortFunc(order, func(a, b float64) int { return int(b - a) })
	for _, at := range order {
		r := rows[at]
		r.Name = p.plot.rowName(at)
		live.Rows = append(live.Rows, *r)
	}
	live.X, live.Curves = table(drawn, f.xMin, f.xMax)
	return live
}

// column returns the position of a time in columns of the drawing, as the SVG has them, but four
// times finer for the zoom.
func (f *figure) column(ms float64) float64 {
	share := (min(max(ms, f.xMin), f.xMax) - f.xMin) / (f.xMax - f.xMin)
	return share * 4 * float64(figureWidth/columnWidth)
}

// atColumn is the inverse of column.
func (f *figure) atColumn(column float64) float64 {
	return f.xMin + column/(4*float64(figureWidth/columnWidth))*(f.xMax-f.xMin)
}

// own returns the points of a stacked area without what it stands on.
func (a *area) own() []point {
	points := slices.Clone(a.high)
	for i := range points {
		points[i].y -= a.low[i].y
	}
	return points
}

// liveCode has the styles and scripts of a page with figures.
type liveCode struct {
	Style  template.CSS
	Script template.JS
	Data   template.JS
	NoPDF  bool // the figures' PDF files are too large for the page
}

// newLiveCode numbers the figures that the script draws, and collects their data. Curves keep this
// many columns, however many curves there are.
func newLiveCode(columns int, views ...[]figureView) (liveCode, error) {
	code := liveCode{Style: template.CSS(styleText)}
	var figures []*liveFigure
	for _, group := range views {
		for i := range group {
			if group[i].live != nil {
				group[i].Number = len(figures) + 1
				figures = append(figures, group[i].live)
			}
		}
	}
	if figures == nil {
		return code, nil
	}
	var err error
	if code.Data, err = liveData(figures, columns); err != nil {
		return code, err
	}
	code.Script = template.JS(plotScript + liveScript + netviewScript)
	return code, nil
}

func lookOfSwatch(s swatch) liveLook {
	look := liveLook{Line: hex(s.line), Fill: hex(s.fill), Hatched: s.spacing > 0,
		Marker: markerTexts[s.marker], Unlined: s.unlined}
	for _, d := range s.dashes {
		look.Dashes = append(look.Dashes, d.Points())
	}
	return look
}

// hex returns a colour as #rrggbb; "" for none.
func hex(c color.Color) string {
	if c == nil {
		return ""
	}
	r, g, b, _ := c.RGBA()
	return fmt.Sprintf("#%02x%02x%02x", r>>8, g>>8, b>>8)
}
