// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"math"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// exact is how close the models come to closed forms.
const exact = 0.001

// PCN, eq. (8): after one loop each sender has (1 - w_min) of its share of the link, whatever it
// had before, and the queue drains at w_min C. The time that takes is that of the appendix.
func TestPCNEquation8(t *testing.T) {
	const c, wMin = 40e9, 1.0 / 128
	e := parse(t, `
name: test
topology: {kind: dumbbell, senders: 2, rate: 40Gbps, delay: 1us}
schemes: [pcn]
pcn: {T: 1ms, w_min: 1/128}
warmup: 0ms
duration: 40ms
sample: 10us
switch: {pfc: {xoff: 16MB}}
flows:
  - {name: A, from: A0, to: B0, start: 0ms, initial_rate: 30Gbps}
  - {name: B, from: A1, to: B1, start: 0ms, initial_rate: 20Gbps}
expect: [{what: used, metric: utilisation, ports: [S0->S1], min: 10%}]
`)
	s, err := newSetup(e, "pcn")
	qt.Assert(t, qt.IsNil(err))
	m, err := s.model(e)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(m.run(t.Context(), func(float64) {})))
	r := m.result()
	for _, s := range r.Series {
		if s.Kind == result.KindSender && s.TimeNs == 2_000_000 {
			want := map[string]float64{"A": 0.6, "B": 0.4}[s.Name] * (1 - wMin) * c
			within(t, s.Name+"'s rate after a loop", float64(s.RateBps), want, exact)
		}
	}
	q := queue(r, 0)
	const at, until = 200, 3000 // bins, in the decline
	slope := (q[at] - q[until]) / float64(until-at) / 10e-6 * 8
	within(t, "the drain", slope, wMin*c, exact)
	var empty int
	for empty = at; q[empty] > 0; empty++ {
	}
	within(t, "when the queue is empty", float64(empty-at)*10e-6, q[at]*8/(wMin*c), exact)
	// In loops: the first fills the queue, as does the loop's own delay of 6 us and a packet's
	// time.
	loops := float64(drainLoops(50e9, c, wMin))
	within(t, "the loops until then", float64(empty)*10e-6/1e-3, loops, 0.03)
}

// Fig. 16 and Propositions 1 to 3, by the appendix' own recursion: eqs. (3) to (7) without delay.
func TestPCNSteadyState(t *testing.T) {
	const n, c, period, wMin, wMax = 12, 5e9, 50e-6, 1.0 / 128, 0.5
	rate, w := make([]float64, n), make([]float64, n)
	for i := range rate {
		rate[i], w[i] = c*float64(i+1)/n, wMin
	}
	var q float64
	var qs, aggregate, first []float64
	for k := range 4000 * n {
		var total float64
		for _, r := range rate {
			total += r
		}
		q = max(0, q+(total-c)*period) // eq. (3)
		for i := range rate {
			if q > 0 { // eqs. (4) to (7)
				rate[i], w[i] = rate[i]/total*c*(1-wMin), wMin
			} else {
				rate[i], w[i] = rate[i]*(1-w[i])+c*w[i], w[i]*(1-w[i])+wMax*w[i]
			}
		}
		if k == 0 { // Proposition 1: one loop
			var sum float64
			for _, r := range rate {
				sum += r
			}
			within(t, "the sum of rates after one loop", sum, (1-wMin)*c, 1e-9)
		}
		if k >= 3900*n {
			qs, aggregate, first = append(qs, q), append(aggregate, total), append(first, rate[0])
		}
	}
	want := steadyPCN(n, c, period, wMin)
	high, low := 0.0, math.Inf(1)
	for i := range qs {
		high, low = max(high, first[i]), min(low, first[i])
	}
	var longest float64
	for _, x := range qs {
		longest = max(longest, x)
	}
	within(t, "the longest queue, eq. (15)", longest, want.QueueMax, 1e-6)
	within(t, "the mean queue", mean(qs), want.QueueMean, exact)
	within(t, "the swing of a rate, eq. (16)", high-low, want.RateSwing, 1e-6)
	for _, r := range rate { // Proposition 2
		within(t, "a flow's share", r, rate[0], 1e-6)
	}
	within(t, "utilisation", min(mean(aggregate)/c, 1), want.Utilisation, exact)
}

