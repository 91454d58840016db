// SPDX-License-Identifier: Apache-2.0

package averaging

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestGains(t *testing.T) {
	qt.Check(t, qt.Equals(gainsOf(0), Gains{1, 0}))
	qt.Check(t, qt.Equals(gainsOf(1), Gains{0.5, 0.25}))
	two := gainsOf(2)
	qt.Check(t, qt.Equals(two.Proportional, 0.25))
	qt.Check(t, qt.IsTrue(math.Abs(two.Derivative-1.0/3) < 1e-15))
}

// Slide 42: a source that averages and one whose feedback has a derivative are the same.
func TestEquivalence(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	worst := 0.0
	for range 1000 {
		for steps := range 4 {
			ap, pd := Source{Steps: steps}, pdSource{gains: gainsOf(steps)}
			for range 200 {
				fb := rng.NormFloat64()
				worst = max(worst, math.Abs(ap.mean(fb)-pd.mean(fb)))
			}
		}
	}
	qt.Check(t, qt.IsTrue(worst <= 1e-12), qt.Commentf("%g", worst))
	t.Logf("largest difference %g", worst)
}

// The characteristic equation of y' = -a y(t - tau) has its first imaginary root at a tau = pi / 2.
func TestDelayLimit(t *testing.T) {
	got := delayLimit(func(s complex128) complex128 { return 3 / s }, 1e-3, 1e3)
	qt.Check(t, qt.IsTrue(math.Abs(got/(math.Pi/6)-1) < 1e-6), qt.Commentf("%g", got))
}

// RCP's linear limits and those of runs agree within 5%. A queue that can't be negative makes RCP
// stable far beyond them, and averaging makes its limit about two and four times as long: the
// slides' ratios.
func TestLimits(t *testing.T) {
	var limits []float64 // with messages
	for steps := range 3 {
		l := limitsOf(steps)
		t.Logf("steps %d: linear %.3f ms, by run %.3f ms, with messages %.0f ms", steps,
			l.Linear*1e3, l.Run*1e3, l.Messages*1e3)
		qt.Check(t, qt.IsTrue(math.Abs(l.Run/l.Linear-1) < 0.05))
		limits = append(limits, l.Messages)
	}
	qt.Check(t, qt.IsTrue(limits[1] > 1.8*limits[0] && limits[1] < 2.6*limits[0]))
	qt.Check(t, qt.IsTrue(limits[2] > 3.4*limits[0] && limits[2] < 5*limits[0]))
}

// Messages every T are too seldom for alpha and beta if the queue may be negative.
func TestMessages(t *testing.T) {
	free := messages{RCP: slideRCP, RTT: 0.001, Start: 1.02, Free: true}
	qt.Check(t, qt.IsTrue(free.Swing(12) > 0.5)) // T alone is too long for alpha and beta
}

// The generic plant in a loop of its own: its limits, and step responses on both sides of them.
func TestPlant(t *testing.T) {
	const period = 1
	for steps := range 3 {
		limit := delayLimit(plantLoop(gainsOf(steps), period), 1e-3, 1e3)
		t.Logf("steps %d: the plant is stable up to a delay of %.2f s", steps, limit)
		qt.Check(t, qt.IsTrue(limit < 3))
	}
	for _, c := range []struct {
		steps   int
		delay   float64
		settles bool
	}{{1, 0, true}, {1, 8, false}, {2, 14, false}, {2, 25, false}} {
		got := Settles(stepResponse(c.steps, 0.1, c.delay, 400))
		qt.Check(t, qt.Equals(got, c.settles), qt.Commentf("%v", c))
	}
}

// Behind a source that sums its feedback up with a gain of 0.15, all step responses of the slides
// are stable, and the last one barely; without averaging the same loop is not at any of their
// delays.
func TestSummedPlant(t *testing.T) {
	var limits []float64
	for steps := range 3 {
		l := summedPlantLoop(gainsOf(steps), 1, 0.15)
		limits = append(limits, delayLimit(l, 1e-4, 1e3))
	}
	t.Logf("stable up to delays of %.1f s", limits)
	qt.Check(t, qt.IsTrue(limits[0] < 8))
	qt.Check(t, qt.IsTrue(limits[1] > 8))
	qt.Check(t, qt.IsTrue(limits[2] > 25 && limits[2] < 27))
}

// mean returns the mean rate of a period that begins with a message.
func (s *Source) mean(change float64) float64 {
	var sum float64
	rates := s.Rates(change)
	for _, r := range rates {
		sum += r
	}
	return sum / float64(len(rates))
}

// pdSource is a source without averaging whose feedback is changed as [Gains] say, from one message
// to the next: T dFb/dt is the difference of two messages.
type pdSource struct {
	gains Gains

	rate, before float64
}

// mean returns the rate of a period that begins with a message.
func (s *pdSource) mean(change float64) float64 {
	s.rate += s.gains.Proportional*change + s.gains.Derivative*(change-s.before)
	s.before = change
	return s.rate
}
