// SPDX-License-Identifier: Apache-2.0

package dde

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"
)

// linear is y'(t) = -a y(t - tau).
func linear(a, tau float64) System {
	return System{Derivative: func(t float64, _ []float64, past Past, dy []float64) {
		dy[0] = -a * past(0, t-tau)
	}}
}

// bySteps is the closed form with y = 1 up to t = 0, by the method of steps:
// the sum over k of (-a)^k (t - (k-1) tau)^k / k!, as long as the base is positive.
func bySteps(a, tau, t float64) float64 {
	sum, power := 1.0, 1.0
	for k := 1; t > float64(k-1)*tau; k++ {
		power *= -a / float64(k)
		sum += power * math.Pow(t-float64(k-1)*tau, float64(k))
	}
	return sum
}

// Every method meets the closed form of the linear delay equation.
func TestMethodOfSteps(t *testing.T) {
	for _, c := range []struct {
		name string
		m    Method
		step float64
		max  float64 // error
	}{
		{"Euler", Euler, 1e-4, 1e-3},
		{"Heun", Heun, 1e-2, 1e-4},
		{"RK4", RK4, 1e-2, 1e-6},
		{"RK4, a step that does not divide the delay", RK4, 0.03, 1e-5},
	} {
		for _, keep := range []float64{0, 1.2} {
			s := linear(1, 1.1)
			s.MaxDelay = keep
			v, err := New(s, c.m, 0, c.step, []float64{1})
			qt.Assert(t, qt.IsNil(err))
			v.Run(9, func(at float64, y []float64) {
				if d := math.Abs(y[0] - bySteps(1, 1.1, at)); d > c.max {
					t.Fatalf("%s: off by %g at %g", c.name, d, at)
				}
			})
		}
	}
}

// A solution that is exp(lambda t) in the past goes on so for the characteristic root lambda of
// lambda = -a exp(-lambda tau).
func TestCharacteristicRoot(t *testing.T) {
	const a, tau = 0.3, 1.0
	lambda := -0.5
	for range 60 { // Newton's method
		f, slope := lambda+a*math.Exp(-lambda*tau), 1-a*tau*math.Exp(-lambda*tau)
		lambda -= f / slope
	}
	s := linear(a, tau)
	s.Initial = func(_ int, at float64) float64 { return math.Exp(lambda * at) }
	v, err := New(s, RK4, 0, 0.01, []float64{1})
	qt.Assert(t, qt.IsNil(err))
	v.Run(5, nil)
	want := math.Exp(lambda * 5)
	qt.Check(t, qt.IsTrue(math.Abs(v.Values()[0]/want-1) < 1e-3))
}

// y'(t) = -a y(t - tau) is stable exactly below a tau = pi / 2, where it oscillates with a period
// of 4 tau (Hayes).
func TestStabilityLimit(t *testing.T) {
	for _, c := range []struct {
		gain  float64
		grows bool
	}{{0.98, false}, {1.02, true}} {
		v, err := New(linear(c.gain*math.Pi/2, 1), RK4, 0, 0.02, []float64{1})
		qt.Assert(t, qt.IsNil(err))
		var early, late float64
		v.Run(120, func(at float64, y []float64) {
			switch {
			case at > 20 && at < 30:
				early = max(early, math.Abs(y[0]))
			case at > 110:
				late = max(late, math.Abs(y[0]))
			}
		})
		qt.Check(t, qt.Equals(late > early, c.grows), qt.Commentf("%g", c.gain))
	}
}

// Without a delay the methods are those for ordinary equations, and Limit holds after each step.
func TestOrdinary(t *testing.T) {
	s := System{
		Derivative: func(t float64, _ []float64, past Past, dy []float64) {
			dy[0], dy[1] = past(0, t), -1
		},
		Limit: func(_ float64, y []float64) { y[1] = max(y[1], 0) },
	}
	for _, m := range []Method{Heun, RK4} {
		v, err := New(s, m, 0, 0.001, []float64{1, 0.5})
		qt.Assert(t, qt.IsNil(err))
		v.Run(1, nil)
		qt.Check(t, qt.IsTrue(math.Abs(v.Values()[0]/math.E-1) < 1e-6))
		qt.Check(t, qt.Equals(v.Values()[1], 0))
	}
}

func TestWrongUse(t *testing.T) {
	s := linear(1, 1)
	_, err := New(s, RK4, 0, 0, []float64{1})
	qt.Check(t, qt.ErrorMatches(err, `solve: invalid step 0: want a positive number`))
	_, err = New(s, 3, 0, 1, []float64{1})
	qt.Check(t, qt.ErrorMatches(err, `solve: unknown method 3: want Euler, Heun or RK4`))
	_, err = New(System{}, RK4, 0, 1, nil)
	qt.Check(t, qt.ErrorMatches(err, `solve: the system has no Derivative: set it`))
}
