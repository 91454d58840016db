// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
)

// Router is the programs of switches' ports where Linux itself forwards, or where a qdisc of Linux
// queues before the port's own (tc/bpf/router.bpf.c).
type Router struct{ object }

// LoadRouter loads the programs. The ids of ports are below `ports`.
func LoadRouter(ports uint32) (*Router, error) {
	spec, err := loadRouter()
	if err != nil {
		return nil, err
	}
	spec.Maps["router_ports"].MaxEntries = ports
	spec.Maps["port_at"].MaxEntries = ports
	obj, err := load("router", spec, nil, nil)
	if err != nil {
		return nil, err
	}
	return &Router{obj}, nil
}

// RouterPort is a port of a switch.
type RouterPort struct {
	ID      uint32 // the netdev group of its devices
	Node    uint32
	Ifindex int // of the device with the port's own qdisc
}

// AddPort makes a port known. It must be before any of its devices gets a program.
func (r *Router) AddPort(p RouterPort) error {
	port := routerRouterPort{Node: p.Node, Ifindex: uint32(p.Ifindex)}
	if err := r.coll.Maps["router_ports"].Put(p.ID, &port); err != nil {
		return fmt.Errorf("configure router port %d: %w", p.ID, err)
	}
	at := routerPlace{Node: p.Node, Ifindex: uint32(p.Ifindex)}
	if err := r.coll.Maps["port_at"].Put(&at, p.ID); err != nil {
		return fmt.Errorf("configure router port %d: %w", p.ID, err)
	}
	return nil
}

// AttachEnter has a port's device hand what comes in to IP.
func (r *Router) AttachEnter(h netns.NsHandle, ifindex int) error {
	return r.attach(h, ifindex, "enter", ebpf.AttachTCXIngress, link.Head())
}

// AttachLeave has a device, that a router sends to, tell the port's qdisc what it needs to know.
func (r *Router) AttachLeave(h netns.NsHandle, ifindex int) error {
	return r.attach(h, ifindex, "leave", ebpf.AttachTCXEgress, link.Tail())
}

// AttachRelay has the far end of a pair of veths send on to the port's own device.
func (r *Router) AttachRelay(h netns.NsHandle, ifindex int) error {
	return r.attach(h, ifindex, "relay", ebpf.AttachTCXIngress, link.Head())
}
