// SPDX-License-Identifier: Apache-2.0

package loader_test

import (
	"fmt"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
	"github.com/pcn-linux/pcn/tc/tctest"
)

// A control without flow table has nothing that CNPs could change.
func TestReactionPointNeedsFlowTable(t *testing.T) {
	_, err := tc.LoadRP(registered(t, line(1e9)))
	qt.Check(t, qt.ErrorMatches(err, "rp: congestion control pcn_line has no reaction point"))
	_, err = tc.LoadRP(registered(t, timely(1e9)))
	qt.Check(t, qt.ErrorMatches(err, "rp: congestion control timely has no reaction point"))
	registered(t, dcqcn(1e9))
	another, err := loader.KernelControl("dcqcn") // of another process, for all that this one knows
	qt.Assert(t, qt.IsNil(err))
	_, err = tc.LoadRP(another)
	qt.Check(t, qt.ErrorMatches(err, "rp: congestion control dcqcn has no reaction point"))
}

// The whole loop on the kernel's clock: while all packets are marked the sender comes down to the
// rate at which the receiver gets them, and goes back to line rate when the marks end.
func TestCNPsControlRate(t *testing.T) {
	const (
		lineRateBps, bottleneckBps = 100e6, 20e6
		wMin                       = 1.0 / 128
		tNs                        = 20e6 // 33 packets of the bottleneck
	)
	for _, maxSegs := range []int{1, 64} {
		t.Run(fmt.Sprintf("up to %d segments in a packet", maxSegs), func(t *testing.T) {
			control := registered(t, pcn(lineRateBps))
			p := newPath(t)
			bottleneck(t, p.client, bottleneckBps)
			qt.Assert(t, qt.IsNil(nstest.Netlink(t, p.client.NS).LinkSetGSOMaxSegs(p.client.Link,
				maxSegs)))
			marker := nstest.NewMarker(t, p.server)
			np, err := tctest.LoadPCN(tNs, 0.95)
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { np.Close() })
			qt.Assert(t, qt.IsNil(np.Attach(p.server.NS, p.server.Index())))
			rp, err := tc.LoadRP(control)
			qt.Assert(t, qt.IsNil(err))
			t.Cleanup(func() { rp.Close() })
			qt.Assert(t, qt.IsNil(rp.Attach(p.client.NS, p.client.Index())))

			c := p.connect(t, control)
			r := c.start(t)
			// receiveUntil receives until the sender has heard of so many more CNPs.
			receiveUntil := func(decreases, increases uint64) loader.Flow {
				var first loader.Flow
				for {
					f, err := control.Flow(c.key())
					qt.Assert(t, qt.IsNil(err))
					if first.SendRateBps == 0 {
						first = f
					}
					if f.CNPDecrease >= first.CNPDecrease+decreases &&
						f.CNPIncrease >= first.CNPIncrease+increases {
						return f
					}
					r.receive(t, 64<<10)
				}
			}
			// A machine that stands still for a moment receives less in that T, and marked flows do
			// not recover, or a timer expires, which halves the rate: then try again.
			const attempts = 60
			for attempt := 1; ; attempt++ {
				marker.Mark(t, true)
				f := receiveUntil(5, 0)
				lost := f.Losses
				qt.Assert(t, qt.IsTrue(float64(f.SendRateBps) < 1.05*bottleneckBps),
					qt.Commentf("%d bit/s", f.SendRateBps))
				qt.Assert(t, qt.IsTrue(float64(f.SendRateBps) <= float64(f.RecRateBps)*(1-wMin)))
				qt.Assert(t, qt.IsTrue(f.MarkedPackets > 0 && f.MarkedPackets <= f.Packets),
					qt.Commentf("%d of %d marked", f.MarkedPackets, f.Packets))
				ok := near(float64(f.SendRateBps), bottleneckBps*(1-wMin)) &&
					near(float64(f.RecRateBps), bottleneckBps)
				marked := f.SendRateBps
				f = receiveUntil(15, 0)
				qt.Assert(t, qt.IsTrue(f.SendRateBps <= marked),
					qt.Commentf("%d bit/s after %d", f.SendRateBps, marked))
				marker.Mark(t, false)
				f = receiveUntil(0, 20)
				qt.Assert(t, qt.IsTrue(f.SendRateBps > 0.99*lineRateBps || f.Losses > lost),
					qt.Commentf("%d bit/s", f.SendRateBps))
				if ok && f.Losses == lost {
					break
				}
				qt.Assert(t, qt.IsTrue(attempt < attempts),
					qt.Commentf("received %d bit/s, sends %d", f.RecRateBps, f.SendRateBps))
			}

			got, err := rp.Counts()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(got["malformed"]+got["bad_icrc"]+got["no_flow"], 0),
				qt.Commentf("%+v", got))
			sent, err := np.Counts()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(sent["no_flow"]+sent["no_clone"], 0), qt.Commentf("%+v", sent))
			qt.Check(t, qt.Equals(sent["cnp_decrease"], got["cnp_decrease"]))
		})
	}
}

// bottleneck limits what leaves the device, in bit/s of frames.
func bottleneck(t *testing.T, e nstest.End, rateBps uint64) {
	t.Helper()
	const burstBytes, queueBytes = 64 << 10, 8 << 20
	qt.Assert(t, qt.IsNil(nstest.Netlink(t, e.NS).QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: e.Index(), Parent: netlink.HANDLE_ROOT,
			Handle: netlink.MakeHandle(1, 0)},
		Rate:   rateBps / 8,
		Buffer: netlink.Xmittime(rateBps/8, burstBytes),
		Limit:  queueBytes,
	})))
}
