// SPDX-License-Identifier: Apache-2.0

package doubt

import (
	"cmp"
	"fmt"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

const (
	tailDrop = 2_000_000 // bytes
	transfer = 600 * time.Millisecond
)

// asGoodAsCUBIC alternates a control and CUBIC in one bed. Rates are the best of up to 12 rounds:
// what else the machine does only lowers them. Losses are medians, and their bound is wide: without
// a fallback, they are a thousand times as many.
func asGoodAsCUBIC(t *testing.T, b *bed, control, peer string, d time.Duration) {
	t.Helper()
	const (
		leastRounds, mostRounds = 3, 12
		share                   = 0.9
	)
	var ours, cubics []measured
	rate, cubicRate := 0.0, 0.0
	for i := 0; i < leastRounds || i < mostRounds && rate < share*cubicRate; i++ {
		our, cubic := b.measure(t, control, peer, d), b.measure(t, "cubic", "cubic", d)
		ours, cubics = append(ours, our), append(cubics, cubic)
		rate, cubicRate = max(rate, our.mbps), max(cubicRate, cubic.mbps)
		t.Logf("%s: %v; cubic: %v", control, our, cubic)
	}
	byLoss := func(a, b measured) int { return cmp.Compare(a.retransmits, b.retransmits) }
	lost, cubicLost := median(ours, byLoss).retransmits, median(cubics, byLoss).retransmits
	qt.Check(t, qt.IsTrue(rate >= share*cubicRate), qt.Commentf("%g, %g", rate, cubicRate))
	qt.Check(t, qt.IsTrue(lost <= 2*cubicLost+300), qt.Commentf("%d, %d", lost, cubicLost))
}

func TestPeerRefusesECN(t *testing.T) {
	for _, control := range []string{"pcn", "pcn_dctcp", "ldcp", ownWindow} {
		t.Run(control, func(t *testing.T) {
			c := registered(t, control, 0)
			b := newBed(t, tailDrop)
			b.noECN(t)
			asGoodAsCUBIC(t, b, control, "cubic", transfer)
			f := b.connect(t, control, "cubic", 0, 0)
			f.transfer(t.Context(), 50*time.Millisecond)
			flow, err := c.Flow(f.key(t))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(flow.Doubt, "no_ecn"))
		})
	}
}

func TestNothingMarks(t *testing.T) {
	for _, test := range []struct {
		control string
		drop    int
	}{
		{"pcn", tailDrop}, {"ldcp", tailDrop / 8}, // a window that grows slowly fills no more
	} {
		t.Run(test.control, func(t *testing.T) {
			c := registered(t, test.control, 0)
			b := newBed(t, test.drop)
			if c.Hears() == "cnp" {
				b.points(t, c)
			}
			asGoodAsCUBIC(t, b, test.control, test.control, 2*time.Second)
		})
	}
}

// A window control that loses packets where nothing was marked goes by CUBIC's window, until marks
// show that the bottleneck marks.
func TestLDCPWithoutMarks(t *testing.T) {
	control := registered(t, "ldcp", 0)
	b := newBed(t, tailDrop/8)
	f := b.connect(t, "ldcp", "ldcp", 0, 0)
	f.sending(t)
	doubt := func(want string) func() bool {
		return func() bool {
			flow, err := control.Flow(f.key(t))
			return err == nil && flow.Doubt == want
		}
	}
	nstest.Eventually(t, "a loss without marks", doubt("no_marks"))
	b.mark(t)
	nstest.Eventually(t, "marks end the doubt", doubt(""))
	flow, err := control.Flow(f.key(t))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(flow.Losses > 0 && flow.MarkedPackets > 0), qt.Commentf("%+v", flow))
}

