// SPDX-License-Identifier: Apache-2.0

package algo

import (
	"math/rand/v2"
	"testing"

	"github.com/go-quicktest/qt"
)

// lossless is what a lossless port does, in the kernel. Each starts with each batch.
type lossless struct {
	objs portObjects
}

func loadLossless(t testing.TB) *lossless {
	t.Helper()

	l := new(lossless)
	loadObjects(t, &l.objs, loadPortObjects)
	return l
}

func (l *lossless) credit(t testing.TB, params portCbfcParams, steps []portCreditStep) {
	t.Helper()
	args := portCreditArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, l.objs.Credit, l.objs.CreditSteps, &args, steps)
}

func (l *lossless) fecn(t testing.TB, params portFecnParams, steps []portFecnStep) {
	t.Helper()
	args := portFecnArgs{Params: params, Steps: uint32(len(steps))}
	runBatch(t, l.objs.Fecn, l.objs.FecnSteps, &args, steps)
}

func (l *lossless) tcd(t testing.TB, maxTonNs uint64, steps []portTcdStep) {
	t.Helper()
	args := portTcdArgs{MaxTonNs: maxTonNs, Steps: uint32(len(steps))}
	runBatch(t, l.objs.Tcd, l.objs.TcdSteps, &args, steps)
}

// creditLink is a link by its packets: what is under way, in the receiver's buffer, and lost. It knows no counters.
type creditLink struct {
	buffer         uint64 // blocks
	underWay, held []uint32
	freeSaid       []uint64 // free blocks that updates under way say, and what had been received by then
	receivedSaid   []uint64
	sent, received uint64 // blocks
	free           uint64 // as the sender has heard: of the buffer, when `heard` blocks had been received
	heard          uint64
}

func blocksOf(len uint32) uint64 { return uint64(len+63) / 64 }

func sumBlocks(packets []uint32) (sum uint64) {
	for _, p := range packets {
		sum += blocksOf(p)
	}
	return sum
}

