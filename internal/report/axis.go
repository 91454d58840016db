// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// logarithmicFrom is the ratio of largest to smallest value above which an axis is logarithmic.
const logarithmicFrom = 30

// valueAxis is a vertical axis that fits some values. It has values in its unit or, if it is
// logarithmic, their logarithms to base 10. It does not use [plot.LogScale], which puts the axis
// label in the wrong place.
type valueAxis struct {
	unit        string
	scale       float64 // multiplies values to get the unit
	low, high   float64
	logarithmic bool
}

// newValueAxis returns an axis for values. It leaves the share room of its length empty above them.
func newValueAxis(unit experiment.Unit, values []float64, room float64) valueAxis {
	least, top := math.Inf(1), 0.0
	for _, v := range values {
		top = max(top, v)
		if v > 0 {
			least = min(least, v)
		}
	}
	a := valueAxis{high: 1}
	a.unit, a.scale = axisUnit(unit, top)
	switch {
	case top > logarithmicFrom*least:
		a.logarithmic = true
		a.low = math.Floor(math.Log10(least * a.scale / 1.5)) // keeps the lowest bar visible
		a.high = a.low + (math.Log10(top*a.scale)-a.low)/(1-room)
	case top > 0:
		a.high = top * a.scale / (1 - room)
	}
	return a
}

// linearAxis is newValueAxis, but never logarithmic: stacked values need a linear axis.
func linearAxis(unit experiment.Unit, values []float64, room float64) valueAxis {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	return newValueAxis(unit, []float64{top}, room)
}

// at returns the position of a value on the axis, at least its lower end.
func (a valueAxis) at(value float64) float64 {
	value *= a.scale
	if a.logarithmic {
		value = math.Log10(value)
	}
	return max(value, a.low)
}

// ticks returns powers of 10 for a logarithmic axis, else about 4 ticks.
func (a valueAxis) ticks() plot.Ticker {
	if !a.logarithmic {
		return fewTicks{4}
	}
	var ticks plot.ConstantTicks
	for i := math.Ceil(a.low); i <= a.high; i++ {
		ticks = append(ticks, plot.Tick{Value: i, Label: fmt.Sprintf("%.4g", math.Pow(10, i))})
	}
	return ticks
}

// label returns the text of the axis, with the unit.
func (a valueAxis) label(what string) string {
	if a.unit == "" {
		return what
	}
	return what + " (" + a.unit + ")"
}

// axisUnit returns the unit of an axis with top as largest value, and the factor from values to it.
func axisUnit(unit experiment.Unit, top float64) (name string, scale float64) {
	type step struct {
		from  float64
		name  string
		scale float64
	}
	for _, s := range map[experiment.Unit][]step{
		experiment.UnitTime: {{1e9, "s", 1e-9}, {1e6, "ms", 1e-6}, {1e3, "us", 1e-3},
			{0, "ns", 1}},
		experiment.UnitRate:  {{1e9, "Gbit/s", 1e-9}, {0, "Mbit/s", 1e-6}},
		experiment.UnitBytes: {{2e6, "MB", 1e-6}, {0, "KB", 1e-3}},
		experiment.UnitShare: {{0, "%", 100}},
	}[unit] {
		if top >= s.from {
			return s.name, s.scale
		}
	}
	return "", 1
}
