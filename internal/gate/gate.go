// SPDX-License-Identifier: Apache-2.0

// Package gate keeps account of what flows wait for in a run: which of their messages may leave,
// and what an arrival sets free. It knows no time and no network.
package gate

import (
	"cmp"
	"slices"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Gates are those of all TCP flows of an experiment, by their indices. Its methods are not safe for
// concurrent use.
type Gates struct {
	waits   []experiment.Wait
	missing []int // by wait: how many parts have not arrived
	flows   []flow
}

type flow struct {
	held     []int     // by message: how many waits hold it back; nil: nothing ever does
	passed   int       // messages that may leave
	triggers []trigger // what arrivals bring, in their order; those that are over are removed
}

// trigger is a wait that needs so many messages.
type trigger struct{ messages, wait int }

// New returns the gates of an experiment before its run.
func New(e *experiment.Experiment) *Gates {
	g := &Gates{
		waits: e.Waits, missing: make([]int, len(e.Waits)), flows: make([]flow, len(e.Flows)),
	}
	for i := range e.Flows {
		g.flows[i].passed = e.Flows[i].Messages()
	}
	for i, w := range g.waits {
		g.missing[i] = len(w.For)
		for _, p := range w.For {
			f := &g.flows[p.Flow]
			f.triggers = append(f.triggers, trigger{int(p.Messages), i})
		}
		for _, p := range w.Then {
			f := &g.flows[p.Flow]
			if f.held == nil {
				f.held, f.passed = make([]int, f.passed), 0
			}
			f.held[p.Messages-1]++
		}
	}
	for i := range g.flows {
		f := &g.flows[i]
		slices.SortStableFunc(f.triggers, func(a, b trigger) int {
			return cmp.Compare(a.messages, b.messages)
		})
		f.pass()
	}
	return g
}

// pass lets messages leave up to the first that is held back.
func (f *flow) pass() {
	for f.passed < len(f.held) && f.held[f.passed] == 0 {
		f.passed++
	}
}

// Passed returns how many of a flow's messages may leave.
func (g *Gates) Passed(flow int) int { return g.flows[flow].passed }

// Next returns how many of a flow's messages must have arrived for the next wait that needs it; 0:
// no other flow waits for it.
func (g *Gates) Next(flow int) int {
	if f := &g.flows[flow]; len(f.triggers) > 0 {
		return f.triggers[0].messages
	}
	return 0
}

// Arrived notes that so many messages of a flow have arrived in all. It calls over with each wait
// whose delay begins.
func (g *Gates) Arrived(flow, messages int, over func(wait int)) {
	f := &g.flows[flow]
	for len(f.triggers) > 0 && f.triggers[0].messages <= messages {
		wait := f.triggers[0].wait
		f.triggers = f.triggers[1:]
		if g.missing[wait]--; g.missing[wait] == 0 {
			over(wait)
		}
	}
}

// Release ends a wait, and returns what it held back.
func (g *Gates) Release(wait int) []experiment.Part {
	then := g.waits[wait].Then
	for _, p := range then {
		f := &g.flows[p.Flow]
		f.held[p.Messages-1]--
		f.pass()
	}
	return then
}
