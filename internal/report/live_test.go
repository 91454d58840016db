// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"regexp"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

func TestNumbersAreShort(t *testing.T) {
	data, err := json.Marshal(numbers{0, 0, 0, 1.23456, 2, 2, 1e-7, 39999.6})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(data), "[[3,0],1.235,2,2,1e-07,4e+04]"))
	data, err = json.Marshal([]numbers{nil, {5, 5, 5}})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(string(data), "[[],[[3,5]]]"))
}

// A thinned panel keeps the extremes of each curve, in their order.
func TestPanelIsThinned(t *testing.T) {
	p := livePanel{
		X: numbers{0, 1, 2, 3, 4, 5, 6, 7},
		Curves: []liveCurve{{Y: numbers{0, 9, 1, 2, 5, 4, 8, 3}},
			{Y: numbers{7, 6, 5, 4, 3, 2, 1, 0}}},
	}
	p.thin(4) // two bins each are as many values
	qt.Assert(t, qt.HasLen(p.X, 8))
	p.thin(2)
	qt.Assert(t, qt.DeepEquals(p.X, numbers{0, 2, 4, 6}))
	qt.Assert(t, qt.DeepEquals(p.Curves[0].Y, numbers{0, 9, 8, 3}))
	qt.Assert(t, qt.DeepEquals(p.Curves[1].Y, numbers{7, 4, 3, 0}))
}

// Curves that have other values of x are read off at common ones.
func TestTable(t *testing.T) {
	a := &curve{points: []point{{0, 1}, {5, 2}, {10, 3}}, name: "A"}
	b := &curve{points: []point{{2, 7}, {10, 8}}, name: "B"}
	x, curves := table([]*curve{a}, 0, 10)
	qt.Assert(t, qt.DeepEquals(x, numbers{0, 5, 10}))
	qt.Assert(t, qt.DeepEquals(curves[0].Y, numbers{1, 2, 3}))
	x, curves = table([]*curve{a, b}, 0, 10)
	qt.Assert(t, qt.Equals(x[len(x)/2], 5))
	qt.Assert(t, qt.Equals(curves[0].Y[len(x)/2], 2))
	qt.Assert(t, qt.Equals(curves[1].Y[len(x)/2], 7))
	qt.Assert(t, qt.Equals(curves[1].Y[len(x)-1], 8))
}

// Bars of values below 1 stand on the foot of a logarithmic axis, as in the picture.
func TestBarsStandOnTheAxis(t *testing.T) {
	values := []float64{600_000, 18_500_000} // 0.6 and 18.5 ms: the axis begins at 0.1
	axis := newValueAxis(experiment.UnitTime, values, 0.1)
	qt.Assert(t, qt.IsTrue(axis.logarithmic))
	qt.Assert(t, qt.Equals(axis.low, -1))
	f := named("loss", "", []string{"PCN", "PFC"})
	b := &bars{}
	for i, v := range values {
		b.items = append(b.items, bar{from: float64(i), to: float64(i) + 0.4, value: axis.at(v)})
	}
	f.add(experiment.RecoveryTime, axis, b)
	drawn := f.live().Panels[0].Over[0].Bars
	qt.Assert(t, qt.HasLen(drawn, 2))
	for i := range drawn {
		qt.Check(t, qt.Equals(drawn[i].Foot, -1))
		qt.Check(t, qt.IsTrue(drawn[i].Value > drawn[i].Foot))
	}
}

// The script draws the figures that the page shows as SVG, each once.
func TestFiguresOverTimeAreLive(t *testing.T) {
	e := load(t)
	page := render(t, e, fig2(e))
	found := regexp.MustCompile(`(?s) id="live-data">(.*?)</script>`).FindStringSubmatch(page)
	qt.Assert(t, qt.HasLen(found, 2))
	var figures []struct {
		Title  string
		Legend []struct{ Name string }
		Panels []struct {
			Curves, Rows []struct{ Name string }
		}
	}
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(found[1]), &figures)))
	qt.Assert(t, qt.HasLen(figures, 3))
	for i, f := range figures {
		entries := map[string]bool{}
		for _, entry := range f.Legend {
			entries[entry.Name] = true
		}
		for _, p := range f.Panels {
			qt.Check(t, qt.IsTrue(len(p.Curves) > 0 || len(p.Rows) > 0))
			for _, c := range p.Curves { // else the legend cannot hide it
				qt.Check(t, qt.IsTrue(entries[c.Name]), qt.Commentf("%s: %q", f.Title, c.Name))
			}
		}
		qt.Check(t, qt.StringContains(page, `data-live="`+string(rune('1'+i))+`"`))
	}
}
