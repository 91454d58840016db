// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

const (
	q24One = 1 << 24
	q24Ulp = 1. / q24One
)

// q24 is the nearest Q24 to x.
func q24(x float64) uint32 { return uint32(math.Round(x * q24One)) }

// q24Float is the value of a Q24.
func q24Float(x uint32) float64 { return float64(x) / q24One }

func TestQ24Scale(t *testing.T) {
	s := loadSenders(t)

	const mostValue = math.MaxInt64
	steps := []rateFixedStep{
		{Value: 0, Fraction: q24One},
		{Value: 1, Fraction: q24One / 2}, // halves go up
		{Value: 1, Fraction: q24One/2 - 1},
		{Value: mostValue, Fraction: q24One},
		{Value: mostValue, Fraction: q24One - 1},
		{Value: mostValue, Fraction: 1},
		{Value: mostValue, Fraction: 0},
		{Value: 800e9, Fraction: q24One / 256},
	}
	r := rand.New(rand.NewPCG(1, 10))
	for range 20_000 {
		steps = append(steps, rateFixedStep{
			Value:    logUniform(r, 1, mostValue),
			Fraction: pick(r, uint32(r.IntN(q24One+1)), uint32(logUniform(r, 1, q24One))),
		})
	}
	s.fixed(t, 1, steps)
	for _, step := range steps {
		product := new(big.Int).Mul(new(big.Int).SetUint64(step.Value), big.NewInt(int64(step.Fraction)))
		want := product.Add(product, big.NewInt(q24One/2)).Rsh(product, 24).Uint64()
		if step.Scaled != want {
			t.Fatalf("%d * %d: got %d, want %d", step.Value, step.Fraction, step.Scaled, want)
		}
	}
}

// powerErr is how far Q24 may be from f^n: 1/2 in the last place for each of n factors, as far as they still count.
func powerErr(f float64, n uint64) float64 {
	return (0.5*min(float64(n), 1/(1-f)) + 1) * q24Ulp
}

func TestQ24Power(t *testing.T) {
	s := loadSenders(t)

	steps := []rateFixedStep{
		{Fraction: q24One, Exponent: math.MaxUint32},
		{Fraction: 0, Exponent: 0}, // 1, as ever
		{Fraction: 0, Exponent: 1},
		{Fraction: q24One - q24One/256, Exponent: math.MaxUint32},
		{Fraction: q24One - 1, Exponent: math.MaxUint32},
		{Fraction: q24One - 1, Exponent: 1 << 31},
	}
	for n := range uint32(2000) {
		steps = append(steps, rateFixedStep{Fraction: q24One - q24One/256, Exponent: n})
	}
	r := rand.New(rand.NewPCG(1, 11))
	for range 20_000 {
		steps = append(steps, rateFixedStep{
			Fraction: q24One - uint32(logUniform(r, 1, q24One)),
			Exponent: uint32(logUniform(r, 1, math.MaxUint32)),
		})
	}
	s.fixed(t, 1, steps)
	for _, step := range steps {
		f := q24Float(step.Fraction)
		want := math.Pow(f, float64(step.Exponent))
		if f == 1 || step.Exponent == 0 {
			qt.Assert(t, qt.Equals(step.Power, q24One))
			continue
		}
		near(t, q24Float(step.Power), want, powerErr(f, uint64(step.Exponent)), "%d ^ %d", step.Fraction, step.Exponent)
	}
}

func TestRandomNext(t *testing.T) {
	s := loadSenders(t)

	// Marsaglia, Xorshift RNGs, 2003: xor32 with 13, 17, 5 and the seed of the paper.
	steps := make([]rateFixedStep, 65536)
	s.fixed(t, 2463534242, steps)
	for i, want := range []uint32{723471715, 2497366906, 2064144800} {
		qt.Assert(t, qt.Equals(steps[i].Random, want))
	}

	// Never 0, where it would stay, and even over the range.
	var counts [16]float64
	for _, step := range steps {
		qt.Assert(t, qt.Not(qt.Equals(step.Random, 0)))
		counts[step.Random>>28]++
	}
	for i, n := range counts {
		mean := float64(len(steps)) / float64(len(counts))
		near(t, n, mean, 5*math.Sqrt(mean), "values in sixteenth %d", i)
	}
}
