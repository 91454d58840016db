// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// averagedPCN is PCN with the Averaging Principle at the reaction point: half a period after each
// change of the rate, the sender moves half-way back.
type averagedPCN struct {
	pcn
	before float64 // the rate before the last change
	due    float64 // s until it is averaged; 0: it was
}

func (p *averagedPCN) advance(h heard) {
	if p.due > 0 {
		if p.due -= h.h; p.due <= 0 {
			p.sending = (p.sending + p.before) / 2
			p.due = 0
		}
	}
	rate := p.sending
	p.pcn.advance(h)
	if p.sending != rate {
		p.before, p.due = rate, p.period/2
	}
}

// Averaging at PCN's reaction point keeps the queue shorter where the round trip is longer than T,
// and a sender takes longer to rise. docs/findings.md has what this logs.
func TestPCNAveraged(t *testing.T) {
	for _, delay := range []string{"8us", "40us"} { // round trips of about T, and of five times T
		e := parse(t, dumbbell(4, "10Gbps", delay, "100ms", ", initial_rate: 2Gbps",
			"pcn: {T: 50us}"))
		var means [2]float64
		for i := range means {
			s, err := newSetup(e, "pcn")
			qt.Assert(t, qt.IsNil(err))
			if i == 1 {
				plain := s.law
				s.law = func(x sender) law { return &averagedPCN{pcn: *plain(x).(*pcn)} }
			}
			m, err := s.model(e)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsNil(m.run(t.Context(), func(float64) {})))
			q := queue(m.result(), 50e6)
			means[i] = mean(q)
			t.Logf("link delay %s, averaged %v: mean queue %.1f KB, longest %.1f KB",
				delay, i == 1, means[i]/1e3, slices.Max(q)/1e3)
		}
		qt.Check(t, qt.IsTrue(means[1] < means[0]))
	}
}

// From a halt, PCN is at 95% of the line after 15 periods (Fig. 10); with averaging it takes
// longer.
func TestPCNAveragedRise(t *testing.T) {
	plain := pcn{wMin: 1.0 / 128, wMax: 0.5, period: 1, share: 0.95, line: 1, w: 1.0 / 128}
	averaged := averagedPCN{pcn: plain}
	periods := func(l law) int {
		for k := 1; ; k++ {
			for range 4 {
				l.advance(heard{h: 0.25, acked: 1})
			}
			if l.rate(0) >= 0.95 {
				return k
			}
		}
	}
	n, more := periods(&plain), periods(&averaged)
	t.Logf("periods to 95%%: %d, averaged %d", n, more)
	qt.Check(t, qt.Equals(n, 15))
	qt.Check(t, qt.IsTrue(more > n))
}
