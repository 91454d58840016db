// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"compress/zlib"
	"fmt"
	"image"
	"image/color"
	"math"
	"strconv"

	xfont "golang.org/x/image/font"
	"golang.org/x/image/font/opentype"
	"golang.org/x/image/font/sfnt"
	"golang.org/x/image/math/fixed"
	"golang.org/x/text/encoding/charmap"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/vg"
)

// pdfCanvas draws a figure as a PDF file of one page, in text of one font. gonum's own canvas
// parses the font anew in each program, which took longer than all else of a report.
type pdfCanvas struct {
	width, height vg.Length
	page          bytes.Buffer
	face          *opentype.Font
	lineWidths    []vg.Length // of the contexts that were pushed, and now
	alphas        []uint32    // that were used, of 0xffff
}

// newPDF returns an empty page.
func newPDF(width, height vg.Length) *pdfCanvas {
	c := &pdfCanvas{width: width, height: height, lineWidths: make([]vg.Length, 1)}
	vg.Initialize(c)
	return c
}

// number writes a length or a factor as short as 1/1000 of it allows.
func number(v float64) string {
	return strconv.FormatFloat(math.Round(v*1000)/1000+0, 'f', -1, 64)
}

func (c *pdfCanvas) write(operator string, operands ...float64) {
	for _, v := range operands {
		c.page.WriteString(number(v))
		c.page.WriteByte(' ')
	}
	c.page.WriteString(operator)
	c.page.WriteByte('\n')
}

// Size implements [vg.CanvasSizer].
func (c *pdfCanvas) Size() (width, height vg.Length) { return c.width, c.height }

// SetLineWidth implements [vg.Canvas].
func (c *pdfCanvas) SetLineWidth(w vg.Length) {
	c.lineWidths[len(c.lineWidths)-1] = w
	c.write("w", max(w.Points(), 0))
}

// SetLineDash implements [vg.Canvas].
func (c *pdfCanvas) SetLineDash(pattern []vg.Length, offset vg.Length) {
	c.page.WriteByte('[')
	for i, d := range pattern {
		if i > 0 {
			c.page.WriteByte(' ')
		}
		c.page.WriteString(number(d.Points()))
	}
	c.page.WriteString("] ")
	c.write("d", offset.Points())
}

// SetColor implements [vg.Canvas].
func (c *pdfCanvas) SetColor(to color.Color) {
	if to == nil {
		to = color.Black
	}
	red, green, blue, alpha := to.RGBA() // multiplied by alpha
	share := func(v uint32) float64 { return float64(v) / float64(max(alpha, 1)) }
	c.write("rg", share(red), share(green), share(blue))
	c.write("RG", share(red), share(green), share(blue))
	known := 0
	for known < len(c.alphas) && c.alphas[known] != alpha {
		known++
	}
	if known == len(c.alphas) {
		c.alphas = append(c.alphas, alpha)
	}
	fmt.Fprintf(&c.page, "/A%d gs\n", known)
}

// Rotate implements [vg.Canvas].
func (c *pdfCanvas) Rotate(rad float64) {
	sin, cos := math.Sincos(rad)
	c.write("cm", cos, sin, -sin, cos, 0, 0)
}

// Translate implements [vg.Canvas].
func (c *pdfCanvas) Translate(by vg.Point) {
	c.write("cm", 1, 0, 0, 1, by.X.Points(), by.Y.Points())
}

// Scale implements [vg.Canvas].
func (c *pdfCanvas) Scale(x, y float64) { c.write("cm", x, 0, 0, y, 0, 0) }

// Push implements [vg.Canvas].
func (c *pdfCanvas) Push() {
	c.lineWidths = append(c.lineWidths, c.lineWidths[len(c.lineWidths)-1])
	c.write("q")
}

// Pop implements [vg.Canvas].
func (c *pdfCanvas) Pop() {
	c.lineWidths = c.lineWidths[:len(c.lineWidths)-1]
	c.write("Q")
}

