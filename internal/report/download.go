// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/base64"
	"encoding/csv"
	"fmt"
	"html/template"
	"io"
	"math"
	"reflect"
	"strconv"
	"strings"

	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Format is the format of a figure's file, and the ending of its name.
type Format string

// Formats returns all formats. CSV has the values of a figure, in full resolution.
func Formats() []Format { return []Format{"svg", "pdf", "csv", "png"} }

// ParseFormat returns the format of this name.
func ParseFormat(name string) (Format, error) {
	var all []string
	for _, f := range Formats() {
		if string(f) == name {
			return f, nil
		}
		all = append(all, string(f))
	}
	return "", fmt.Errorf("unknown format %q: want %s", name, strings.Join(all, ", "))
}

// pngResolution is the number of pixels per inch of a PNG file: sharp on dense screens.
const pngResolution = 192

// Figure is a figure of a report.
type Figure struct {
	Name string // for a file, such as hol-a-pause-rate
	*figure
}

// maxPDF bounds the PDF files that a page holds, in bytes. A page of more figures has none.
const maxPDF = 200_000

// download is a file within a page.
type download struct {
	Format Format
	Link   template.URL
}

// dataURL returns a link to a file that is within the page.
func dataURL(mediaType string, data []byte) template.URL {
	return template.URL("data:" + mediaType + ";base64," + base64.StdEncoding.EncodeToString(data))
}

// addDownloads gives the views of a page their files: PDF, and CSV for figures over names. Of the
// others the script writes CSV, and of all SVG.
//
// It reports whether it left out PDF files, as they are too large.
func addDownloads(views [][]figureView) (noPDF bool, err error) {
	total := 0
	for _, group := range views {
		for i := range group {
			v := &group[i]
			data, err := v.figure.pdf(false)
			if err != nil {
				return false, fmt.Errorf("draw figure %q: %w", v.figure.title, err)
			}
			total += len(data)
			v.Downloads = []download{{"pdf", dataURL("application/pdf", data)}}
		}
	}
	for _, group := range views {
		for i := range group {
			v := &group[i]
			if total > maxPDF {
				v.Downloads = nil
			}
			if v.figure.names == nil {
				continue
			}
			var buf bytes.Buffer
			if err := v.figure.writeCSV(&buf); err != nil {
				return false, fmt.Errorf("write values of figure %q: %w", v.figure.title, err)
			}
			v.Downloads = append(v.Downloads, download{"csv", dataURL("text/csv", buf.Bytes())})
		}
	}
	return total > maxPDF, nil
}

// drawPage writes a page with these figures by a template, as small as it must be. data returns
// what the template shows.
func drawPage(
	w io.Writer, t *template.Template, views [][]figureView, data func(liveCode, thrift) any,
) error {
	noPDF, err := addDownloads(views)
	if err != nil {
		return err
	}
	return writeSmall(w, func(w io.Writer, thrift thrift) error {
		code, err := pageCode(views, noPDF, thrift)
		if err != nil {
			return err
		}
		return t.Execute(w, data(code, thrift))
	})
}

// pageCode returns the styles and scripts of a page, and makes its pictures as small as asked.
func pageCode(views [][]figureView, noPDF bool, t thrift) (liveCode, error) {
	for _, group := range views {
		for i := range group {
			group[i].SVG = template.HTML(compact(string(group[i].drawn), t.tolerance))
		}
	}
	code, err := newLiveCode(t.columns, views...)
	code.NoPDF = noPDF
	return code, err
}

// Figures returns the figures of the runs of one experiment, as its report has them.
func Figures(g Group) ([]Figure, error) {
	view, err := viewOf(g, 0)
	if err != nil {
		return nil, err
	}
	return namedFigures(g.Experiment.Name, view.drawn), nil
}

// FiguresOverTime returns the figures over time of runs of one experiment, as its report has them.
func FiguresOverTime(e *experiment.Experiment, runs []*result.Run) ([]Figure, error) {
	cases, err := casesOf(e, viewsOf(runs), nil)
	if err != nil {
		return nil, err
	}
	if len(cases) == 0 {
		return nil, errNoRun
	}
	drawn, err := timeFigures(cases[0], len(cases))
	if err != nil {
		return nil, fmt.Errorf("draw figures of experiment %s: %w", e.Name, err)
	}
	return namedFigures(e.Name, drawn), nil
}

// Figures returns the figures of the sweep, as its report has them. A sweep over two parameters has
// maps in their place, which are tables.
func (s Sweep) Figures() []Figure { return namedFigures(s.Name, s.figures()) }

func namedFigures(name string, drawn []*figure) []Figure {
	var figures []Figure
	for i, f := range drawn {
		figures = append(figures,
			Figure{fmt.Sprintf("%s-%s-%s", name, letters(i), fileName(f.title)), f})
	}
	return figures
}

// Heading says what the figure shows, without a full stop.
func (f Figure) Heading() string { return f.heading() }

// SVG returns the figure as an element for a page.
func (f Figure) SVG() (template.HTML, error) { return f.svg() }

// Fit makes the figure as wide as a column of a paper with two columns.
func (f Figure) Fit() { f.width = columnOfTwo }

var notForFiles = lazy.Regexp(`[^a-z0-9]+`)

// fileName returns a title as part of a file's name.
func fileName(title string) string {
	return strings.Trim(notForFiles().ReplaceAllString(strings.ToLower(title), "-"), "-")
}

