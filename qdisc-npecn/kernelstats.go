// SPDX-License-Identifier: Apache-2.0

package npecn

import (
	"fmt"

	gotc "github.com/florianl/go-tc"
	"github.com/vishvananda/netns"
)

// KernelStats are the counters that the kernel itself keeps of a port's qdisc: what `tc -s qdisc show` prints. They
// are there even when the program that loaded the qdisc is gone.
type KernelStats struct {
	SentPackets, SentBytes     uint64 // handed to the far end
	DroppedPackets             uint64 // refused
	QueuedPackets, QueuedBytes uint64 // in class queues and on the wire now
}

// ReadKernelStats reads the counters of the qdisc at a device of the namespace. A closed handle means the current
// namespace.
func ReadKernelStats(h netns.NsHandle, ifindex int) (KernelStats, error) {
	var config gotc.Config
	if h.IsOpen() {
		config.NetNS = int(h)
	}
	conn, err := gotc.Open(&config)
	if err != nil {
		return KernelStats{}, fmt.Errorf("read kernel's counters of device %d: %w", ifindex, err)
	}
	defer conn.Close()
	qdiscs, err := conn.Qdisc().Get()
	if err != nil {
		return KernelStats{}, fmt.Errorf("read kernel's counters of device %d: %w", ifindex, err)
	}
	for _, q := range qdiscs {
		if s := q.Stats; int(q.Ifindex) == ifindex && q.Kind == Kind && s != nil {
			return KernelStats{
				SentPackets: uint64(s.Packets), SentBytes: s.Bytes, DroppedPackets: uint64(s.Drops),
				QueuedPackets: uint64(s.Qlen), QueuedBytes: uint64(s.Backlog),
			}, nil
		}
	}
	return KernelStats{}, fmt.Errorf("device %d has no qdisc %s: attach it first", ifindex, Kind)
}