// Stroke implements [vg.Canvas].
func (c *pdfCanvas) Stroke(p vg.Path) {
	if c.lineWidths[len(c.lineWidths)-1] > 0 {
		c.path(p)
		c.write("S")
	}
}

// Fill implements [vg.Canvas].
func (c *pdfCanvas) Fill(p vg.Path) {
	c.path(p)
	c.write("f")
}

func (c *pdfCanvas) path(p vg.Path) {
	for _, part := range p {
		x, y := part.Pos.X.Points(), part.Pos.Y.Points()
		switch part.Type {
		case vg.MoveComp:
			c.write("m", x, y)
		case vg.LineComp:
			c.write("l", x, y)
		case vg.CloseComp:
			c.write("h")
		case vg.ArcComp:
			c.arc(x, y, part.Radius.Points(), part.Start, part.Angle)
		default:
			panic("report: a figure has a curve, which its PDF file can't have")
		}
	}
}

// arc draws an arc, as curves of an eighth of a circle at most.
func (c *pdfCanvas) arc(x, y, radius, start, angle float64) {
	parts := max(math.Ceil(math.Abs(angle)/(math.Pi/4)), 1)
	step := angle / parts
	pull := radius * 4 / 3 * math.Tan(step/4)
	// The products are converted, so that no machine adds to one without rounding it.
	at := func(angle float64) (x1, y1, dx, dy float64) {
		sin, cos := math.Sincos(angle)
		return x + float64(radius*cos), y + float64(radius*sin),
			float64(-pull * sin), float64(pull * cos)
	}
	x1, y1, dx, dy := at(start)
	c.write("l", x1, y1)
	for i := range int(parts) {
		x2, y2, dx2, dy2 := at(start + float64(float64(i+1)*step))
		c.write("c", x1+dx, y1+dy, x2-dx2, y2-dy2, x2, y2)
		x1, y1, dx, dy = x2, y2, dx2, dy2
	}
}

// FillString implements [vg.Canvas]. Letters that the page's encoding lacks become question marks.
func (c *pdfCanvas) FillString(face font.Face, at vg.Point, text string) {
	if face.Font.Size == 0 {
		return
	}
	c.face = face.Face
	fmt.Fprintf(&c.page, "BT /F %s Tf %s %s Td <", number(face.Font.Size.Points()),
		number(at.X.Points()), number(at.Y.Points()))
	for _, letter := range text {
		code, ok := charmap.Windows1252.EncodeRune(letter)
		if !ok {
			code = '?'
		}
		fmt.Fprintf(&c.page, "%02x", code)
	}
	c.page.WriteString("> Tj ET\n")
}

// DrawImage implements [vg.Canvas].
func (c *pdfCanvas) DrawImage(vg.Rectangle, image.Image) {
	panic("report: a figure has an image, which its PDF file can't have")
}

// The codes of letters in a PDF file's fonts.
const firstCode, lastCode = 32, 255

// file returns the PDF file. With the font it is 215 KB larger; without it readers show a similar
// one.
func (c *pdfCanvas) file(withFont bool) ([]byte, error) {
	var alphas bytes.Buffer
	for i, a := range c.alphas {
		share := number(float64(a) / math.MaxUint16)
		fmt.Fprintf(&alphas, "/A%d <</ca %s /CA %s>> ", i, share, share)
	}
	fonts, objects := "", []string{}
	if c.face != nil {
		var err error
		if objects, err = fontObjects(c.face, 5, withFont); err != nil {
			return nil, err
		}
		fonts = "/Font <</F 5 0 R>> "
	}
	page, err := stream(c.page.Bytes(), "")
	if err != nil {
		return nil, err
	}
	objects = append([]string{
		"<</Type /Catalog /Pages 2 0 R>>",
		"<</Type /Pages /Kids [3 0 R] /Count 1>>",
		fmt.Sprintf("<</Type /Page /Parent 2 0 R /MediaBox [0 0 %s %s] /Contents 4 0 R "+
			"/Resources <<%s/ExtGState <<%s>>>>>>",
			number(c.width.Points()), number(c.height.Points()), fonts, alphas.String()),
		page,
	}, objects...)
	var out bytes.Buffer
	out.WriteString("%PDF-1.4\n")
	var table bytes.Buffer
	for i, o := range objects {
		fmt.Fprintf(&table, "%010d 00000 n \n", out.Len())
		fmt.Fprintf(&out, "%d 0 obj\n%s\nendobj\n", i+1, o)
	}
	at, n := out.Len(), len(objects)+1
	fmt.Fprintf(&out, "xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d /Root 1 0 R>>\n"+
		"startxref\n%d\n%%%%EOF\n", n, table.String(), n, at)
	return out.Bytes(), nil
}