// Write writes the figure as a file of the format. The same figure gives the same bytes.
func (f Figure) Write(w io.Writer, format Format) error {
	var err error
	switch format {
	case "csv":
		err = f.writeCSV(w)
	case "pdf":
		var data []byte
		if data, err = f.pdf(true); err == nil {
			_, err = w.Write(data)
		}
	case "png":
		l := f.layout()
		canvas := vgimg.NewWith(vgimg.UseWH(l.width, l.height), vgimg.UseDPI(pngResolution))
		f.draw(draw.New(canvas), l)
		_, err = vgimg.PngCanvas{Canvas: canvas}.WriteTo(w)
	case "svg":
		l := f.layout()
		canvas := vgsvg.New(l.width, l.height)
		f.draw(draw.New(canvas), l)
		var buf bytes.Buffer
		if _, err = canvas.WriteTo(&buf); err == nil {
			_, err = io.WriteString(w, strings.ReplaceAll(buf.String(),
				"font-family:Liberation Sans;", "font-family:"+fontFamily+";"))
		}
	default:
		_, err = ParseFormat(string(format))
	}
	if err != nil {
		return fmt.Errorf("write figure %s: %w", f.Name, err)
	}
	return nil
}

// fontFamily is what readers without our font see; all have letters of the same width.
const fontFamily = "Liberation Sans,Arimo,Arial,Helvetica,sans-serif"

// pdf draws the figure as a PDF file, with the letters of our font or without.
func (f *figure) pdf(withFont bool) ([]byte, error) {
	l := f.layout()
	canvas := newPDF(l.width, l.height, withFont)
	f.draw(draw.New(canvas), l)
	return canvas.file()
}

// writeCSV writes all values of the figure, one a row.
func (f *figure) writeCSV(w io.Writer) error {
	x := strings.TrimSpace(f.xLabel)
	if f.names != nil {
		x = "Name"
	}
	rows := [][]string{{"Panel", "Curve", x, "Value", "Unit"}}
	for _, p := range f.panels {
		quantity, unit, _ := strings.Cut(strings.TrimSuffix(p.plot.Y.Label.Text, ")"), " (")
		add := func(curve, x, value string) {
			rows = append(rows, []string{strings.TrimSpace(p.run + " " + quantity), curve, x, value,
				unit})
		}
		for _, layer := range p.plot.layers {
			f.valuesOf(p, layer, add)
		}
	}
	out := csv.NewWriter(w)
	return out.WriteAll(rows)
}

// valuesOf hands out the values of a layer of a panel.
func (f *figure) valuesOf(p panel, layer any, add func(curve, x, value string)) {
	points := func(name string, all []point) {
		for _, pt := range all {
			add(name, f.xText(pt.x), valueText(p.plot.valueOf(pt.y)))
		}
	}
	switch l := layer.(type) {
	case *curve:
		name := l.name
		if l.note != "" {
			name += ", " + l.note
		}
		points(name, l.points)
	case *area:
		switch {
		case l.stacked:
			points(l.name, l.own())
		case l.band != nil:
			points(l.name+", "+bandNote, l.low)
			points(l.name+", "+bandNote, l.high)
		default:
			points(l.name, l.high)
		}
	case *rings:
		points(strings.TrimSpace(l.name+", paper"), l.points)
	case *dots:
		points(l.name, l.at)
	case *errorBars:
		for _, i := range l.at {
			ends := []point{{i.x, i.low}, {i.x, i.high}}
			points(l.name+", "+intervalNote, ends)
		}
	case *strip:
		for i, share := range l.share.Values {
			add(p.plot.rowName(l.row)+", share", valueText(toMs(l.share.TimeNs(i))),
				valueText(share))
		}
	case *bands:
		name := p.plot.rowName(l.row) + ", " + l.name
		for _, t := range l.times {
			add(name, valueText(toMs(t.FromNs)), "1")
			add(name, valueText(toMs(t.ToNs)), "0")
		}
	case *bars:
		for _, item := range l.items {
			if item.stacked && item.text != "" {
				continue // only the text over a stack
			}
			value := ""
			if !item.failed {
				value = valueText(p.plot.valueOf(item.value) - item.foot)
			}
			add(f.entryOf(item.swatch), f.xText((item.from+item.to)/2), value)
		}
	}
}

// valueOf returns the value that stands at a height of the plot.
func (p *plotted) valueOf(y float64) float64 {
	if p.logarithmic {
		return math.Pow(10, y)
	}
	return y
}

// rowName returns the name of the row that starts at this height.
func (p *plotted) rowName(at float64) string {
	for _, t := range p.Y.Tick.Marker.Ticks(p.Y.Min, p.Y.Max) {
		if t.Value == at+0.5 {
			return t.Label
		}
	}
	return ""
}

// xText returns a position on the horizontal axis: a name, or a value.
func (f *figure) xText(x float64) string {
	switch {
	case f.names != nil:
		return f.names[min(max(int(math.Round(x)), 0), len(f.names)-1)]
	case f.logarithmic:
		return valueText(math.Pow(10, x))
	default:
		return valueText(x)
	}
}

// entryOf returns the text of the legend for a style.
func (f *figure) entryOf(s swatch) string {
	for _, entry := range f.legend {
		if reflect.DeepEqual(entry.swatch, s) {
			return entry.text
		}
	}
	return ""
}

// valueText writes a value with 7 significant digits, which drops what rounding added.
func valueText(v float64) string {
	return strconv.FormatFloat(v, 'g', 7, 64)
}