// TestCreditsProperties: whatever arrives when, in order, no more is under way and in the buffer than it has room for;
// the sender's credits are what the latest update that it heard left free, less what it has sent since; and when all is
// given on and told, all credits are back: none is lost for ever.
func TestCreditsProperties(t *testing.T) {
	l := loadLossless(t)

	const sequences, length = 60, 3000
	var refused, sent int
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 21))
		o := creditLink{buffer: logUniform(r, 32, 1<<16)}
		o.free = o.buffer
		// what happens is drawn from the oracle's state alone; the C must agree with all of it
		var steps []portCreditStep
		var wantSent []bool
		var wantCredits, wantHeld []uint64
		add := func(event portCreditEvent, len uint32, value uint64) {
			steps = append(steps, portCreditStep{Event: uint8(event), Len: len, Value: value})
		}
		for i := range length + 100_000 {
			draining := i >= length
			n := uint32(60 + r.IntN(1500))
			credits := o.free - (o.sent - o.heard)
			may := blocksOf(n) <= credits
			switch x := r.IntN(10); {
			case x < 4 && !draining:
				add(portCreditEventCREDIT_SEND, n, 0)
				if may {
					o.sent += blocksOf(n)
					o.underWay = append(o.underWay, n)
					sent++
				} else {
					refused++
				}
				wantSent, wantCredits = append(wantSent, may), append(wantCredits, o.free-(o.sent-o.heard))
				wantHeld = append(wantHeld, sumBlocks(o.held))
				qt.Assert(t, qt.IsTrue(sumBlocks(o.underWay)+sumBlocks(o.held) <= o.buffer))
				continue
			case x < 6 && len(o.underWay) > 0:
				n, o.underWay = o.underWay[0], o.underWay[1:]
				add(portCreditEventCREDIT_RECEIVE, n, 0)
				o.received += blocksOf(n)
				o.held = append(o.held, n)
			case x < 8 && len(o.held) > 0:
				k := r.IntN(len(o.held)) // by any port, so in any order
				add(portCreditEventCREDIT_RELEASE, o.held[k], 0)
				o.held = append(o.held[:k], o.held[k+1:]...)
			case x < 9 && len(o.freeSaid) < 8 && !(draining && len(o.underWay)+len(o.held) == 0 && len(o.freeSaid) > 0):
				add(portCreditEventCREDIT_UPDATE, 0, 0)
				o.freeSaid = append(o.freeSaid, o.buffer-sumBlocks(o.held))
				o.receivedSaid = append(o.receivedSaid, o.received)
			case len(o.freeSaid) > 0:
				o.free, o.heard = o.freeSaid[0], o.receivedSaid[0]
				add(portCreditEventCREDIT_HEAR, 0, o.free+o.heard) // FCCL, by its definition
				o.freeSaid, o.receivedSaid = o.freeSaid[1:], o.receivedSaid[1:]
			default:
				continue
			}
			wantSent, wantCredits = append(wantSent, false), append(wantCredits, o.free-(o.sent-o.heard))
			wantHeld = append(wantHeld, sumBlocks(o.held))
			if draining && len(o.underWay)+len(o.held)+len(o.freeSaid) == 0 && o.free == o.buffer && o.heard == o.sent {
				break
			}
		}
		steps = steps[:min(len(steps), 65536)]
		said := updatesOf(steps)
		l.credit(t, portCbfcParams{BufferBlocks: o.buffer, PeriodNs: 1}, steps)
		for i, s := range steps {
			about := qt.Commentf("seed %d, step %d: %+v", seed, i, s)
			if s.Event == uint8(portCreditEventCREDIT_UPDATE) && said[i] != 0 {
				qt.Assert(t, qt.Equals(s.Value, said[i]), about)
			}
			qt.Assert(t, qt.Equals(s.Credits, wantCredits[i]), about)
			qt.Assert(t, qt.Equals(s.Sent, wantSent[i]), about)
			qt.Assert(t, qt.Equals(s.Held, wantHeld[i]), about)
		}
		qt.Assert(t, qt.Equals(steps[len(steps)-1].Credits, o.buffer), qt.Commentf("seed %d: credits are lost", seed))
	}
	qt.Assert(t, qt.IsTrue(refused > 1000 && sent > 1000), qt.Commentf("%d sent, %d refused", sent, refused))
}

// updatesOf are the FCCLs that the oracle's sender hears, at the steps in which the receiver says them: they are heard in
// order.
func updatesOf(steps []portCreditStep) map[int]uint64 {
	said, waiting := map[int]uint64{}, []int{}
	for i, s := range steps {
		switch portCreditEvent(s.Event) {
		case portCreditEventCREDIT_UPDATE:
			waiting = append(waiting, i)
		case portCreditEventCREDIT_HEAR:
			said[waiting[0]] = s.Value
			waiting = waiting[1:]
		}
	}
	return said
}

func TestCreditsByHand(t *testing.T) {
	l := loadLossless(t)

	steps := []portCreditStep{
		{Event: uint8(portCreditEventCREDIT_SEND), Len: 1000},     // 16 blocks
		{Event: uint8(portCreditEventCREDIT_SEND), Len: 64},       // 1
		{Event: uint8(portCreditEventCREDIT_SEND), Len: 1000},     // only 15 are left
		{Event: uint8(portCreditEventCREDIT_SEND), Len: 960},      // these fit
		{Event: uint8(portCreditEventCREDIT_RECEIVE), Len: 64},    // the first was lost
		{Event: uint8(portCreditEventCREDIT_RECEIVE), Len: 960},   //
		{Event: uint8(portCreditEventCREDIT_RELEASE), Len: 64},    //
		{Event: uint8(portCreditEventCREDIT_UPDATE)},              // FCCL = 32 + 1
		{Event: uint8(portCreditEventCREDIT_HEAR), Value: 33},     //
		{Event: uint8(portCreditEventCREDIT_HEAR), Value: 49},     //
		{Event: uint8(portCreditEventCREDIT_HEAR), Value: 33},     // late: takes nothing back
		{Event: uint8(portCreditEventCREDIT_TICK), Value: 40_001}, //
		{Event: uint8(portCreditEventCREDIT_TICK), Value: 60_000}, //
		{Event: uint8(portCreditEventCREDIT_TICK), Value: 0},      //
	}
	l.credit(t, portCbfcParams{BufferBlocks: 32, PeriodNs: 20_000}, steps)
	for i, want := range []struct {
		credits, value uint64
		sent           bool
	}{
		{16, 16, true}, {15, 17, true}, {15, 17, false}, {0, 32, true},
		{0, 0, false}, {0, 0, false}, {0, 0, false}, {0, 33, false}, {1, 33, false},
		{17, 49, false}, {17, 33, false},
		{17, 60_000, false}, {17, 60_000, false}, {17, 0, false},
	} {
		about := qt.Commentf("step %d", i)
		qt.Check(t, qt.Equals(steps[i].Credits, want.credits), about)
		qt.Check(t, qt.Equals(steps[i].Value, want.value), about)
		qt.Check(t, qt.Equals(steps[i].Sent, want.sent), about)
	}
}

