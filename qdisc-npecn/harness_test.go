// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"fmt"

	gotc "github.com/florianl/go-tc"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
)

// kernelStats are the counters that the kernel itself keeps of a port's qdisc: what
// `tc -s qdisc show` prints. The port's own are compared with them.
type kernelStats struct {
	SentPackets, SentBytes     uint64 // handed to the far end
	DroppedPackets             uint64 // refused
	QueuedPackets, QueuedBytes uint64 // in class queues and on the wire now
}

// readKernelStats reads the counters of the qdisc at a device of the namespace.
func readKernelStats(h netns.NsHandle, ifindex int) (kernelStats, error) {
	conn, err := gotc.Open(&gotc.Config{NetNS: int(h)})
	if err != nil {
		return kernelStats{}, fmt.Errorf("read kernel's counters of device %d: %w", ifindex, err)
	}
	defer conn.Close()
	qdiscs, err := conn.Qdisc().Get()
	if err != nil {
		return kernelStats{}, fmt.Errorf("read kernel's counters of device %d: %w", ifindex, err)
	}
	for _, q := range qdiscs {
		if s := q.Stats; int(q.Ifindex) == ifindex && q.Kind == Kind && s != nil {
			return kernelStats{
				SentPackets: uint64(s.Packets), SentBytes: s.Bytes, DroppedPackets: uint64(s.Drops),
				QueuedPackets: uint64(s.Qlen), QueuedBytes: uint64(s.Backlog),
			}, nil
		}
	}
	return kernelStats{}, fmt.Errorf("device %d has no qdisc %s: attach it first", ifindex, Kind)
}

// nodeStats are what a node counts of its shared buffer.
type nodeStats struct {
	UsedBytes, UsedMaxBytes uint64
}

func (q *Qdisc) nodeStats(node uint32) (nodeStats, error) {
	var n npecnNode
	if err := q.objs.Nodes.Lookup(node, &n); err != nil {
		return nodeStats{}, fmt.Errorf("read node %d: %w", node, err)
	}
	return nodeStats{UsedBytes: n.UsedBytes, UsedMaxBytes: n.UsedMaxBytes}, nil
}

// detach removes the port's qdisc; what it holds is freed.
func detach(h *netlink.Handle, ifindex int) error {
	if err := h.QdiscDel(portQdisc(ifindex)); err != nil {
		return fmt.Errorf("remove root qdisc %s of device %d: %w", Kind, ifindex, err)
	}
	return nil
}
