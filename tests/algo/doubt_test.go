// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// Reasons of bpf/algo/doubt.h.
const (
	trusts       = 0
	doubtNew     = 1
	doubtNoMarks = 5
	doubtNoCNPs  = 6
)

// doubtOracle says what a flow goes by, from what it remembers of the past: times of decreases,
// CNPs and losses.
type doubtOracle struct {
	params      doubtDoubtParams
	reason      uint32
	decreasedAt []time.Duration // when ACKs told of them
	cnpAt       time.Duration   // the latest, or the start
	cnpPackets  uint32          // of those that cause CNPs
	last        doubtDoubtEvent
	unmarked    int           // losses without marks in a row, each soon after the one before
	held        time.Duration // the end of the hold
}

func (o *doubtOracle) ack(e doubtDoubtEvent) uint32 {
	now := time.Duration(e.NowNs)
	asked, heard := e.Decreases != o.last.Decreases, e.Cnps != o.last.Cnps
	marked := e.Marks != o.last.Marks
	o.last = e
	if o.params.On == 0 {
		return trusts
	}
	causes := e.Packets
	if e.ExpectCnps == doubtDoubtCnpsDOUBT_CNPS_FOR_MARKS {
		causes = e.Marks
	}
	if heard {
		o.cnpAt, o.cnpPackets = now, causes
	}
	if e.ExpectCnps == doubtDoubtCnpsDOUBT_CNPS_FOR_MARKS && e.Marks == o.cnpPackets {
		o.cnpAt = now // there was nothing to tell
	}
	if heard && o.reason == doubtNoCNPs {
		o.reason = doubtNew
	}
	patience := max(20*time.Millisecond, 8*time.Duration(o.params.PeriodNs),
		4*time.Duration(e.RttNs))
	silent := e.ExpectCnps != 0 && causes-o.cnpPackets >= 64 && now-o.cnpAt > patience
	switch {
	case asked:
		o.decreasedAt = append(o.decreasedAt, now)
		if now >= o.held {
			o.reason = trusts
		}
	case silent && o.reason != doubtNoCNPs:
		o.reason = doubtNoCNPs
	case marked && now >= o.held && (e.ExpectCnps == 0 || e.Cnps > 0 && o.reason != doubtNoCNPs):
		if o.reason != trusts { // a decrease follows
			o.decreasedAt = append(o.decreasedAt, now)
		}
		o.reason = trusts
	}
	return o.reason
}

func (o *doubtOracle) loss(e doubtDoubtEvent) uint32 {
	now := time.Duration(e.NowNs)
	if o.params.On == 0 {
		return trusts
	}
	recently := 5*time.Millisecond + 8*time.Duration(e.RttNs) +
		2*time.Duration(o.params.PeriodNs)
	n := len(o.decreasedAt)
	if o.reason > doubtNew ||
		n > 0 && (now-o.decreasedAt[n-1] < recently || o.decreasedAt[n-1] == o.cnpAt) {
		return o.reason
	}
	hold := time.Duration(o.params.HoldNs)
	if now-o.held > 64*hold {
		o.unmarked = 0
	}
	o.held = now + hold*time.Duration(int(1)<<min(o.unmarked, 6))
	o.unmarked++
	o.reason = doubtNoMarks
	return o.reason
}