// TestFECN: annex A10. Of the packets that may be marked, one in Marking_Rate + 1 is.
func TestFECN(t *testing.T) {
	l := loadLossless(t)

	r := rand.New(rand.NewPCG(1, 22))
	for _, p := range []portFecnParams{
		{ThresholdBytes: 50_000},
		{ThresholdBytes: 50_000, PacketBytes: 512, MarkingRate: 3},
		{ThresholdBytes: 0, Victims: 1},
	} {
		steps := make([]portFecnStep, 4000)
		for i := range steps {
			steps[i] = portFecnStep{QueueBytes: r.Uint64N(100_001), Len: 64 + r.Uint32N(1000), Waited: r.IntN(3) == 0}
		}
		steps[0].QueueBytes, steps[1].QueueBytes = p.ThresholdBytes, p.ThresholdBytes+1
		l.fecn(t, p, steps)
		var may, marked int
		for i, s := range steps {
			root := !s.Waited || p.Victims == 1
			candidate := root && s.QueueBytes > p.ThresholdBytes && s.Len >= p.PacketBytes
			if candidate {
				may++
			}
			want := candidate && may%(int(p.MarkingRate)+1) == 0
			qt.Assert(t, qt.Equals(s.Mark, want), qt.Commentf("step %d: %+v, %+v", i, s, p))
			if s.Mark {
				marked++
			}
		}
		qt.Assert(t, qt.IsTrue(marked > 100), qt.Commentf("%d marks, %+v", marked, p))
	}
}

const (
	tcdNone = uint8(portTcdVerdictTCD_MARK_NONE)
	tcdUE   = uint8(portTcdVerdictTCD_MARK_UE)
	tcdCE   = uint8(portTcdVerdictTCD_MARK_CE)
)

// tcdOracle is the authors' state machine, in their numbers of states.
type tcdOracle struct {
	maxTon  uint64
	state   int // 0 non-congestion, 1 draining, 2 undetermined, 3 congestion
	resumed bool
	on, qR  uint64
	tL, qL  uint64
}

func (o *tcdOracle) packet(now, q uint64, over bool) uint8 {
	mark := func(on bool) uint8 {
		if on {
			return tcdCE
		}
		return tcdNone
	}
	if o.resumed && now <= o.on+o.maxTon {
		o.state = 2
		return tcdUE
	}
	switch {
	case o.state == 2 && q >= o.qR:
		o.state = 3
		return mark(over)
	case o.state == 2:
		o.state, o.tL, o.qL = 1, now, q
		return tcdNone
	case o.state == 1 && now-o.tL >= o.maxTon && q >= o.qL+900:
		o.state = 3
		return mark(over)
	case o.state == 1:
		if now-o.tL >= o.maxTon {
			o.tL, o.qL = now, q
		}
		if q <= 2*1030 {
			o.state = 0
		}
		return tcdNone
	}
	o.state = 0
	if over {
		o.state = 3
	}
	return mark(over)
}

