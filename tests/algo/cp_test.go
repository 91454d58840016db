// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// queueOracle is Fig. 7 on the packets themselves: a RESUME finds packets in the queue, those were paused and leave
// unmarked; any other packet is marked if it leaves packets behind.
type queueOracle struct {
	wasPaused []bool // of each packet in the queue, first out first
}

// apply returns whether a departing packet is marked.
func (o *queueOracle) apply(e algoCpEvent) bool {
	switch e {
	case algoCpEventCP_ARRIVAL:
		o.wasPaused = append(o.wasPaused, false)
	case algoCpEventCP_RESUME:
		for i := range o.wasPaused {
			o.wasPaused[i] = true
		}
	case algoCpEventCP_DEPARTURE:
		paused := o.wasPaused[0]
		o.wasPaused = o.wasPaused[1:]
		return !paused && len(o.wasPaused) > 0
	}
	return false
}

// pausedPackets is what PN should be.
func (o *queueOracle) pausedPackets() (n uint32) {
	for _, paused := range o.wasPaused {
		if paused {
			n++
		}
	}
	return n
}

// checkCP runs the events on an empty queue, compares each outcome with the oracle, and returns the departures:
// M a marked one, - an unmarked one.
func checkCP(t testing.TB, b *bytecode, events []algoCpEvent) string {
	t.Helper()

	steps := make([]algoCpStep, len(events))
	for i, e := range events {
		steps[i].Event = e
	}
	b.cp(t, steps)

	var o queueOracle
	var marks []byte
	for i, s := range steps {
		want := o.apply(s.Event)
		if s.Mark != want || s.Pn != o.pausedPackets() {
			t.Fatalf("event %d, %v: got mark %v and PN %d, want %v and %d", i, s.Event, s.Mark, s.Pn, want, o.pausedPackets())
		}
		if s.Event != algoCpEventCP_DEPARTURE {
			continue
		}
		if s.Mark {
			marks = append(marks, 'M')
		} else {
			marks = append(marks, '-')
		}
	}
	return string(marks)
}

func TestCPMarks(t *testing.T) {
	b := load(t)

	for _, test := range []struct {
		name   string
		events string // a arrival, d departure, P PAUSE, R RESUME
		want   string
	}{
		{"non-congestion: nothing waits", "adadad", "---"},
		{"real congestion: a standing queue", "aaadadadad", "MMMM"},
		{"the last packet leaves nothing behind", "aaaddd", "MM-"},
		{"RESUME of an empty queue", "PRaadd", "M-"},
		{"paused packets are not marked", "PaaaRaaddddd", "---M-"},
		{"packets behind the paused ones are", "PaaRaaaddddd", "--MM-"},
		{"quasi-congestion: marked in part", "PaaRadadadaPaaRdaddadddd", "--M-----M-"},
		{"a PAUSE leaves PN alone", "PaaaRdPRdd", "---"},
		{"a RESUME while paused packets wait counts anew", "PaaaRdaaRdddda", "-----"},
		{"PN never outlives the packets it counts", "PaaaRdddaaadadad", "---MMM"},
		{"RESUME without PAUSE", "aaRaadddd", "--M-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			qt.Assert(t, qt.Equals(checkCP(t, b, cpEvents(test.events)), test.want))
		})
	}
}

func cpEvents(s string) []algoCpEvent {
	letters := map[rune]algoCpEvent{
		'a': algoCpEventCP_ARRIVAL, 'd': algoCpEventCP_DEPARTURE, 'P': algoCpEventCP_PAUSE, 'R': algoCpEventCP_RESUME,
	}
	events := make([]algoCpEvent, 0, len(s))
	for _, c := range s {
		events = append(events, letters[c])
	}
	return events
}

// A port whose queue never empties and which is never paused marks everything (Fig. 4a); one which is paused half
// of the time marks some, never 95% (Fig. 4c).
func TestCPPortStates(t *testing.T) {
	b := load(t)

	const packets = 10_000
	congested := cpEvents("a")
	quasi := cpEvents("")
	for i := range packets {
		congested = append(congested, cpEvents("ad")...)
		switch i % 20 { // 10 of 20 arrive during a PAUSE, and drain as the others arrive
		case 0:
			quasi = append(quasi, cpEvents("Pa")...)
		case 10:
			quasi = append(quasi, cpEvents("Radd")...)
		default:
			quasi = append(quasi, cpEvents("a")...)
			if i%20 > 10 {
				quasi = append(quasi, cpEvents("dd")...)
			}
		}
	}
	qt.Assert(t, qt.Equals(markedShare(checkCP(t, b, congested)), 1))

	share := markedShare(checkCP(t, b, quasi))
	qt.Assert(t, qt.IsTrue(share > 0.1 && share < 0.95), qt.Commentf("%g marked", share))
}

func markedShare(departures string) float64 {
	marked := 0
	for _, d := range departures {
		if d == 'M' {
			marked++
		}
	}
	return float64(marked) / float64(len(departures))
}

func TestCPRandomEvents(t *testing.T) {
	b := load(t)

	const sequences, length = 100, 3000
	departures, marked := 0, 0.
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 3))
		out := checkCP(t, b, randomCPEvents(r, length))
		departures += len(out)
		marked += markedShare(out) * float64(len(out))
	}
	share := marked / float64(departures)
	qt.Assert(t, qt.IsTrue(share > 0.1 && share < 0.9), qt.Commentf("%g of %d marked", share, departures))
}

// randomCPEvents makes a queue that grows and empties, under PAUSEs of random length and some stray RESUMEs.
func randomCPEvents(r *rand.Rand, n int) []algoCpEvent {
	events := make([]algoCpEvent, 0, n)
	arrivals := 0.2 + 0.25*r.Float64()
	queue, paused := 0, false
	for len(events) < n {
		switch x := r.Float64(); {
		case x < 0.004:
			events = append(events, algoCpEventCP_PAUSE)
			paused = true
		case x < 0.012:
			events = append(events, algoCpEventCP_RESUME)
			paused = false
		case x < arrivals:
			events = append(events, algoCpEventCP_ARRIVAL)
			queue++
		case !paused && queue > 0:
			events = append(events, algoCpEventCP_DEPARTURE)
			queue--
		}
	}
	return events
}
