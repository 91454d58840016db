// SPDX-License-Identifier: Apache-2.0

package averaging

import (
	"math"

	"github.com/pcn-linux/pcn/internal/fluid/dde"
)

// plant is P(s) = (s + 1) / (s^3 + 1.6 s^2 + 0.8 s + 0.6), slide 44.
func plant(s complex128) complex128 { return (s + 1) / (s*s*s + 1.6*s*s + 0.8*s + 0.6) }

// plantLoop is the plant behind a controller with these gains, whose messages come every T seconds.
func plantLoop(g Gains, period float64) func(s complex128) complex128 {
	return func(s complex128) complex128 {
		return (complex(g.Proportional, 0) + complex(g.Derivative*period, 0)*s) * plant(s)
	}
}

// summedPlantLoop is the same behind a source that sums the feedback up, with a gain in 1/s.
func summedPlantLoop(g Gains, period, gain float64) func(s complex128) complex128 {
	l := plantLoop(g, period)
	return func(s complex128) complex128 { return complex(gain, 0) / s * l(s) }
}

// Point is a moment of a step response.
type Point struct{ T, Y float64 }

// stepResponse returns the output of the plant in a loop with a delay, whose set point becomes 1 at
// t = 0. The controller samples the error every period and holds what it makes of it, as a source
// that averages does: a change of the error is obeyed, and then averaged.
func stepResponse(steps int, period, delay, seconds float64) []Point {
	const step = 0.02
	perPeriod := int(math.Round(period / step))
	source := &Source{Steps: steps}
	var held, before float64
	parts := source.Rates(0)
	s := dde.System{
		Derivative: func(_ float64, y []float64, _ dde.Past, dy []float64) {
			dy[0], dy[1] = y[1], y[2]
			dy[2] = held - 0.6*y[0] - 0.8*y[1] - 1.6*y[2]
		},
	}
	v, err := dde.New(s, dde.RK4, 0, step, []float64{0, 0, 0})
	if err != nil {
		panic(err) // the step is positive
	}
	var out []Point
	late := int(math.Round(delay / step))
	for k := range int(seconds / step) {
		phase := k % perPeriod
		if phase == 0 {
			e := 1.0
			if i := k - max(late, 1); i >= 0 {
				e -= out[i].Y
			}
			parts = source.Rates(e - before)
			before = e
		}
		held = parts[min(phase*len(parts)/perPeriod, len(parts)-1)]
		y := v.Values()
		out = append(out, Point{float64(k) * step, y[0] + y[1]})
		v.Step()
	}
	return out
}

// Settles reports whether a step response stays within a band around where it ends, and its swing
// falls.
func Settles(r []Point) bool {
	swing := func(from, to int) float64 {
		low, high := math.Inf(1), math.Inf(-1)
		for _, p := range r[from:to] {
			low, high = min(low, p.Y), max(high, p.Y)
		}
		return high - low
	}
	n := len(r)
	return swing(n*4/5, n) < swing(n*2/5, n*3/5)
}
