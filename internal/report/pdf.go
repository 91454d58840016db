// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"image"
	"image/color"
	"math"
	"sync"
	"time"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"codeberg.org/go-pdf/fpdf"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// pdfCanvas draws a figure as a PDF file, by fpdf. So does gonum's own canvas, but it has each
// program parse all of the font from files: 25 ms, as long as a short simulation.
type pdfCanvas struct {
	doc           *fpdf.Fpdf
	family        string
	encode        func(text string) string
	width, height vg.Length
	lineWidth     []vg.Length // of the contexts that were pushed, and now
}

// readersFont is a font that every reader of PDF files has. Its letters have the widths of ours.
const readersFont = "Helvetica"

// readersCodes encodes texts for the font of readers. Letters that it lacks become dots.
var readersCodes = sync.OnceValue(func() func(string) string {
	return fpdf.New("", "", "", "").UnicodeTranslatorFromDescriptor("cp1252")
})

// newPDF returns an empty page. Its texts are in the font of readers, or in ours, of which the file
// then has the letters that it needs.
func newPDF(width, height vg.Length, withFont bool) *pdfCanvas {
	doc := fpdf.NewCustom(&fpdf.InitType{
		UnitStr: "pt", Size: fpdf.SizeType{Wd: width.Points(), Ht: height.Points()},
	})
	date := time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC) // so that a figure is always the same bytes
	doc.SetCreationDate(date)
	doc.SetModificationDate(date)
	c := &pdfCanvas{doc: doc, width: width, height: height, lineWidth: make([]vg.Length, 1)}
	if withFont {
		c.family, c.encode = "LiberationSans", func(text string) string { return text }
		doc.AddUTF8FontFromBytes(c.family, "", liberationsansregular.TTF)
	} else {
		c.family, c.encode = readersFont, readersCodes()
	}
	doc.AddPage()
	doc.TransformBegin()
	vg.Initialize(c)
	return c
}

// file returns the finished file.
func (c *pdfCanvas) file() ([]byte, error) {
	c.doc.TransformEnd()
	var buf bytes.Buffer
	err := c.doc.Output(&buf)
	return buf.Bytes(), err
}

// point returns a point as fpdf counts, from the top.
func (c *pdfCanvas) point(p vg.Point) (x, y float64) {
	return p.X.Points(), (c.height - p.Y).Points()
}

// Size implements [vg.CanvasSizer].
func (c *pdfCanvas) Size() (width, height vg.Length) { return c.width, c.height }

// SetLineWidth implements [vg.Canvas].
func (c *pdfCanvas) SetLineWidth(w vg.Length) {
	c.lineWidth[len(c.lineWidth)-1] = w
	c.doc.SetLineWidth(w.Points())
}

// SetLineDash implements [vg.Canvas].
func (c *pdfCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	dashes := make([]float64, len(pattern))
	for i, d := range pattern {
		dashes[i] = d.Points()
	}
	c.doc.SetDashPattern(dashes, offset.Points())
}

// SetColor implements [vg.Canvas].
func (c *pdfCanvas) SetColor(to color.Color) {
	if to == nil {
		to = color.Black
	}
	n := color.NRGBAModel.Convert(to).(color.NRGBA)
	red, green, blue := int(n.R), int(n.G), int(n.B)
	c.doc.SetFillColor(red, green, blue)
	c.doc.SetDrawColor(red, green, blue)
	c.doc.SetTextColor(red, green, blue)
	c.doc.SetAlpha(float64(n.A)/math.MaxUint8, "Normal")
}

// Rotate implements [vg.Canvas].
func (c *pdfCanvas) Rotate(rad float64) {
	sin, cos := math.Sincos(rad)
	c.doc.Transform(fpdf.TransformMatrix{A: cos, B: sin, C: -sin, D: cos})
}

// Translate implements [vg.Canvas].
func (c *pdfCanvas) Translate(by vg.Point) {
	c.doc.Transform(fpdf.TransformMatrix{A: 1, D: 1, E: by.X.Points(), F: by.Y.Points()})
}

// Scale implements [vg.Canvas].
func (c *pdfCanvas) Scale(x, y float64) { c.doc.Transform(fpdf.TransformMatrix{A: x, D: y}) }

// Push implements [vg.Canvas].
func (c *pdfCanvas) Push() {
	c.lineWidth = append(c.lineWidth, c.lineWidth[len(c.lineWidth)-1])
	c.doc.TransformBegin()
}

// Pop implements [vg.Canvas].
func (c *pdfCanvas) Pop() {
	c.lineWidth = c.lineWidth[:len(c.lineWidth)-1]
	c.doc.TransformEnd()
}

// Stroke implements [vg.Canvas].
func (c *pdfCanvas) Stroke(p vg.Path) {
	if c.lineWidth[len(c.lineWidth)-1] > 0 { // a line of width 0 is a hair in PDF files
		c.path(p)
		c.doc.DrawPath("S")
	}
}

// Fill implements [vg.Canvas].
func (c *pdfCanvas) Fill(p vg.Path) {
	c.path(p)
	c.doc.DrawPath("F")
}

func (c *pdfCanvas) path(p vg.Path) {
	for _, part := range p {
		x, y := c.point(part.Pos)
		switch part.Type {
		case vg.MoveComp:
			c.doc.MoveTo(x, y)
		case vg.LineComp:
			c.doc.LineTo(x, y)
		case vg.CloseComp:
			c.doc.ClosePath()
		case vg.ArcComp:
			const degrees = 180 / math.Pi
			r, from := part.Radius.Points(), part.Start*degrees
			c.doc.ArcTo(x, y, r, r, 0, from, from+part.Angle*degrees)
		default:
			panic("report: a figure has a curve, which its PDF file can't have")
		}
	}
}

// FillString implements [vg.Canvas].
func (c *pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	size := face.Font.Size.Points()
	if size == 0 {
		return
	}
	c.doc.SetFont(c.family, "", size)
	c.doc.SetFontSize(size) // the file forgets it at the end of a context
	x, y := c.point(at)
	c.doc.Text(x, y, c.encode(text))
}

// DrawImage implements [vg.Canvas].
func (c *pdfCanvas) DrawImage(vg.Rectangle, image.Image) {
	panic("report: a figure has an image, which its PDF file can't have")
}
