// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"

	"github.com/go-quicktest/qt"
	"gonum.org/v1/plot/vg"
)

// A figure's file has the letters of our font that it needs. In a page it has no font.
func TestFontsOfPDF(t *testing.T) {
	e := load(t)
	figures, err := Figures(Group{Experiment: e, Runs: fig2(e)})
	qt.Assert(t, qt.IsNil(err))
	alone, err := figures[0].pdf(true)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Contains(alone, []byte("/FontFile2"))))
	qt.Check(t, qt.IsTrue(len(alone) < 100_000), qt.Commentf("%d bytes", len(alone)))
	inPage, err := figures[0].pdf(false)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Contains(inPage, []byte("/BaseFont /Helvetica"))))
	qt.Check(t, qt.IsFalse(bytes.Contains(inPage, []byte("/FontFile"))))
}

// Texts of pages keep the letters of Western Europe.
func TestLettersOfPDF(t *testing.T) {
	qt.Check(t, qt.Equals(readersCodes()("5 µs – α"), "5 \xb5s \x96 ."))
}

// What figures never have is a mistake in the program.
func TestNotInPDF(t *testing.T) {
	c := newPDF(100, 100, false)
	var curve vg.Path
	curve.Move(vg.Point{})
	curve.CubeTo(vg.Point{X: 1}, vg.Point{Y: 1}, vg.Point{X: 1, Y: 1})
	qt.Check(t, qt.PanicMatches(func() { c.Fill(curve) }, "report: a figure has a curve.*"))
	qt.Check(t, qt.PanicMatches(func() { c.DrawImage(vg.Rectangle{}, nil) },
		"report: a figure has an image.*"))
}