// Controls that go by CNPs only, and CNPs that do not come although packets are marked: the flow
// has a TCP window within two seconds.
func TestMarksWithoutCNPs(t *testing.T) {
	for _, test := range []struct{ control, feedback string }{
		{"pcn", "cnp"}, {"dcqcn", ""}, {"ibcc", ""},
	} {
		for name, hide := range map[string]func(*bed, *testing.T, *loader.Control){
			"no NP": func(*bed, *testing.T, *loader.Control) {},
			"NAT":   (*bed).behindNAT, "overlay": (*bed).overlay,
			"program in front": (*bed).programInFront,
		} {
			t.Run(test.control+"/"+name, func(t *testing.T) {
				var given []string
				if test.feedback != "" {
					given = []string{"feedback", test.feedback}
				}
				control := registered(t, test.control, 0, given...)
				b := newBed(t, tailDrop)
				b.mark(t)
				hide(b, t, control)
				f := doubtsSoon(t, b, control)
				flow, err := control.Flow(f.key(t))
				qt.Assert(t, qt.IsNil(err))
				qt.Check(t, qt.IsTrue(flow.MarkedPackets > 0))
				qt.Check(t, qt.Equals(flow.CNPDecrease+flow.CNPIncrease, 0))
				qt.Check(t, qt.IsTrue(flow.Window > 0))
			})
		}
	}
}

// doubtsSoon returns a flow that sends and doubts, within two seconds. A busy machine may be late
// with one flow, but not with each of several.
func doubtsSoon(t *testing.T, b *bed, control *loader.Control) *flow {
	t.Helper()
	const attempts, soon = 5, 2 * time.Second
	for range attempts {
		f := b.connect(t, control.Name(), control.Name(), 0, 0)
		f.sending(t)
		began := time.Now()
		nstest.Eventually(t, "the flow doubts", func() bool {
			flow, err := control.Flow(f.key(t))
			return err == nil && flow.Doubt == "no_cnps"
		})
		if time.Since(began) < soon {
			return f
		}
		f.client.Close()
	}
	t.Fatalf("no flow of %d doubted within %v", attempts, soon)
	return nil
}

// CNPs for marks end the doubt of a new flow, also where NP and RP are inside a tunnel.
func TestMarksAndCNPs(t *testing.T) {
	for _, test := range []struct {
		name   string
		inside bool
	}{{"dcqcn", false}, {"ibcc", false}, {"pcn", false}, {"pcn", true}} {
		t.Run(fmt.Sprintf("%s/tunnel %v", test.name, test.inside), func(t *testing.T) {
			name := test.name
			control := registered(t, name, 0)
			b := newBed(t, tailDrop)
			b.mark(t)
			if test.inside {
				b.tunnel(t)
			}
			b.points(t, control)
			f := b.connect(t, name, name, 0, 0)
			f.sending(t)
			nstest.Eventually(t, "the flow goes by its control", func() bool {
				flow, err := control.Flow(f.key(t))
				return err == nil && flow.Doubt == "" && flow.CNPDecrease > 0
			})
		})
	}
}

// The control goes by CNPs only, and the peer sends none.
func TestPeerSendsNoCNPs(t *testing.T) {
	registered(t, "pcn", 0, "feedback", "cnp")
	b := newBed(t, tailDrop)
	asGoodAsCUBIC(t, b, "pcn", "pcn", 2*time.Second)
}

func TestTableFull(t *testing.T) {
	for _, control := range []string{"pcn", "pcn_dctcp", "ldcp", ownWindow} {
		t.Run(control, func(t *testing.T) {
			c := registered(t, control, 1)
			b := newBed(t, tailDrop)
			f := b.connect(t, control, control, 0, 0) // takes the entry
			nstest.Eventually(t, "the table is full", func() bool {
				f.exchange(t) // if the kernel left out init
				flows, err := c.Flows()
				qt.Assert(t, qt.IsNil(err))
				return len(flows) == 1
			})
			asGoodAsCUBIC(t, b, control, control, transfer)
		})
	}
}

