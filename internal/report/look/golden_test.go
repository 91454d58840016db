// SPDX-License-Identifier: Apache-2.0

package look

import (
	"image"
	"image/color"
	"testing"

	"github.com/go-quicktest/qt"
)

// picture is white, with a black line of this length.
func picture(width, height, line int) *image.NRGBA {
	m := image.NewNRGBA(image.Rect(0, 0, width, height))
	for i := range m.Pix {
		m.Pix[i] = 255
	}
	for x := range line {
		m.Set(x, height/2, color.Black)
	}
	return m
}

func TestDiffer(t *testing.T) {
	golden := picture(100, 200, 0)
	qt.Check(t, qt.Equals(differ(golden, picture(100, 200, 0), 8), ""))
	qt.Check(t, qt.Equals(differ(golden, picture(100, 200+maxHeightOff, 0), 8), ""))
	qt.Check(t, qt.Equals(differ(golden, picture(100, 200, maxDiffering), 8), ""))
	qt.Check(t, qt.StringContains(differ(golden, picture(100, 200, maxDiffering+1), 8),
		"7 of 144 cells differ in the 96 by 96 pixels"))
	for _, size := range [][2]int{{101, 200}, {100, 201 + maxHeightOff}} {
		other := picture(size[0], size[1], 0)
		qt.Check(t, qt.StringContains(differ(golden, other, 8), "want 800 by"))
	}
}

// Noise of single pixels vanishes, and areas stay.
func TestShrink(t *testing.T) {
	m := picture(32, 32, 1)
	for y := range 16 {
		for x := range 16 {
			m.Set(x, y, color.Black)
		}
	}
	small := shrink(m, 8)
	qt.Assert(t, qt.Equals(small.Rect, image.Rect(0, 0, 4, 4)))
	qt.Check(t, qt.Equals(small.NRGBAAt(1, 1), color.NRGBA{A: 255}))
	qt.Check(t, qt.Equals(small.NRGBAAt(0, 2), color.NRGBA{R: 255, G: 255, B: 255, A: 255}))
}