func TestTCDRandomQueues(t *testing.T) {
	l := loadLossless(t)

	const sequences, length = 100, 2000
	seen := map[[2]uint8]int{}
	for seed := range uint64(sequences) {
		r := rand.New(rand.NewPCG(seed, 23))
		maxTon := logUniform(r, 1_000, 200_000)
		threshold := logUniform(r, 1_000, 300_000)
		steps := make([]portTcdStep, length)
		now, queue := r.Uint64N(1_000_000), uint64(0)
		grow := r.Float64()
		for i := range steps {
			now += r.Uint64N(maxTon/4 + 2)
			if r.IntN(100) == 0 {
				now += 2 * maxTon
				grow = r.Float64()
			}
			if r.Float64() < grow {
				queue += r.Uint64N(3000)
			} else {
				queue -= min(queue, r.Uint64N(3000))
			}
			steps[i] = portTcdStep{NowNs: now, QueueBytes: queue, On: r.IntN(40) == 0, Over: queue > threshold}
		}
		l.tcd(t, maxTon, steps)
		o := tcdOracle{maxTon: maxTon}
		for i, s := range steps {
			about := qt.Commentf("seed %d, step %d: %+v", seed, i, s)
			if s.On {
				o.resumed, o.on, o.qR = true, s.NowNs, s.QueueBytes
				continue
			}
			qt.Assert(t, qt.Equals(s.Verdict, o.packet(s.NowNs, s.QueueBytes, s.Over)), about)
			qt.Assert(t, qt.Equals(int(s.State), o.state), about)
			seen[[2]uint8{s.State, s.Verdict}]++
		}
	}
	for _, pair := range [][2]uint8{{0, tcdNone}, {1, tcdNone}, {2, tcdUE}, {3, tcdNone}, {3, tcdCE}} {
		qt.Check(t, qt.IsTrue(seen[pair] > 100), qt.Commentf("state %d with verdict %d: %d times", pair[0], pair[1], seen[pair]))
	}
	qt.Check(t, qt.HasLen(seen, 5))
}

// TestTCDPorts: a port that is switched ON and OFF is never called congested, however long its queue; one that is ON for
// good is, within two max(T_on), if its queue grows, and never while it drains (sec. 3.2.2).
func TestTCDPorts(t *testing.T) {
	l := loadLossless(t)

	const maxTon = 97_000
	for _, test := range []struct {
		name         string
		onAndOff     int   // times
		growth       int64 // bytes a us, afterwards
		wantCE       bool
		wantWithin   uint64 // ns after the last OFF
		wantInTheEnd portTcdState
	}{
		{"drains", 20, -3000, false, 0, portTcdStateTCD_NON_CONGESTION},
		{"grows", 20, 1000, true, 2 * maxTon, portTcdStateTCD_CONGESTION},
		{"never OFF", 0, 1000, true, 0, portTcdStateTCD_CONGESTION},
	} {
		t.Run(test.name, func(t *testing.T) {
			var steps []portTcdStep
			now, queue := uint64(1), int64(500_000)
			packet := func() {
				steps = append(steps, portTcdStep{NowNs: now, QueueBytes: uint64(max(queue, 0)), Over: queue > 200_000})
				now += 200
			}
			for range test.onAndOff {
				now += 60_000
				steps = append(steps, portTcdStep{NowNs: now, QueueBytes: uint64(queue), On: true})
				for range 200 { // 40 us
					packet()
				}
			}
			last := len(steps)
			began := now - 40_000
			for range 5_000 {
				queue += test.growth / 5
				packet()
			}
			l.tcd(t, maxTon, steps)
			firstCE := uint64(0)
			for i, s := range steps {
				if s.Verdict == tcdCE {
					qt.Assert(t, qt.IsTrue(test.wantCE && i >= last), qt.Commentf("step %d: %+v", i, s))
					if firstCE == 0 {
						firstCE = s.NowNs
					}
				}
			}
			qt.Check(t, qt.Equals(firstCE != 0, test.wantCE))
			if test.wantWithin > 0 {
				qt.Check(t, qt.IsTrue(firstCE <= began+test.wantWithin), qt.Commentf("%d ns after", firstCE-began))
			}
			qt.Check(t, qt.Equals(portTcdState(steps[len(steps)-1].State), test.wantInTheEnd))
		})
	}
}
