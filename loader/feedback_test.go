// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/loader"
	"pcn/loader/ns/nstest"
)

func TestFeedbackIsChecked(t *testing.T) {
	o := options(1e9)
	o.Feedback = "acks"
	_, err := loader.RegisterPCN(o)
	qt.Check(t, qt.ErrorMatches(err, `pcn: feedback "acks": want "cnp", "ack" or "auto"`))
	o.Feedback = loader.FeedbackAuto
	_, err = loader.RegisterPCN(o)
	qt.Check(t, qt.ErrorMatches(err, `pcn: feedback "auto" without T: set it to the longest round trip`))
}

// Without a notification point: while all packets are marked the sender comes down to the rate that its ACKs tell of, and
// goes back to line rate when the marks end.
func TestACKsControlRate(t *testing.T) {
	const lineRateBps, bottleneckBps = 100e6, 20e6
	o := options(lineRateBps)
	o.Feedback, o.TNs = loader.FeedbackAuto, 20e6
	control := registered(t, pcn(o))
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
			if f.ACKWindows >= first.ACKWindows+windows {
				return f
			}
			r.receive(t, 64<<10)
		}
	}
	// While the machine is busy with something else the receiver gets less: then try again.
	const attempts = 10
	for attempt := 1; ; attempt++ {
		marker.Mark(t, true)
		f := receiveUntil(20)
		qt.Assert(t, qt.IsTrue(float64(f.SendRateBps) < 1.05*bottleneckBps), qt.Commentf("%d bit/s", f.SendRateBps))
		ok := float64(f.SendRateBps) > 0.9*bottleneckBps
		t.Logf("marked: %d bit/s", f.SendRateBps)
		marker.Mark(t, false)
		f = receiveUntil(25)
		t.Logf("not marked: %d bit/s", f.SendRateBps)
		qt.Assert(t, qt.IsTrue(f.SendRateBps > 0.95*lineRateBps), qt.Commentf("%d bit/s", f.SendRateBps))
		qt.Assert(t, qt.Equals(f.CNPDecrease+f.CNPIncrease, 0))
		if ok {
			return
		}
		qt.Assert(t, qt.IsTrue(attempt < attempts))
	}
}
