// SPDX-License-Identifier: Apache-2.0

package averaging

import (
	"math"
	"math/cmplx"

	"github.com/pcn-linux/pcn/internal/fluid/dde"
)

// RCP is RCP's control of one link (Dukkipati, McKeown; slide 37): every T the router computes
//
//	R(t) = R(t - T) (1 + T/d0 (alpha (C - y(t)) - beta q(t)/d0) / C)
//
// and all sources take R. The slide's own formula is lost; this is the published one.
type RCP struct {
	T, D0       float64 // s
	Alpha, Beta float64
}

// slideRCP has the values of slide 37.
var slideRCP = RCP{T: 0.010, D0: 0.010, Alpha: 0.1, Beta: 1}

// Loop returns the open loop of the linearised control without its delay, for sources with these
// gains. Rates are shares of C, the queue is in seconds of C, and T is short against the loop:
//
//	L(s) = (K_p + K_d T s) (alpha / (d0 s) + beta / (d0 s)^2)
func (c RCP) Loop(g Gains) func(s complex128) complex128 {
	a, b := complex(c.Alpha/c.D0, 0), complex(c.Beta/(c.D0*c.D0), 0)
	p, d := complex(g.Proportional, 0), complex(g.Derivative*c.T, 0)
	return func(s complex128) complex128 { return (p + d*s) * (a*s + b) / (s * s) }
}

// delayLimit returns the longest delay up to which a loop that is stable without one is stable:
// there 1 + L(s) exp(-s delay) has its first root on the imaginary axis. It looks for the
// frequencies with |L| = 1 from low to high, in rad/s. It returns infinity if there is none.
func delayLimit(l func(s complex128) complex128, low, high float64) float64 {
	at := func(w float64) float64 { return cmplx.Abs(l(complex(0, w))) - 1 }
	const ratio = 1.0005
	limit := math.Inf(1)
	for w := low; w < high; w *= ratio {
		a, b := w, w*ratio
		if at(a)*at(b) > 0 {
			continue
		}
		for range 60 {
			if m := (a + b) / 2; at(a)*at(m) <= 0 {
				b = m
			} else {
				a = m
			}
		}
		phase := math.Mod(cmplx.Phase(l(complex(0, a)))+math.Pi, 2*math.Pi)
		if phase < 0 {
			phase += 2 * math.Pi
		}
		limit = min(limit, phase/a)
	}
	return limit
}

// Grows runs the control with its rates' product, not linearised, around an operating point at
// which the queue is not empty, and reports whether a small deviation grows. The derivative of
// feedback, which PD sources need, is that of what the router measures.
func (c RCP) Grows(g Gains, rtt float64) bool {
	const (
		rate = iota // of all sources together, as a share of C
		queue
	)
	a, b := c.Alpha/c.D0, c.Beta/(c.D0*c.D0)
	// The source has u' = u F, with F = -(K_p f + K_d T f'), f = a (y - 1) + b q, q' = y - 1. Its
	// own derivative is in f' one round trip later, so that f' is taken of the history.
	step := rtt / 200
	s := dde.System{
		Derivative: func(t float64, _ []float64, past dde.Past, dy []float64) {
			y := past(rate, t-rtt)
			f := a*(y-1) + b*past(queue, t-rtt)
			slope := (y - past(rate, t-rtt-step)) / step
			f2 := a*slope + b*(y-1)
			dy[rate] = -past(rate, t) * (g.Proportional*f + g.Derivative*c.T*f2)
			dy[queue] = past(rate, t) - 1
		},
		Initial: func(i int, _ float64) float64 {
			if i == rate {
				return 1
			}
			return 0
		},
		MaxDelay: rtt + 2*step,
	}
	v, err := dde.New(s, dde.RK4, 0, step, []float64{1 + 1e-6, 0})
	if err != nil {
		panic(err) // the step is positive
	}
	const loops = 240
	var early, late float64
	v.Run(loops*rtt, func(t float64, y []float64) {
		size := max(math.Abs(y[rate]-1), math.Sqrt(b)*math.Abs(y[queue]))
		switch {
		case t > loops/3*rtt && t < loops*rtt/2:
			early = max(early, size)
		case t > loops*rtt*5/6:
			late = max(late, size)
		}
	})
	return !(late < early) // what overflowed has grown
}

// bisect returns where a property begins between low, where it does not hold, and high, where it
// does, to a share of it.
func bisect(low, high, share float64, holds func(x float64) bool) float64 {
	for high-low > share*low {
		if m := (low + high) / 2; holds(m) {
			high = m
		} else {
			low = m
		}
	}
	return (low + high) / 2
}