// QCN rests where one step of feedback is reached: at Q_eq (1 + (2 w + 1) / 63).
func TestQCNFixedPoint(t *testing.T) {
	text := dumbbell(4, "10Gbps", "5us", "80ms", "", "")
	e := parse(t, strings.Replace(text, "[pcn]", "[qcn]", 1))
	r := run(t, e, "qcn")
	s, err := newSetup(e, "qcn")
	qt.Assert(t, qt.IsNil(err))
	eq, w := get(s.values, "qeq"), get(s.values, "w")
	within(t, "the queue", mean(queue(r, 60e6)), eq*(1+(2*w+1)/63), exact)
	for name, rate := range rates(r, 60e6) {
		within(t, name+"'s rate", rate, 10e9/4, exact)
	}
}

// LDCP rests where cw = alpha (1 - p) / (beta p), with p of the queue that cw needs.
func TestLDCPFixedPoint(t *testing.T) {
	e := parse(t, strings.Replace(dumbbell(4, "10Gbps", "5us", "60ms", "",
		"ldcp: {marking: {kmin: 0, kmax: 400KB, pmax: 1}}"), "[pcn]", "[ldcp]", 1))
	r := run(t, e, "ldcp")
	m, err := newModel(e, "ldcp")
	qt.Assert(t, qt.IsNil(err))
	v := m.setup.values
	low, high := 0.0, 400e3
	for range 60 { // bisection for the queue
		q := (low + high) / 2
		p := q / 400e3
		cw := get(v, "alpha") * (1 - p) / (get(v, "beta") * p)
		if 4*cw*m.setup.frame > m.sources[0].base*1.25e9+q {
			low = q
		} else {
			high = q
		}
	}
	within(t, "the queue", mean(queue(r, 40e6)), low, exact)
}

// One second of 100 flows. How long it takes on this machine is in docs/fluid.md.
func BenchmarkSecond(b *testing.B) {
	for _, scheme := range []string{"pcn", "dcqcn", "qcn", "timely", "pcn_dctcp", "ldcp"} {
		b.Run(scheme, func(b *testing.B) {
			e, err := second(scheme)
			if err != nil {
				b.Fatal(err)
			}
			for b.Loop() {
				if _, err := Run(b.Context(), e, scheme, func(float64) {}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// steady is the steady state of N flows of PCN, Fig. 16.
type steady struct {
	// QueueMax and QueueMean are of the queue at the ends of periods, in bytes: eq. (15).
	QueueMax, QueueMean float64
	// RateSwing is how much the rate of a flow varies, in bytes/s. Eq. (16) has w_min C; from eqs.
	// (11) and (12) follows w_min C (1 - (1 - w_min) / N), which is it for many flows.
	RateSwing float64
	// Contraction is a of eq. (14): what is left of an unfair share after N periods.
	Contraction float64
	// Utilisation is the share of the link that is used.
	Utilisation float64
}

// steadyPCN returns the steady state of Fig. 16: one period of increase and n - 1 of decrease. c is
// the link's rate in bytes/s, period is T in s.
func steadyPCN(n int, c, period, wMin float64) steady {
	N := float64(n)
	keep := (1 - wMin) * (1 - wMin)
	s := steady{
		QueueMax:    (N - 2 + wMin) * wMin * c * period,
		RateSwing:   wMin * c * (1 - (1-wMin)/N),
		Contraction: keep / (keep + N*wMin),
	}
	for k := 1; k <= n; k++ { // Q(k1 + k), as the equation behind (11)
		s.QueueMean += max(N-float64(k)-1+wMin, 0) * wMin * c * period / N
	}
	// Sent in N periods: what arrives, as the queue is empty again at the end.
	s.Utilisation = min(1, (1+(N-2+wMin)*wMin+(N-1)*(1-wMin))/N)
	return s
}

// drainLoops returns how many control loops PCN takes to empty the queue of flows that send at
// total in bytes/s over a link of rate c: Appendix A, behind eq. (8).
func drainLoops(total, c, wMin float64) int {
	return int(math.Ceil(1 + (total-c)/(wMin*c) - 1e-9))
}
