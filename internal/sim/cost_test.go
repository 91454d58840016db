// SPDX-License-Identifier: Apache-2.0

//go:build linux

package sim

import (
	"os"
	goruntime "runtime"
	"strconv"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// cost is what windows of a run in parts took, for tests that measure.
type cost struct {
	now       func() int64 // what the thread has computed, in ns
	parts     []partCost
	lastNs    []int64 // by part: when the last step ended
	windows   uint64
	crossings uint64
	events    uint64
	busiest   uint64    // events of the part that has most in each window
	workNs    [][]int64 // by part and window
}

// partCost is what a part took.
type partCost struct{ workNs, waitNs, exchangeNs int64 }

// newCost returns that of a run that did not begin, by a clock of the thread that calls it.
func newCost(parts int, now func() int64) *cost {
	return &cost{
		now:   now,
		parts: make([]partCost, parts), lastNs: make([]int64, parts),
		workNs: make([][]int64, parts),
	}
}

// at notes the end of a step of a part.
func (c *cost) at(w *world, s step) {
	i := w.part.index
	now := c.now()
	took := now - c.lastNs[i]
	c.lastNs[i] = now
	p := &c.parts[i]
	switch s {
	case worked:
		p.workNs += took
		c.workNs[i] = append(c.workNs[i], took)
	case waited:
		p.waitNs += took
	case exchanged:
		p.exchangeNs += took
		if i == 0 {
			c.windows++
			most := uint64(0)
			for _, x := range w.part.team.worlds {
				s := &x.part.both[w.part.window&1]
				c.events += s.events
				most = max(most, s.events)
				for k := range s.to {
					c.crossings += uint64(len(s.to[k].packets))
				}
			}
			c.busiest += most
		}
	}
}

// threadNs returns what the thread has computed so far.
func threadNs() int64 {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t); err != nil {
		panic(err)
	}
	return t.Nano()
}

// TestCostOfParts prints what a run of PCN_PARTS parts takes, of the experiment in the file
// PCN_EXPERIMENT. docs/performance.md has the command, and what came out.
func TestCostOfParts(t *testing.T) {
	file := os.Getenv("PCN_EXPERIMENT")
	if file == "" {
		t.Skip("PCN_EXPERIMENT names no file")
	}
	parts, err := strconv.Atoi(os.Getenv("PCN_PARTS"))
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	e := parse(t, string(text))
	w := worldsOf(t, e, e.Schemes[0], parts)
	began := time.Now()
	if w.part == nil {
		goruntime.LockOSThread()
		defer goruntime.UnlockOSThread()
		before := threadNs()
		if err := w.run(t.Context(), func(float64) {}); err != nil {
			t.Fatal(err)
		}
		t.Logf("one part: %v, work %v", time.Since(began), time.Duration(threadNs()-before))
		return
	}
	c := newCost(len(w.worlds()), threadNs)
	w.part.team.stepped = c.at
	if err := w.run(t.Context(), func(float64) {}); err != nil {
		t.Fatal(err)
	}
	var critical, all int64
	for k := range c.workNs[0] {
		var longest int64
		for _, of := range c.workNs {
			longest = max(longest, of[k])
			all += of[k]
		}
		critical += longest
	}
	t.Logf("%d parts: %v; %d windows, %d events, %d packets from part to part",
		len(w.worlds()), time.Since(began), c.windows, c.events, c.crossings)
	t.Logf("the busiest part of each window has %d of these: %.2f times as fast at best",
		c.busiest, float64(c.events)/float64(c.busiest))
	t.Logf("work %v, of which the longest of each window %v", time.Duration(all),
		time.Duration(critical))
	for i, p := range c.parts {
		t.Logf("part %d: work %v, waiting %v, exchange %v", i, time.Duration(p.workNs),
			time.Duration(p.waitNs), time.Duration(p.exchangeNs))
	}
}
