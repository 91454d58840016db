// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"gonum.org/v1/plot/vg"
)

func TestCompactPath(t *testing.T) {
	for _, tc := range []struct {
		name, path, want string
	}{
		{"relative, in tenths", "M30.167,273.55L50.167,273.55L51,270.04",
			"M30.2,273.6l20,0 .8-3.6"},
		{"rounding does not add up", "M0,0L0.04,1L0.08,2L0.12,3", "M0,0l0,1 .1,1 0,1"},
		{"points that fall together", "M0,0L10,10L10.01,10.01L20,10", "M0,0l10,10 10,0"},
		{"a dot stays visible", "M1,1L1.01,1", "M1,1l0,0"},
		{"closed and several", "M0,0L1,0L1,1ZM5,5L6,5", "M0,0l1,0 0,1zM5,5l1,0"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, ok := compactPath(tc.path, 0)
			qt.Assert(t, qt.IsTrue(ok))
			qt.Assert(t, qt.Equals(got, tc.want))
		})
	}
	_, ok := compactPath("M0,0A2,2 0 0 1 3,3Z", 0)
	qt.Assert(t, qt.IsFalse(ok))
}

// A line keeps what is farther off than the tolerance, and loses what is not.
func TestSimplify(t *testing.T) {
	line := []dot{{0, 0}, {10, 1}, {20, -1}, {30, 0}, {40, 50}, {50, 0}, {60, 2}, {70, 0}}
	qt.Check(t, qt.IsTrue(slices.Equal(simplify(line, 3),
		[]dot{{0, 0}, {30, 0}, {40, 50}, {50, 0}, {70, 0}})))
	qt.Check(t, qt.IsTrue(slices.Equal(simplify(line, 0), line)))
	ring := []dot{{0, 0}, {10, 0}, {10, 10}, {0, 10}, {0, 0}} // ends where it began
	qt.Check(t, qt.IsTrue(slices.Equal(simplify(ring, 1), ring)))
}

// A page is drawn with more thrift until it is small enough, but no longer.
func TestWriteSmall(t *testing.T) {
	write := func(size int) (tried int, got string) {
		var page strings.Builder
		qt.Assert(t, qt.IsNil(writeSmall(&page, func(w io.Writer, _ thrift) error {
			tried++
			_, err := w.Write(bytes.Repeat([]byte{byte('0' + tried)}, size/tried))
			return err
		})))
		return tried, page.String()[:1]
	}
	for size, want := range map[int]int{1e6: 1, 2e6: 2, 3e6: 3, 1e7: len(thrifts)} {
		tried, got := write(size)
		qt.Check(t, qt.Equals(tried, want))
		qt.Check(t, qt.Equals(got, strconv.Itoa(want)))
	}
	err := writeSmall(io.Discard, func(io.Writer, thrift) error { return errNoRun })
	qt.Check(t, qt.ErrorIs(err, errNoRun))
}

// A curve keeps its extremes, however many bins a column has.
func TestThin(t *testing.T) {
	var points []vg.Point
	for i := range 1000 {
		points = append(points, vg.Point{X: vg.Length(i) / 1000, Y: vg.Length(i % 7)})
	}
	points[500].Y, points[600].Y = 99, -99
	kept := thin(points)
	qt.Assert(t, qt.IsTrue(len(kept) <= 8), qt.Commentf("%d points", len(kept)))
	qt.Assert(t, qt.SliceContains(kept, points[0]))
	qt.Assert(t, qt.SliceContains(kept, points[500]))
	qt.Assert(t, qt.SliceContains(kept, points[600]))
	qt.Assert(t, qt.SliceContains(kept, points[999]))
	for i := 1; i < len(kept); i++ {
		qt.Assert(t, qt.IsTrue(kept[i].X > kept[i-1].X))
	}
	qt.Assert(t, qt.DeepEquals(thin(points[:2]), points[:2]))
}

// What is between the thinned curves is between the curves.
func TestThinBoth(t *testing.T) {
	low := []vg.Point{{X: 0, Y: 1}, {X: 0.1, Y: 3}, {X: 0.2, Y: 0}, {X: 1, Y: 2}}
	high := []vg.Point{{X: 0, Y: 9}, {X: 0.1, Y: 7}, {X: 0.2, Y: 8}, {X: 1, Y: 5}}
	l, h := thinBoth(low, high)
	qt.Assert(t, qt.DeepEquals(l, []vg.Point{{X: 0, Y: 3}, {X: 1, Y: 2}}))
	qt.Assert(t, qt.DeepEquals(h, []vg.Point{{X: 0, Y: 7}, {X: 1, Y: 5}}))
}
