// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
)

func TestFeedbackIsChecked(t *testing.T) {
	_, err := pcn(1e9).Scheme.Object.Param("feedback").Parse("acks")
	qt.Check(t, qt.ErrorMatches(err, `unknown feedback "acks" \(hint: did you mean "ack"\?\)`))
	checkRejected(t, []rejection{
		{withNumber(pcn(1e9), "feedback", 4),
			`feedback: there is no choice 4 \(hint: cnp, ack, auto, ece\)`},
		{withNumber(with(pcn(1e9), "feedback", "auto"), "T", 0),
			`T: 0ns is out of range \(hint: 1us to 1s\)`},
	})
}

// Without a notification point: while all packets are marked the sender comes down to the rate that
// its ACKs tell of, and goes back to line rate when the marks end.
func TestACKsControlRate(t *testing.T) {
	const lineRateBps, bottleneckBps = 100e6, 20e6
	control := registered(t, with(pcn(lineRateBps), "feedback", "auto", "T", "20ms"))
	p := newPath(t)
	bottleneck(t, p.client, bottleneckBps)
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, p.client.NS).LinkSetGSOMaxSegs(p.client.Link, 1)))
	marker := nstest.NewMarker(t, p.server)
	c := p.connect(t, control)
	r := c.start(t)
	// receiveUntil receives until ACKs have changed the rate so many more times.
	receiveUntil := func(windows uint64) loader.Flow {
		first, err := control.Flow(c.key())
		qt.Assert(t, qt.IsNil(err))
		for {
			f, err := control.Flow(c.key())
			qt.Assert(t, qt.IsNil(err))
			if f.Stat("ack_windows") >= first.Stat("ack_windows")+float64(windows) {
				return f
			}
			r.receive(t, 64<<10)
		}
	}
	// A machine that stands still for a moment receives less in that window, and marked flows do
	// not recover, or a timer expires, which halves the rate: then try again.
	const attempts = 60
	for attempt := 1; ; attempt++ {
		marker.Mark(t, true)
		f := receiveUntil(5)
		lost := f.Losses
		qt.Assert(t, qt.IsTrue(float64(f.SendRateBps) < 1.05*bottleneckBps),
			qt.Commentf("%d bit/s", f.SendRateBps))
		ok := float64(f.SendRateBps) > 0.9*bottleneckBps
		marked := f.SendRateBps
		f = receiveUntil(15)
		qt.Assert(t, qt.IsTrue(f.SendRateBps <= marked),
			qt.Commentf("%d bit/s after %d", f.SendRateBps, marked))
		marker.Mark(t, false)
		f = receiveUntil(25)
		t.Logf("marked: %d bit/s, not marked: %d", marked, f.SendRateBps)
		qt.Assert(t, qt.IsTrue(f.SendRateBps > 0.95*lineRateBps || f.Losses > lost),
			qt.Commentf("%d bit/s", f.SendRateBps))
		qt.Assert(t, qt.Equals(f.CNPDecrease+f.CNPIncrease, 0))
		if ok && f.Losses == lost {
			return
		}
		qt.Assert(t, qt.IsTrue(attempt < attempts))
	}
}