// After the peer reset a connection, its addresses and ports are used again. When the first socket
// is closed at last, the second flow still has its entry, and is controlled.
func TestReusedPorts(t *testing.T) {
	for _, name := range []string{"pcn", "pcn_dctcp", "ldcp"} {
		t.Run(name, func(t *testing.T) {
			control := registered(t, name, 0)
			b := newBed(t, tailDrop)
			first := b.connect(t, name, name, 40000, 5000)
			first.heardOf(t, control)
			qt.Assert(t, qt.IsNil(first.server.SetLinger(0)))
			qt.Assert(t, qt.IsNil(first.server.Close())) // a reset
			first.client.SetReadDeadline(time.Now().Add(nstest.Patience))
			_, err := first.client.Read(make([]byte, 1))
			qt.Assert(t, qt.ErrorIs(err, unix.ECONNRESET))
			second := b.connect(t, name, name, 40000, 5000)
			key := second.key(t)
			qt.Assert(t, qt.Equals(key, first.key(t)))
			second.heardOf(t, control)
			qt.Assert(t, qt.IsNil(first.client.Close()))
			_, err = control.Flow(key)
			qt.Assert(t, qt.IsNil(err))
			second.transfer(t.Context(), 100*time.Millisecond)
			f, err := control.Flow(key)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.IsTrue(f.Packets > 0))
			qt.Assert(t, qt.IsNil(second.client.Close()))
		})
	}
}

// Two namespaces have flows of the same addresses and ports. Each has an entry of its own, and the
// end of one leaves the other alone.
func TestSameFlowInTwoNamespaces(t *testing.T) {
	control := registered(t, "pcn", 0)
	one, two := newBed(t, tailDrop), newBed(t, tailDrop)
	a := one.connect(t, "pcn", "pcn", 40000, 5000)
	b := two.connect(t, "pcn", "pcn", 40000, 5000)
	b.heardOf(t, control)
	keyA, keyB := a.key(t), b.key(t)
	qt.Assert(t, qt.Not(qt.Equals(keyA.Netns, keyB.Netns)))
	keyA.Netns = keyB.Netns
	qt.Assert(t, qt.Equals(keyA, keyB))
	keyA = a.key(t)
	a.transfer(t.Context(), 300*time.Millisecond)
	flowA, err := control.Flow(keyA)
	qt.Assert(t, qt.IsNil(err))
	flowB, err := control.Flow(keyB)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(flowA.Packets > 100), qt.Commentf("%+v", flowA))
	qt.Check(t, qt.IsTrue(flowB.Packets < 10), qt.Commentf("%+v", flowB))
	qt.Assert(t, qt.IsNil(a.client.Close()))
	_, err = control.Flow(keyB)
	qt.Check(t, qt.IsNil(err))
}

// Where the bottleneck marks, a new flow soon goes by Algorithm 1, and doubts only after a loss: a
// busy machine has some, and then the doubt ends again. Without notification point it falls back to
// a window, says so, and its rate does not stay low after losses.
func TestTrust(t *testing.T) {
	t.Run("marks and CNPs", func(t *testing.T) {
		control := registered(t, "pcn", 0)
		b := newBed(t, tailDrop)
		b.mark(t)
		b.points(t, control)
		f := b.connect(t, "pcn", "pcn", 0, 0)
		f.sending(t)
		state := func() loader.Flow {
			flow, err := control.Flow(f.key(t))
			qt.Assert(t, qt.IsNil(err))
			return flow
		}
		var lost uint64 // recoveries when the flow was last seen to go by Algorithm 1
		trusts := func() bool {
			lost = nstest.Recoveries(t, b.sender)
			flow := state()
			return flow.Doubt == "" && flow.SendRateBps > 0 && flow.CNPDecrease > 0
		}
		nstest.Eventually(t, "the flow goes by Algorithm 1", trusts)
		for end := time.Now().Add(2 * time.Second); time.Now().Before(end); {
			time.Sleep(5 * time.Millisecond)
			if flow := state(); flow.Doubt != "" {
				qt.Check(t, qt.Equals(flow.Doubt, "no_marks"))
				qt.Check(t, qt.IsTrue(nstest.Recoveries(t, b.sender) > lost),
					qt.Commentf("it doubts without a loss: %+v", flow))
			}
		}
		nstest.Eventually(t, "the flow goes by Algorithm 1 again", trusts)
	})
	t.Run("no CNPs", func(t *testing.T) {
		control := registered(t, "pcn", 0, "feedback", "cnp")
		b := newBed(t, tailDrop)
		f := b.connect(t, "pcn", "pcn", 0, 0)
		f.sending(t)
		nstest.Eventually(t, "the flow has a window", func() bool {
			flow, err := control.Flow(f.key(t))
			return err == nil && flow.Doubt == "no_cnps" && flow.Window > 0
		})
	})
}