// stream returns an object with compressed data.
func stream(data []byte, entries string) (string, error) {
	var packed bytes.Buffer
	w := zlib.NewWriter(&packed)
	if _, err := w.Write(data); err != nil {
		return "", err
	}
	if err := w.Close(); err != nil {
		return "", err
	}
	return fmt.Sprintf("<</Length %d /Filter /FlateDecode%s>>\nstream\n%s\nendstream",
		packed.Len(), entries, packed.String()), nil
}

// fontObjects returns the objects of the font; first is the number of the first.
func fontObjects(face *opentype.Font, first int, embed bool) ([]string, error) {
	var buf sfnt.Buffer
	const unit = 1000 // lengths are in 1/1000 of the font's size
	size := fixed.I(unit)
	name, err := face.Name(&buf, sfnt.NameIDPostScript)
	if err != nil {
		return nil, fmt.Errorf("read the font's name: %w", err)
	}
	metrics, err := face.Metrics(&buf, size, xfont.HintingNone)
	if err != nil {
		return nil, fmt.Errorf("read metrics of font %s: %w", name, err)
	}
	box, err := face.Bounds(&buf, size, xfont.HintingNone)
	if err != nil {
		return nil, fmt.Errorf("read bounds of font %s: %w", name, err)
	}
	var widths bytes.Buffer
	for code := firstCode; code <= lastCode; code++ {
		glyph, err := face.GlyphIndex(&buf, charmap.Windows1252.DecodeByte(byte(code)))
		if err != nil {
			return nil, fmt.Errorf("find a letter in font %s: %w", name, err)
		}
		width, err := face.GlyphAdvance(&buf, glyph, size, xfont.HintingNone)
		if err != nil {
			return nil, fmt.Errorf("read a letter's width in font %s: %w", name, err)
		}
		fmt.Fprintf(&widths, "%d ", width.Round())
	}
	objects := []string{
		fmt.Sprintf("<</Type /Font /Subtype /TrueType /BaseFont /%s /Encoding /WinAnsiEncoding "+
			"/FirstChar %d /LastChar %d /Widths [%s] /FontDescriptor %d 0 R>>",
			name, firstCode, lastCode, bytes.TrimSpace(widths.Bytes()), first+1),
	}
	descriptor := fmt.Sprintf("<</Type /FontDescriptor /FontName /%s /Flags 32 "+
		"/FontBBox [%d %d %d %d] /ItalicAngle 0 /Ascent %d /Descent %d /CapHeight %d /StemV 80",
		name, box.Min.X.Floor(), -box.Max.Y.Ceil(), box.Max.X.Ceil(), -box.Min.Y.Floor(),
		metrics.Ascent.Round(), -metrics.Descent.Round(), metrics.CapHeight.Round())
	if !embed {
		return append(objects, descriptor+">>"), nil
	}
	var source bytes.Buffer
	if _, err := face.WriteSourceTo(&buf, &source); err != nil {
		return nil, fmt.Errorf("read font %s: %w", name, err)
	}
	file, err := stream(source.Bytes(), fmt.Sprintf(" /Length1 %d", source.Len()))
	if err != nil {
		return nil, err
	}
	return append(objects, fmt.Sprintf("%s /FontFile2 %d 0 R>>", descriptor, first+2), file), nil
}
