// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"math"

	"gonum.org/v1/plot"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// logarithmicFrom is how many times the smallest value the largest must be for a logarithmic axis.
const logarithmicFrom = 30

// valueAxis is an upright axis that fits some values. What is drawn on it are values
// in its unit or, if it is logarithmic, their logarithms to base 10: the axis label
// of a plot with [plot.LogScale] is not where it belongs.
type valueAxis struct {
	unit        string
	scale       float64 // of values into the unit
	low, high   float64
	logarithmic bool
}

// newValueAxis returns an axis for values, with a share of its length left above them.
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
		a.low = math.Floor(math.Log10(least * a.scale / 1.5)) // the lowest is not at the foot
		a.high = a.low + (math.Log10(top*a.scale)-a.low)/(1-room)
	case top > 0:
		a.high = top * a.scale / (1 - room)
	}
	return a
}

// linearAxis is newValueAxis, never logarithmic: for what is added up.
func linearAxis(unit experiment.Unit, values []float64, room float64) valueAxis {
	top := 0.0
	for _, v := range values {
		top = max(top, v)
	}
	return newValueAxis(unit, []float64{top}, room)
}

// at returns where on the axis a value is: not below its foot.
func (a valueAxis) at(value float64) float64 {
	value *= a.scale
	if a.logarithmic {
		value = math.Log10(value)
	}
	return max(value, a.low)
}

// ticks are powers of 10 on a logarithmic axis.
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

// label returns what is measured, with the unit.
func (a valueAxis) label(what string) string {
	if a.unit == "" {
		return what
	}
	return what + " (" + a.unit + ")"
}

// axisUnit returns the unit of an axis that reaches up to a value, and what to
// multiply values with to have them in it.
func axisUnit(unit experiment.Unit, top float64) (name string, scale float64) {
	type step struct {
		from  float64
		name  string
		scale float64
	}
	for _, s := range map[experiment.Unit][]step{
		experiment.UnitTime:  {{1e9, "s", 1e-9}, {1e6, "ms", 1e-6}, {1e3, "us", 1e-3}, {0, "ns", 1}},
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
