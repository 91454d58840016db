// SPDX-License-Identifier: Apache-2.0

package look

import (
	"bytes"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"
)

var update = flag.Bool("update", false, "write the golden pictures of pages anew")

// maxLoad is how long a page may take to load and draw, in seconds of CPU time.
const maxLoad = 1.0

// views are how pages are looked at. A golden picture has a cell for each square of pixels.
var views = []struct {
	width int64
	cell  int
}{{1400, 14}, {400, 8}}

// Page looks at a page as Layout does, and holds screenshots against the golden ones in
// testdata/look. The flag -update writes the golden ones anew. PCN_SCREENSHOTS=DIR writes the
// screenshots, to look at. It returns how many figures the page's script draws.
func Page(t *testing.T, name, address string) (drawn int) {
	t.Helper()
	return inEachView(t, Browser(t), name, address, compare)
}

// Layout looks at a page in light and dark, wide and narrow: it checks how long loading takes, that
// all is drawn and within its place, and that texts have contrast. Pages may share a Browser.
func Layout(t *testing.T, browser context.Context, name, address string) {
	t.Helper()
	inEachView(t, browser, name, address, func(*testing.T, context.Context, string, int) {})
}

func inEachView(t *testing.T, ctx context.Context, name, address string,
	then func(t *testing.T, ctx context.Context, file string, cell int)) (drawn int) {
	t.Helper()
	for _, v := range views {
		for _, colors := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%s %d %s", name, v.width, colors), func(t *testing.T) {
				Do(t, ctx, AtSize(v.width, colors))
				Quickly(t, maxLoad, func() (seconds float64) {
					seconds, drawn = loadSeconds(t, ctx, address)
					return seconds
				})
				wrong := Ask[[]string](t, ctx, atPage)
				qt.Check(t, qt.HasLen(wrong, 0), qt.Commentf("%s", strings.Join(wrong, "\n")))
				then(t, ctx, fmt.Sprintf("%s-%d-%s.png", name, v.width, colors), v.cell)
			})
		}
	}
	return drawn
}

// Picture holds a screenshot of a file that is a drawing against the golden one, in light and wide.
func Picture(t *testing.T, name, address string) {
	t.Helper()
	ctx := Browser(t)
	Do(t, ctx, AtSize(views[0].width, "light"), chromedp.Navigate(address))
	compare(t, ctx, name+".png", views[0].cell)
}

// compare holds a screenshot against the golden one.
func compare(t *testing.T, ctx context.Context, file string, cell int) {
	t.Helper()
	picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
	qt.Assert(t, qt.IsNil(err))
	if dir := os.Getenv("PCN_SCREENSHOTS"); dir != "" {
		qt.Check(t, qt.IsNil(os.WriteFile(filepath.Join(dir, file), picture, 0o600)))
	}
	screen, err := png.Decode(bytes.NewReader(picture))
	qt.Assert(t, qt.IsNil(err))
	holdAgainst(t, filepath.Join("testdata", "look", file), shrink(screen, cell), cell)
}

// Quickly fails if measure returns too many seconds of CPU time. It measures again, at most five
// times: a machine that did much else at one moment took three times as long for a page of 0.3 s.
// The quickest time is the page's own.
func Quickly(t *testing.T, mostS float64, measure func() float64) {
	t.Helper()
	for range 5 {
		seconds := measure()
		if seconds < mostS {
			return
		}
		t.Logf("it took %.3f s", seconds)
	}
	t.Errorf("each time it took %.1f s or more", mostS)
}

// loadSeconds loads a page and draws all of its figures. It returns the CPU time that the page's
// thread took, which does not depend on what else this machine does.
func loadSeconds(t *testing.T, ctx context.Context, address string) (seconds float64, drawn int) {
	t.Helper()
	Do(t, ctx, chromedp.Navigate(address))
	drawn = Ask[int](t, ctx, scrollThrough)
	Do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		got, err := cdp.Call(ctx, target, performance.GetMetrics, cdp.Empty{})
		for _, m := range got.Metrics {
			if m.Name == "TaskDuration" {
				seconds = m.Value
			}
		}
		return err
	}))
	qt.Assert(t, qt.IsTrue(seconds > 0))
	return seconds, drawn
}

// steps is how many levels of each colour a golden picture has: it is for eyes of little sharpness.
const steps = 16

