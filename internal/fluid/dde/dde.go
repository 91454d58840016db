// SPDX-License-Identifier: Apache-2.0

// Package dde solves delay-differential equations y'(t) = f(t, y(t), y(t - tau), ...) with a fixed
// step. Its methods are Euler's, Heun's and the classical Runge-Kutta method of order 4; the past
// is interpolated by cubic Hermite polynomials, whose error is of order 4 too.
package dde

import (
	"errors"
	"fmt"
	"math"
)

// Method is a Runge-Kutta method.
type Method int

// The methods, by their order.
const (
	Euler Method = 1
	Heun  Method = 2
	RK4   Method = 4
)

// Past returns component i of the solution at a time up to the present step. Within the step that
// is being computed it returns the stage's own value, so a delay of 0 is allowed.
type Past func(i int, t float64) float64

// System is what is solved.
type System struct {
	// Derivative writes f(t, y) to dy. Required.
	Derivative func(t float64, y []float64, past Past, dy []float64)
	// Initial returns the solution up to the start. Default: the start's values, for ever.
	Initial Past
	// Limit keeps y in its range after each step, such as a queue at 0 and above. Default: none.
	Limit func(t float64, y []float64)
	// MaxDelay is the longest time that Derivative looks back. Older values are forgotten. Default
	// 0: they are all kept.
	MaxDelay float64
}

// Solver computes the solution step by step.
type Solver struct {
	system System
	method Method
	step   float64
	start  float64
	steps  int // that were made
	y      []float64

	history   []float64 // y and its derivative at the last steps, a ring
	rows      int       // of the ring
	width     int       // of a row
	k         [4][]float64
	stage     []float64
	stageTime float64
}

// New returns a solver at a start with these values; it fails if the step can't be used.
func New(s System, m Method, start, step float64, y []float64) (*Solver, error) {
	if s.Derivative == nil {
		return nil, errors.New("solve: the system has no Derivative: set it")
	}
	if !(step > 0) || math.IsInf(step, 0) {
		return nil, fmt.Errorf("solve: invalid step %g: want a positive number", step)
	}
	if m != Euler && m != Heun && m != RK4 {
		return nil, fmt.Errorf("solve: unknown method %d: want Euler, Heun or RK4", m)
	}
	v := &Solver{system: s, method: m, step: step, start: start, width: 2 * len(y)}
	v.y = append(v.y, y...)
	v.stage = make([]float64, len(y))
	for i := range v.k {
		v.k[i] = make([]float64, len(y))
	}
	if s.MaxDelay > 0 {
		v.rows = int(math.Ceil(s.MaxDelay/step)) + 3
		v.history = make([]float64, v.rows*v.width)
	}
	if v.system.Initial == nil {
		first := append([]float64(nil), y...)
		v.system.Initial = func(i int, _ float64) float64 { return first[i] }
	}
	return v, nil
}

// Time returns the present time.
func (v *Solver) Time() float64 { return v.timeAt(v.steps) }

func (v *Solver) timeAt(step int) float64 { return v.start + float64(float64(step)*v.step) }

// Values returns the present values. The caller must not change them.
func (v *Solver) Values() []float64 { return v.y }

// Run makes steps up to a time and calls see, if it is not nil, after each.
func (v *Solver) Run(until float64, see func(t float64, y []float64)) {
	n := int(math.Round((until - v.start) / v.step))
	for v.steps < n {
		v.Step()
		if see != nil {
			see(v.Time(), v.y)
		}
	}
}

// Step makes one step.
func (v *Solver) Step() {
	t, h, k := v.Time(), v.step, &v.k
	v.derive(t, v.y, k[0])
	v.keep(k[0])
	switch v.method {
	case Euler:
		v.add(v.y, h, k[0])
	case Heun:
		v.stageAt(t+h, h, k[0], k[1])
		for i := range v.y {
			v.y[i] += h / 2 * (k[0][i] + k[1][i])
		}
	case RK4:
		v.stageAt(t+h/2, h/2, k[0], k[1])
		v.stageAt(t+h/2, h/2, k[1], k[2])
		v.stageAt(t+h, h, k[2], k[3])
		for i := range v.y {
			v.y[i] += h / 6 * (k[0][i] + 2*k[1][i] + 2*k[2][i] + k[3][i])
		}
	}
	v.steps++
	if v.system.Limit != nil {
		v.system.Limit(v.Time(), v.y)
	}
}

// stageAt computes the derivative at y + h*slope.
func (v *Solver) stageAt(t, h float64, slope, to []float64) {
	copy(v.stage, v.y)
	v.add(v.stage, h, slope)
	v.derive(t, v.stage, to)
}

func (v *Solver) add(y []float64, h float64, slope []float64) {
	for i := range y {
		y[i] += h * slope[i]
	}
}

func (v *Solver) derive(t float64, y, to []float64) {
	v.stageTime = t
	v.system.Derivative(t, y, func(i int, at float64) float64 { return v.past(y, i, at) }, to)
}

// keep appends the present values and derivatives to the history.
func (v *Solver) keep(slope []float64) {
	if v.rows == 0 {
		v.history = append(append(v.history, v.y...), slope...)
	} else {
		row := v.row(v.steps)
		copy(row, v.y)
		copy(row[len(v.y):], slope)
	}
}

func (v *Solver) row(step int) []float64 {
	if v.rows > 0 {
		step %= v.rows
	}
	return v.history[step*v.width : (step+1)*v.width]
}

// past interpolates. now holds the values of the stage.
func (v *Solver) past(now []float64, i int, t float64) float64 {
	if t <= v.start {
		return v.system.Initial(i, t)
	}
	place := (t - v.start) / v.step
	k := int(place)
	x := place - float64(k)
	// A time between the last step and the stage is in no finished interval.
	if k >= v.steps {
		return v.recent(now, i, t)
	}
	a := v.row(k)
	if k+1 == v.steps && !v.kept(k+1) {
		return v.toPresent(a, i, x)
	}
	b := v.row(k + 1)
	return hermite(x, v.step, a[i], a[i+len(v.y)], b[i], b[i+len(v.y)])
}

// kept reports whether the history has a step's values.
func (v *Solver) kept(step int) bool {
	if v.rows == 0 {
		return len(v.history) > step*v.width
	}
	return v.stageTime > v.timeAt(step)
}

// toPresent interpolates between the step before the present one, whose derivative is not known
// yet, and the present one.
func (v *Solver) toPresent(a []float64, i int, x float64) float64 {
	// the parabola with both values and the slope at the beginning
	y0, slope, y1 := a[i], a[i+len(v.y)]*v.step, v.y[i]
	return y0 + slope*x + (y1-y0-slope)*x*x
}

// recent returns a value between the present step and the stage.
func (v *Solver) recent(now []float64, i int, t float64) float64 {
	from := v.Time()
	if v.stageTime <= from || t >= v.stageTime {
		return now[i]
	}
	x := (t - from) / (v.stageTime - from)
	return v.y[i] + x*(now[i]-v.y[i])
}

// hermite returns the cubic polynomial with these values and slopes at both ends of an interval of
// length h, at x from 0 to 1.
func hermite(x, h, y0, s0, y1, s1 float64) float64 {
	x2, x3 := x*x, x*x*x
	return (2*x3-3*x2+1)*y0 + (x3-2*x2+x)*h*s0 + (3*x2-2*x3)*y1 + (x3-x2)*h*s1
}
