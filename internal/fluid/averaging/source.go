// SPDX-License-Identifier: Apache-2.0

// Package averaging examines the Averaging Principle (Alizadeh, Kabbani, Atikoglu, Prabhakar,
// "Stability Analysis of QCN: The Averaging Principle", SIGMETRICS 2011; slides 33 to 49 of B.
// Prabhakar): a source that is told to change its rate obeys, and then moves half-way back, once or
// several times, before it is told again. It does so for RCP's sources and for a generic plant.
package averaging

// Source is a source that averages: AP with one step, two-step AP with two, a plain one with none.
type Source struct {
	Steps int

	rate, target float64 // CR and TR
}

// Rates returns the rates of a period that begins with a message: one for each of its equal parts.
// A change is added to the rate; then, at the end of each part but the last, the source moves
// half-way back to the rate before the message.
func (s *Source) Rates(change float64) []float64 {
	s.target = s.rate
	s.rate += change
	rates := []float64{s.rate}
	for range s.Steps {
		s.rate = (s.rate + s.target) / 2
		rates = append(rates, s.rate)
	}
	return rates
}

// Gains are what a source makes of feedback: Proportional * Fb + Derivative * T * dFb/dt.
type Gains struct{ Proportional, Derivative float64 }

// gainsOf returns the gains that a source with so many steps of averaging is equivalent to. A
// change leaves 2^-steps of it in the end, and more in the mean of its own period. One step gives
// 0.5 Fb + 0.25 T dFb/dt (slide 42), two give 1/4 and 1/3.
func gainsOf(steps int) Gains {
	p, sum := 1.0, 1.0
	for range steps {
		p /= 2
		sum += p
	}
	return Gains{p, sum/float64(steps+1) - p}
}