// shrink returns a picture with a pixel for each square of cell by cell pixels: their mean, in few
// levels. How letters are smoothed does not matter then.
func shrink(m image.Image, cell int) *image.NRGBA {
	b := m.Bounds()
	small := image.NewNRGBA(image.Rect(0, 0, b.Dx()/cell, b.Dy()/cell))
	for y := range small.Rect.Dy() {
		for x := range small.Rect.Dx() {
			var sum [3]int
			for dy := range cell {
				for dx := range cell {
					r, g, bl, _ := m.At(b.Min.X+x*cell+dx, b.Min.Y+y*cell+dy).RGBA()
					sum[0], sum[1], sum[2] = sum[0]+int(r>>8), sum[1]+int(g>>8), sum[2]+int(bl>>8)
				}
			}
			level := func(sum int) uint8 {
				const step = 255 / (steps - 1)
				return uint8((sum/(cell*cell) + step/2) / step * step)
			}
			small.SetNRGBA(x, y, color.NRGBA{R: level(sum[0]), G: level(sum[1]), B: level(sum[2]),
				A: 255})
		}
	}
	return small
}

// The tolerance: a cell differs if a colour of it is farther off than maxOff levels of 255, and of
// any window of cells, maxDiffering may. Other hinting, smoothing, places of letters and colour
// profiles of the browser change at most 3 cells of a window; a curve that is gone changes 45 to
// 132. A mark thinner than a cell may go unseen: other tests look at those.
const (
	maxOff       = 40
	window       = 12
	maxDiffering = 6
	maxHeightOff = 2 // cells
)

// holdAgainst fails unless the picture is like the golden one.
func holdAgainst(t *testing.T, golden string, got *image.NRGBA, cell int) {
	t.Helper()
	if *update {
		qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Dir(golden), 0o755)))
		var buf bytes.Buffer
		encoder := png.Encoder{CompressionLevel: png.BestCompression}
		qt.Assert(t, qt.IsNil(encoder.Encode(&buf, got)))
		qt.Assert(t, qt.IsNil(os.WriteFile(golden, buf.Bytes(), 0o644)))
		return
	}
	f, err := os.Open(golden)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("hint: look at the page (PCN_SCREENSHOTS=DIR), then "+
		"run the test with -update"))
	defer f.Close()
	want, err := png.Decode(f)
	qt.Assert(t, qt.IsNil(err))
	if problem := differ(want, got, cell); problem != "" {
		t.Errorf("%s: %s (hint: look at both: PCN_SCREENSHOTS=DIR writes what is there now, and "+
			"-update makes it the golden one)", golden, problem)
	}
}

// differ says where two shrunken pictures differ by more than the tolerance; "" if they do not.
func differ(want, got image.Image, cell int) string {
	a, b := want.Bounds(), got.Bounds()
	if off := b.Dy() - a.Dy(); a.Dx() != b.Dx() || max(off, -off) > maxHeightOff {
		return fmt.Sprintf("the page has %d by %d pixels, want %d by %d", b.Dx()*cell, b.Dy()*cell,
			a.Dx()*cell, a.Dy()*cell)
	}
	width, height := a.Dx(), min(a.Dy(), b.Dy())
	count := func(x0, y0 int) (n int) {
		for y := y0; y < min(y0+window, height); y++ {
			for x := x0; x < min(x0+window, width); x++ {
				if isOff(want.At(x, y), got.At(x, y)) {
					n++
				}
			}
		}
		return n
	}
	most, atX, atY := 0, 0, 0
	for y := 0; y < height; y += window / 2 {
		for x := 0; x < width; x += window / 2 {
			if n := count(x, y); n > most {
				most, atX, atY = n, x, y
			}
		}
	}
	if most <= maxDiffering {
		return ""
	}
	side := window * cell
	return fmt.Sprintf("%d of %d cells differ in the %d by %d pixels from (%d, %d) on, want at "+
		"most %d", most, window*window, side, side, atX*cell, atY*cell, maxDiffering)
}

func isOff(a, b color.Color) bool {
	r, g, bl, _ := a.RGBA()
	r2, g2, bl2, _ := b.RGBA()
	for _, d := range []int{int(r>>8) - int(r2>>8), int(g>>8) - int(g2>>8),
		int(bl>>8) - int(bl2>>8)} {
		if max(d, -d) > maxOff {
			return true
		}
	}
	return false
}
