// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"errors"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
)

// atClsact attaches stamp to the device through clsact, whether there is tcx or not.
func atClsact(t *testing.T, dev *tap, name string, where ebpf.AttachType,
	anchor link.Anchor) (*clsact, error) {
	t.Helper()
	var (
		c   *clsact
		err error
	)
	program := newStamp(t).coll.Programs["stamp"]
	nstest.Do(t, dev.ns, func() error {
		c, err = attachClsact(dev.ifindex, program, name, where, anchor)
		return nil
	})
	if errors.Is(err, unix.ENOENT) {
		t.Skip("needs clsact and cls_bpf (CONFIG_NET_SCH_INGRESS, CONFIG_NET_CLS_BPF): ", err)
	}
	return c, err
}

func attachedAtClsact(t *testing.T, dev *tap, name string, where ebpf.AttachType,
	anchor link.Anchor) *clsact {
	t.Helper()
	c, err := atClsact(t, dev, name, where, anchor)
	qt.Assert(t, qt.IsNil(err))
	return c
}

// clsactNames are the names of a direction's filters, in the order they run; nil without clsact.
func clsactNames(t *testing.T, dev *tap, parent uint32) (names []string) {
	t.Helper()
	filters, err := nstest.Netlink(t, dev.ns).FilterList(deviceOf(dev), parent)
	qt.Assert(t, qt.IsNil(err))
	for _, f := range filters {
		if b, ok := f.(*netlink.BpfFilter); ok && b.Name != "" {
			names = append(names, b.Name)
		}
	}
	return names
}

func deviceOf(dev *tap) netlink.Link {
	return &netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: dev.ifindex}}
}

func hasClsact(t *testing.T, dev *tap) bool {
	t.Helper()
	qdiscs, err := nstest.Netlink(t, dev.ns).QdiscList(deviceOf(dev))
	qt.Assert(t, qt.IsNil(err))
	for _, q := range qdiscs {
		if q.Type() == "clsact" {
			return true
		}
	}
	return false
}

// Filters run in the order of their anchors, and the last that goes takes clsact along, whichever
// brought it.
func TestClsact(t *testing.T) {
	dev := newTap(t, nstest.New(t), "tap0", 1)
	first := attachedAtClsact(t, dev, "first", ebpf.AttachTCXEgress, link.Tail())
	last := attachedAtClsact(t, dev, "last", ebpf.AttachTCXEgress, link.Tail())
	head := attachedAtClsact(t, dev, "head", ebpf.AttachTCXEgress, link.Head())
	in := attachedAtClsact(t, dev, "in", ebpf.AttachTCXIngress, link.Head())
	qt.Check(t, qt.DeepEquals(clsactNames(t, dev, netlink.HANDLE_MIN_EGRESS),
		[]string{"head", "first", "last"}))
	qt.Check(t, qt.DeepEquals(clsactNames(t, dev, netlink.HANDLE_MIN_INGRESS), []string{"in"}))
	for _, c := range []*clsact{first, head, last} {
		qt.Assert(t, qt.IsNil(c.Close()))
		qt.Check(t, qt.IsTrue(hasClsact(t, dev)))
	}
	qt.Check(t, qt.HasLen(clsactNames(t, dev, netlink.HANDLE_MIN_EGRESS), 0))
	qt.Assert(t, qt.IsNil(in.Close()))
	qt.Check(t, qt.IsFalse(hasClsact(t, dev)))
}

// A clsact that was there stays, and so does one in which somebody else has a filter.
func TestClsactOfOthers(t *testing.T) {
	dev := newTap(t, nstest.New(t), "tap0", 1)
	nl := nstest.Netlink(t, dev.ns)
	qdisc := &netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: dev.ifindex, Handle: netlink.MakeHandle(0xffff, 0),
		Parent: netlink.HANDLE_CLSACT,
	}}
	// skips where there is no clsact
	probe := attachedAtClsact(t, dev, "probe", ebpf.AttachTCXEgress, link.Tail())
	qt.Assert(t, qt.IsNil(probe.Close()))
	qt.Assert(t, qt.IsNil(nl.QdiscAdd(qdisc)))
	guest := attachedAtClsact(t, dev, "guest", ebpf.AttachTCXEgress, link.Tail())
	qt.Assert(t, qt.IsNil(guest.Close()))
	qt.Check(t, qt.IsTrue(hasClsact(t, dev)))
	qt.Assert(t, qt.IsNil(nl.QdiscDel(qdisc)))

	owner := attachedAtClsact(t, dev, "owner", ebpf.AttachTCXEgress, link.Tail())
	theirs := &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: dev.ifindex, Parent: netlink.HANDLE_MIN_EGRESS, Handle: 1,
			Protocol: unix.ETH_P_ALL, Priority: 1,
		},
		Fd: newStamp(t).coll.Programs["stamp"].FD(), Name: "theirs", DirectAction: true,
	}
	qt.Assert(t, qt.IsNil(nl.FilterAdd(theirs)))
	_, err := atClsact(t, dev, "head", ebpf.AttachTCXEgress, link.Head())
	qt.Check(t,
		qt.ErrorMatches(err, "clsact has a filter of priority 1, and PCN must run before it: .*"))
	qt.Assert(t, qt.IsNil(owner.Close()))
	qt.Check(t, qt.DeepEquals(clsactNames(t, dev, netlink.HANDLE_MIN_EGRESS), []string{"theirs"}))
}

// What is gone already is no error: the device took it along, or somebody deleted clsact.
func TestClsactIsGone(t *testing.T) {
	dev := newTap(t, nstest.New(t), "tap0", 1)
	c := attachedAtClsact(t, dev, "gone", ebpf.AttachTCXEgress, link.Tail())
	nl := nstest.Netlink(t, dev.ns)
	qt.Assert(t, qt.IsNil(nl.QdiscDel(&netlink.GenericQdisc{QdiscType: "clsact",
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: dev.ifindex, Handle: netlink.MakeHandle(0xffff, 0),
			Parent: netlink.HANDLE_CLSACT,
		}})))
	qt.Check(t, qt.IsNil(c.Close()))
	c = attachedAtClsact(t, dev, "gone", ebpf.AttachTCXEgress, link.Tail())
	qt.Assert(t, qt.IsNil(nl.LinkDel(deviceOf(dev))))
	qt.Check(t, qt.IsNil(c.Close()))

	_, err := atClsact(t, dev, "nowhere", ebpf.AttachTCXEgress, link.Tail())
	qt.Check(t, qt.ErrorMatches(err, "add clsact: .*no such device"))
}
