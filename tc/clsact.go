// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Handles of our filters: "pcn" and a bit. The bit says that we added the device's clsact, which
// goes with our last filter. It is in the kernel so that all processes of ours see it.
const (
	guestHandle = 0x70636e00
	ownerHandle = 0x70636e01
)

// firstPriority is the priority of a device's first filter: it leaves room before and behind.
const firstPriority = 0x8000

// clsact is an attachment without tcx, before 6.6: a filter of the device's clsact qdisc. It
// outlives this process unless it is closed. TCX_NEXT has the value of TC_ACT_UNSPEC, with which
// clsact runs the next filter.
type clsact struct {
	conn   *netlink.Handle
	filter *netlink.BpfFilter
}

// attachClsact attaches the program to a device of this thread's namespace, before or behind all of
// its filters.
func attachClsact(ifindex int, program *ebpf.Program, name string, where ebpf.AttachType,
	anchor link.Anchor) (*clsact, error) {
	conn, err := netlink.NewHandle(unix.NETLINK_ROUTE)
	if err != nil {
		return nil, fmt.Errorf("connect to netlink: %w", err)
	}
	c := &clsact{conn: conn}
	if err := c.attach(ifindex, program, name, where, anchor); err != nil {
		conn.Close()
		return nil, err
	}
	return c, nil
}

func (c *clsact) attach(ifindex int, program *ebpf.Program, name string, where ebpf.AttachType,
	anchor link.Anchor) error {
	err := c.conn.QdiscAdd(clsactOf(ifindex))
	if err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("add clsact: %w", err)
	}
	added := err == nil
	if err := c.addFilter(ifindex, program, name, where, anchor, added); err != nil {
		if added {
			err = errors.Join(err, c.conn.QdiscDel(clsactOf(ifindex)))
		}
		return err
	}
	return nil
}

func (c *clsact) addFilter(ifindex int, program *ebpf.Program, name string,
	where ebpf.AttachType, anchor link.Anchor, owner bool) error {
	filters, err := c.filters(ifindex)
	if err != nil {
		return err
	}
	handle := uint32(guestHandle)
	if owner || hasOwner(filters) {
		handle = ownerHandle
	}
	parent := parentOf(where)
	priority, err := priorityAt(filters[parent], anchor)
	if err != nil {
		return err
	}
	c.filter = &netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{LinkIndex: ifindex, Parent: parent, Handle: handle,
			Priority: priority, Protocol: unix.ETH_P_ALL},
		Fd: program.FD(), Name: name, DirectAction: true,
	}
	if err := c.conn.FilterAdd(c.filter); err != nil {
		return fmt.Errorf("add filter to clsact: %w", err)
	}
	return nil
}

// Close removes the filter from the device, and clsact too if we added it and it is now empty.
func (c *clsact) Close() error {
	defer c.conn.Close()
	err := c.conn.FilterDel(c.filter)
	if errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT) || errors.Is(err, unix.EINVAL) {
		// the device is gone (ENODEV), or its clsact (EINVAL), or somebody deleted the filter
		return nil
	}
	if err != nil {
		return fmt.Errorf("delete filter of clsact at device %d: %w", c.filter.LinkIndex, err)
	}
	filters, err := c.filters(c.filter.LinkIndex)
	if err != nil {
		return err
	}
	for _, left := range filters {
		if len(left) > 0 {
			return nil
		}
	}
	if c.filter.Handle != ownerHandle {
		return nil
	}
	if err := c.conn.QdiscDel(clsactOf(c.filter.LinkIndex)); err != nil {
		return fmt.Errorf("delete clsact of device %d: %w", c.filter.LinkIndex, err)
	}
	return nil
}

func clsactOf(ifindex int) *netlink.Clsact {
	return &netlink.Clsact{QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex,
		Handle: netlink.HANDLE_CLSACT &^ 0xffff, Parent: netlink.HANDLE_CLSACT}}
}

// parentOf returns the parent of the filters of a direction.
func parentOf(where ebpf.AttachType) uint32 {
	if where == ebpf.AttachTCXIngress {
		return netlink.HANDLE_MIN_INGRESS
	}
	return netlink.HANDLE_MIN_EGRESS
}

// filters lists the filters of a device's clsact by their parent.
func (c *clsact) filters(ifindex int) (map[uint32][]netlink.Filter, error) {
	all := map[uint32][]netlink.Filter{}
	for _, where := range []ebpf.AttachType{ebpf.AttachTCXIngress, ebpf.AttachTCXEgress} {
		parent := parentOf(where)
		f, err := c.conn.FilterList(
			&netlink.GenericLink{LinkAttrs: netlink.LinkAttrs{Index: ifindex}}, parent)
		if err != nil {
			return nil, fmt.Errorf("list filters of clsact at device %d: %w", ifindex, err)
		}
		all[parent] = f
	}
	return all, nil
}

func hasOwner(filters map[uint32][]netlink.Filter) bool {
	for _, of := range filters {
		for _, f := range of {
			if f.Type() == "bpf" && f.Attrs().Handle == ownerHandle {
				return true
			}
		}
	}
	return false
}

// priorityAt returns a priority before or behind all other filters.
func priorityAt(filters []netlink.Filter, anchor link.Anchor) (uint16, error) {
	if len(filters) == 0 {
		return firstPriority, nil
	}
	lowest, highest := uint16(1<<16-1), uint16(0)
	for _, f := range filters {
		lowest, highest = min(lowest, f.Attrs().Priority), max(highest, f.Attrs().Priority)
	}
	if anchor == link.Head() {
		if lowest <= 1 {
			return 0,
				errors.New("clsact has a filter of priority 1, and PCN must run before it: give " +
					"that filter a larger priority")
		}
		return lowest - 1, nil
	}
	if highest == 1<<16-1 {
		return 0,
			errors.New("clsact has a filter of priority 65535, and PCN must run after it: give " +
				"that filter a smaller priority")
	}
	return highest + 1, nil
}
