// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"net/netip"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
)

// PathsMax is the largest number of equal-cost paths of a route.
const PathsMax = 16

// FabricOptions holds the size of a fabric.
type FabricOptions struct {
	HostBase  netip.Addr // address of host 0, IPv4; host i is HostBase + i
	Hosts     uint32
	Nodes     uint32 // switches are nodes 0 to Nodes - 1
	Ports     uint32 // port ids are below
	Unsampled bool   // no port samples for CNMs
	// AnyIP says that hosts send fragments, options of IPv4, and IPv6, where their addresses are
	// fd00:: and their IPv4 address.
	AnyIP bool
	// Partitions says that SetSides will be called. Ports then have npecn.Options.Partitions.
	Partitions bool
}

// Fabric is the program of all switches of a lab.
type Fabric struct {
	object
	nodes, hosts uint32
	unsampled    bool
}

// FabricDrops counts the packets that switches dropped, by cause. A lossless run has none.
type FabricDrops struct {
	NotIP, NoRoute, NoPort, Redirect uint64
}

// LoadFabric loads the switches' program (tc/bpf/fabric.bpf.c).
func LoadFabric(o FabricOptions) (*Fabric, error) {
	if !o.HostBase.Is4() {
		return nil, fmt.Errorf("fabric: host base %s is not IPv4", o.HostBase)
	}
	spec, err := loadFabric()
	if err != nil {
		return nil, err
	}
	base := o.HostBase.As4()
	spec.Maps["fabric_ports"].MaxEntries = o.Ports
	spec.Maps["routes"].MaxEntries = o.Nodes * o.Hosts
	spec.Maps["sides"].MaxEntries = o.Hosts
	obj, err := load("fabric", spec, map[string]any{
		"host_base":    binary.BigEndian.Uint32(base[:]),
		"hosts":        o.Hosts,
		"partitions":   o.Partitions,
		"ports_sample": portsSample(o.Unsampled),
		"any_ip":       o.AnyIP,
	}, nil)
	if err != nil {
		return nil, err
	}
	return &Fabric{object: obj, nodes: o.Nodes, hosts: o.Hosts, unsampled: o.Unsampled}, nil
}

// FabricPort is a switch port: its peer is a host or another switch's port.
type FabricPort struct {
	ID       uint32 // the device's netdev group
	Node     uint32
	FromHost bool
	Seed     uint32 // of the switch's flow hash
}

// AddPort configures a port and attaches the program to its device.
func (f *Fabric) AddPort(h netns.NsHandle, ifindex int, p FabricPort) error {
	value := fabricFabricPort{Known: 1, Node: p.Node, Seed: p.Seed}
	if p.FromHost {
		value.Clone = 1
	}
	if err := f.coll.Maps["fabric_ports"].Put(p.ID, &value); err != nil {
		return fmt.Errorf("configure fabric port %d: %w", p.ID, err)
	}
	if err := f.attachCNMs(h, ifindex, f.unsampled); err != nil {
		return err
	}
	return f.attach(h, ifindex, "fabric", ebpf.AttachTCXIngress, link.Head())
}

// SetRoute makes a node send packets for a host through these devices, spread by flow.
func (f *Fabric) SetRoute(node, host uint32, ifindexes ...int) error {
	if node >= f.nodes || host >= f.hosts {
		return fmt.Errorf("route of node %d to host %d: the fabric has %d nodes and %d hosts",
			node, host, f.nodes, f.hosts)
	}
	if len(ifindexes) == 0 || len(ifindexes) > PathsMax {
		return fmt.Errorf("route of node %d to host %d has %d paths, want 1 to %d",
			node, host, len(ifindexes), PathsMax)
	}
	r := fabricRoute{Paths: uint32(len(ifindexes))}
	for i, ifindex := range ifindexes {
		r.Ifindex[i] = uint32(ifindex)
	}
	if err := f.coll.Maps["routes"].Put(node*f.hosts+host, &r); err != nil {
		return fmt.Errorf("set route of node %d to host %d: %w", node, host, err)
	}
	return nil
}

// SetSides says which partitions each host is within, a bit each. Packets go between hosts that are
// within the same; others are lost at their host's switch.
func (f *Fabric) SetSides(sides []uint64) error {
	if len(sides) != int(f.hosts) {
		return fmt.Errorf("sides of %d hosts: the fabric has %d", len(sides), f.hosts)
	}
	for host, side := range sides {
		if err := f.coll.Maps["sides"].Put(uint32(host), side); err != nil {
			return fmt.Errorf("set the side of host %d: %w", host, err)
		}
	}
	return nil
}

// Drops reads the counters of dropped packets.
func (f *Fabric) Drops() (FabricDrops, error) {
	c, err := f.readCounts(fabricDrops)
	return FabricDrops{
		NotIP: c["not_ip"], NoRoute: c["no_route"], NoPort: c["no_port"], Redirect: c["redirect"],
	}, err
}
