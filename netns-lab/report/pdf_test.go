// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"compress/zlib"
	"image/color"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// pdfPage returns the drawing in a PDF file.
func pdfPage(t *testing.T, file []byte) string {
	t.Helper()
	_, rest, _ := strings.Cut(string(file), "4 0 obj\n")
	_, rest, _ = strings.Cut(rest, "stream\n")
	packed, _, _ := strings.Cut(rest, "\nendstream")
	r, err := zlib.NewReader(strings.NewReader(packed))
	qt.Assert(t, qt.IsNil(err))
	page, err := io.ReadAll(r)
	qt.Assert(t, qt.IsNil(err))
	return string(page)
}

// A page has what was drawn, in PDF's operators.
func TestPDFPage(t *testing.T) {
	c := newPDF(vg.Points(200), vg.Points(100))
	c.page.Reset()
	var p vg.Path
	p.Move(vg.Point{X: 1, Y: 2})
	p.Line(vg.Point{X: 3.0004, Y: 4})
	p.Close()
	c.SetLineDash([]vg.Length{2, 1}, 0.5)
	c.SetColor(color.NRGBA{R: 0xff, A: 0x80})
	c.Push()
	c.Translate(vg.Point{X: 10, Y: 20})
	c.Rotate(math.Pi / 2)
	c.Scale(2, 3)
	c.SetLineWidth(0)
	c.Stroke(p) // nothing
	c.Pop()
	c.Stroke(p)
	c.Fill(p)
	face := font.DefaultCache.Lookup(sans(9), vg.Points(9))
	c.FillString(face, vg.Point{X: 5, Y: 6}, "µs(≥")
	file, err := c.file(false)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(pdfPage(t, file), strings.Join([]string{
		"[2 1] 0.5 d", "1 0 0 rg", "1 0 0 RG", "/A1 gs", "q", "1 0 0 1 10 20 cm",
		"0 1 -1 0 0 0 cm", "2 0 0 3 0 0 cm", "0 w", "Q", "1 2 m", "3 4 l", "h", "S", "1 2 m",
		"3 4 l", "h", "f", "BT /F 9 Tf 5 6 Td <b573283f> Tj ET", "",
	}, "\n")))
	qt.Check(t, qt.IsTrue(bytes.Contains(file, []byte("/A1 <</ca 0.502 /CA 0.502>>"))))
	qt.Check(t, qt.IsTrue(bytes.Contains(file, []byte("/MediaBox [0 0 200 100]"))))
}

// An arc goes through the points of its circle.
func TestPDFArc(t *testing.T) {
	c := newPDF(100, 100)
	c.page.Reset()
	var p vg.Path
	p.Move(vg.Point{X: 60, Y: 50})
	p.Arc(vg.Point{X: 50, Y: 50}, 10, 0, 2*math.Pi)
	c.Fill(p)
	ends := regexp.MustCompile(`(\S+) (\S+) (?:l|c)\n`).FindAllStringSubmatch(c.page.String(), -1)
	qt.Assert(t, qt.HasLen(ends, 9))
	for i, end := range ends {
		x, err1 := strconv.ParseFloat(end[1], 64)
		y, err2 := strconv.ParseFloat(end[2], 64)
		qt.Assert(t, qt.IsTrue(err1 == nil && err2 == nil))
		sin, cos := math.Sincos(float64(i) * math.Pi / 4)
		qt.Check(t, qt.IsTrue(math.Hypot(x-50-10*cos, y-50-10*sin) < 0.002), qt.Commentf("%d", i))
	}
}

// The table of a file says where its objects are, and the font comes along if it is to.
func TestPDFFile(t *testing.T) {
	for _, withFont := range []bool{false, true} {
		c := newPDF(100, 100)
		c.FillString(font.DefaultCache.Lookup(sans(9), vg.Points(9)), vg.Point{}, "x")
		file, err := c.file(withFont)
		qt.Assert(t, qt.IsNil(err))
		rows := regexp.MustCompile(`(\d{10}) 00000 n `).FindAllSubmatch(file, -1)
		qt.Assert(t, qt.HasLen(rows, map[bool]int{false: 6, true: 7}[withFont]))
		for i, row := range rows {
			at, err := strconv.Atoi(string(row[1]))
			qt.Assert(t, qt.IsNil(err))
			begin := strconv.Itoa(i+1) + " 0 obj\n"
			qt.Check(t, qt.IsTrue(bytes.HasPrefix(file[at:], []byte(begin))))
		}
		at := bytes.LastIndex(file, []byte("startxref\n"))
		begin, err := strconv.Atoi(strings.Fields(string(file[at:]))[1])
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(bytes.HasPrefix(file[begin:], []byte("xref\n"))))
		qt.Check(t, qt.IsTrue(bytes.Contains(file, []byte("/BaseFont /LiberationSans"))))
		qt.Check(t, qt.Equals(bytes.Contains(file, []byte("/FontFile2 7 0 R")), withFont))
		qt.Check(t, qt.Equals(len(file) > 200_000, withFont))
	}
}
