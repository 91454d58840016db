// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"
	"net"

	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netlink/nl"
	"golang.org/x/sys/unix"
)

// hostMAC is the address of every device: without ARP, a host takes every destination for its own
// address.
var hostMAC = net.HardwareAddr{2, 0, 0, 0, 0, 1}

// links are the veths between the nodes' namespaces.
type links struct {
	plan    *plan
	nodes   namespaces
	ifindex []int // of each port
}

// create makes a veth for each link, its ends in its nodes' namespaces.
func (l *links) create() error {
	return parallel(len(l.plan.ports)/2, func(i int) error {
		a := uint32(2*i + 1)
		if err := l.createOne(a, a+1); err != nil {
			return fmt.Errorf("make link %s: %w", l.plan.ports[a].name, err)
		}
		return nil
	})
}

func (l *links) createOne(a, b uint32) (err error) {
	na, nb := l.node(a), l.node(b)
	mtu := int(l.plan.exp.Frame) - ethHeader
	veth := &netlink.Veth{
		LinkAttrs: netlink.LinkAttrs{
			Name: l.plan.device(a), MTU: mtu, HardwareAddr: hostMAC,
			Namespace: netlink.NsFd(na.handle),
		},
		PeerName: l.plan.device(b), PeerMTU: uint32(mtu), PeerHardwareAddr: hostMAC,
		PeerNamespace: netlink.NsFd(nb.handle),
	}
	if err := na.nl.LinkAdd(veth); err != nil {
		return fmt.Errorf("add veth: %w", err)
	}
	for _, id := range []uint32{a, b} {
		if l.ifindex[id], err = l.setUp(id, l.plan.device(id)); err != nil {
			return fmt.Errorf("device %s: %w", l.plan.device(id), err)
		}
	}
	return nil
}

// node returns the namespace that the port's device is in.
func (l *links) node(port uint32) namespace { return l.nodes[l.plan.ports[port].node] }

// setUp sets a device of a port up without ARP, gives it the port's id as its netdev group, and
// makes every skb one packet. It returns the device's index.
func (l *links) setUp(id uint32, device string) (ifindex int, err error) {
	n := l.node(id)
	dev, err := n.nl.LinkByName(device)
	if err != nil {
		return 0, fmt.Errorf("find it: %w", err)
	}
	ifindex = dev.Attrs().Index
	const flags = unix.IFF_UP | unix.IFF_NOARP
	change := nl.NewIfInfomsg(unix.AF_UNSPEC)
	change.Index, change.Flags, change.Change = int32(ifindex), flags, flags
	// one request for all: each of netlink's functions takes one of its own
	req := nl.NewNetlinkRequest(unix.RTM_SETLINK, unix.NLM_F_ACK)
	req.Sockets = map[int]*nl.SocketHandle{unix.NETLINK_ROUTE: n.requests}
	req.AddData(change)
	req.AddData(nl.NewRtAttr(unix.IFLA_GROUP, nl.Uint32Attr(id)))
	req.AddData(nl.NewRtAttr(unix.IFLA_GSO_MAX_SEGS, nl.Uint32Attr(1)))
	if _, err := req.Execute(unix.NETLINK_ROUTE, 0); err != nil {
		return 0, fmt.Errorf("set it up as port %d: %w", id, err)
	}
	return ifindex, nil
}

// each calls fn for every port, on all CPUs.
func (l *links) each(fn func(id uint32, n namespace, ifindex int) error) error {
	return parallel(len(l.plan.ports)-1, func(i int) error {
		id := uint32(i + 1)
		if err := fn(id, l.node(id), l.ifindex[id]); err != nil {
			return fmt.Errorf("port %s: %w", l.plan.ports[id].name, err)
		}
		return nil
	})
}