// A loss after a pause is no reason for doubt if the latest CNP asked for a decrease.
func TestDoubtAfterPause(t *testing.T) {
	var objs doubtObjects
	loadObjects(t, &objs, loadDoubtObjects)
	const pauseNs = 3e9
	for _, tt := range []struct {
		name      string
		increases uint32 // CNPs behind the one that asked for a decrease
		want      uint32
	}{
		{"a decrease came last", 0, trusts},
		{"an increase came last", 1, doubtNoMarks},
	} {
		args := doubtDoubtArgs{StartNs: 1e9, Steps: 3,
			Params: doubtDoubtParams{On: 1, HoldNs: 5e8}}
		asked := doubtDoubtEvent{NowNs: 2e9, RttNs: 1e6, Packets: 10, Marks: 1, Cnps: 1,
			Decreases: 1}
		later := asked
		later.NowNs += 1e6
		later.Cnps += tt.increases
		lost := later
		lost.NowNs += pauseNs
		steps := []doubtDoubtStep{{Event: asked}, {Event: later},
			{Kind: doubtDoubtStepKindDOUBT_STEP_LOSS, Event: lost}}
		runBatch(t, objs.Doubts, objs.DoubtSteps, &args, steps)
		qt.Check(t, qt.Equals(steps[2].Reason, tt.want), qt.Commentf(tt.name))
	}
}

// Doubt follows its rules through random flows: with and without marks, CNPs and losses.
func TestDoubt(t *testing.T) {
	rnd := rand.New(rand.NewPCG(17, 2))
	var objs doubtObjects
	loadObjects(t, &objs, loadDoubtObjects)
	seen := map[[2]uint32]int{}
	for flow := range 120 {
		args := doubtDoubtArgs{StartNs: 1e9, Params: doubtDoubtParams{
			On: uint32(min(flow, 1)), Careful: uint32(flow % 2), HoldNs: uint64(1e6 << (flow % 5)),
			PeriodNs: uint64(flow%3) * 3e6,
		}}
		o := doubtOracle{params: args.Params, cnpAt: time.Duration(args.StartNs)}
		if args.Params.On*args.Params.Careful != 0 {
			o.reason = doubtNew
		}
		e := doubtDoubtEvent{NowNs: args.StartNs, RttNs: rnd.Uint64N(2e6),
			ExpectCnps: doubtDoubtCnps(flow / 2 % 3)}
		steps := make([]doubtDoubtStep, 5000)
		marks, cnps := 0, 0
		for i := range steps {
			if i%100 == 0 {
				marks, cnps = []int{0, 0, 1, 30}[rnd.IntN(4)], []int{0, 0, 20}[rnd.IntN(3)]
			}
			e.NowNs += rnd.Uint64N(2e6)
			if rnd.IntN(500) == 0 {
				e.NowNs += rnd.Uint64N(10e9)
			}
			steps[i].Kind = doubtDoubtStepKindDOUBT_STEP_LOSS
			if rnd.IntN(30) > 0 {
				steps[i].Kind = doubtDoubtStepKindDOUBT_STEP_ACK
				e.Packets += rnd.Uint32N(20)
				if rnd.IntN(100) < marks {
					e.Marks++
				}
				if rnd.IntN(200) < marks {
					e.Decreases++
				}
				if rnd.IntN(100) < cnps {
					e.Cnps++
				}
			}
			steps[i].Event = e
		}
		got := append([]doubtDoubtStep(nil), steps...)
		args.Steps = uint32(len(steps))
		runBatch(t, objs.Doubts, objs.DoubtSteps, &args, got)
		before := o.reason
		for i, s := range steps {
			want := uint32(0)
			if s.Kind == doubtDoubtStepKindDOUBT_STEP_ACK {
				want = o.ack(s.Event)
			} else {
				want = o.loss(s.Event)
			}
			qt.Assert(t, qt.Equals(got[i].Reason, want), qt.Commentf("flow %d, step %d", flow, i))
			seen[[2]uint32{before, want}]++
			before = want
		}
	}
	for _, change := range [][2]uint32{
		{doubtNew, trusts}, {doubtNew, doubtNoMarks}, {doubtNew, doubtNoCNPs},
		{trusts, doubtNoMarks}, {trusts, doubtNoCNPs}, {doubtNoMarks, trusts},
		{doubtNoMarks, doubtNoCNPs},
		{doubtNoCNPs, doubtNew},
	} {
		qt.Check(t, qt.IsTrue(seen[change] >= 5), qt.Commentf("%v: %d", change, seen[change]))
	}
}
