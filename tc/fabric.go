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

// PathsMax is how many equal-cost paths a route may have.
const PathsMax = 16

const (
	qShift = 24 // fixed point of fractions in bpf/algo/fixed.h
	wShift = 8  // of QCN's w in bpf/algo/qcn.h

	randomStep = 2654435761 // Knuth's multiplicative hash: neighbours start far apart
)

// FabricOptions size a fabric.
type FabricOptions struct {
	HostBase netip.Addr // address of host 0, IPv4; host i is HostBase + i
	Hosts    uint32
	Nodes    uint32           // switches are nodes 0 to Nodes - 1
	Ports    uint32           // port ids are below
	QCN      *CongestionPoint // of every switch port; nil: none
}

// CongestionPoint are the parameters of QCN's congestion point (802.1Qau; bpf/algo/qcn.h).
type CongestionPoint struct {
	QeqBytes        uint64    // the queue to keep
	W               float64   // weight of the queue's growth, 0 to 128
	SampleBaseBytes uint64    // between samples while there is no congestion
	SampleJitter    float64   // of the distance between samples, to both sides: 0.15
	Seed            uint32    // of the jitter
	DataClass       uint32    // the class that is sampled
	ControlClass    uint32    // the class that CNMs ride
	QueueLengths    *ebpf.Map // npecn.Qdisc.QueueLengths
}

func (c *CongestionPoint) check() error {
	const max = 1 << 32
	if c.QeqBytes == 0 || c.QeqBytes >= max || c.SampleBaseBytes == 0 || c.SampleBaseBytes >= max {
		return fmt.Errorf("congestion point: Q_eq %d bytes, samples every %d bytes: want 1 to 2^32 - 1", c.QeqBytes, c.SampleBaseBytes)
	}
	if !(c.W >= 0 && c.W <= 128 && c.SampleJitter >= 0 && c.SampleJitter <= 1) {
		return fmt.Errorf("congestion point: w %g, jitter %g: want 0 to 128, 0 to 1", c.W, c.SampleJitter)
	}
	if c.QueueLengths == nil {
		return fmt.Errorf("congestion point: no queue lengths: set QueueLengths")
	}
	return nil
}

// qcnParams is struct qcn_cp_params.
type qcnParams struct {
	QeqBytes, SampleBaseBytes uint64
	W, Jitter                 uint32
}

// Fabric is the program of all switches of a lab.
type Fabric struct {
	object
	nodes, hosts uint32
	qcn          *CongestionPoint
}

// FabricDrops are the packets that switches dropped, by cause. A lossless run has none.
type FabricDrops struct {
	NotIP, NoRoute, NoPort, Redirect, NoCNM uint64
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
	spec.Maps["congestion_points"].MaxEntries = o.Ports
	spec.Maps["cnms_sent"].MaxEntries = o.Ports
	spec.Maps["routes"].MaxEntries = o.Nodes * o.Hosts
	vars := map[string]any{
		"host_base": binary.BigEndian.Uint32(base[:]),
		"hosts":     o.Hosts,
	}
	shared := map[string]*ebpf.Map{}
	if o.QCN != nil {
		if err := o.QCN.check(); err != nil {
			return nil, fmt.Errorf("fabric: %w", err)
		}
		vars["qcn_params"] = qcnParams{
			o.QCN.QeqBytes, o.QCN.SampleBaseBytes, uint32(o.QCN.W*(1<<wShift) + 0.5), uint32(o.QCN.SampleJitter*(1<<qShift) + 0.5),
		}
		vars["data_class"], vars["control_class"] = o.QCN.DataClass, o.QCN.ControlClass
		shared["queue_lengths"] = o.QCN.QueueLengths
	}
	obj, err := load("fabric", spec, vars, shared)
	if err != nil {
		return nil, err
	}
	return &Fabric{object: obj, nodes: o.Nodes, hosts: o.Hosts, qcn: o.QCN}, nil
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
	if f.qcn != nil {
		cp := fabricQcnCp{CreditBytes: int64(f.qcn.SampleBaseBytes), Random: max(f.qcn.Seed^p.ID*randomStep, 1)}
		if err := f.coll.Maps["congestion_points"].Put(p.ID, &cp); err != nil {
			return fmt.Errorf("configure congestion point of port %d: %w", p.ID, err)
		}
		if err := f.attach(h, ifindex, "cnm_egress", ebpf.AttachTCXEgress, link.Head()); err != nil {
			return err
		}
	}
	return f.attach(h, ifindex, "fabric", ebpf.AttachTCXIngress, link.Head())
}

// Path is one way out of a node: the device, and its port.
type Path struct {
	Ifindex int
	Port    uint32
}

// SetRoute sends packets for a host out of these ports of the node, spread by flow.
func (f *Fabric) SetRoute(node, host uint32, paths ...Path) error {
	if node >= f.nodes || host >= f.hosts {
		return fmt.Errorf("route of node %d to host %d: the fabric has %d nodes and %d hosts", node, host, f.nodes, f.hosts)
	}
	if len(paths) == 0 || len(paths) > PathsMax {
		return fmt.Errorf("route of node %d to host %d has %d paths, want 1 to %d", node, host, len(paths), PathsMax)
	}
	r := fabricRoute{Paths: uint32(len(paths))}
	for i, p := range paths {
		r.Ifindex[i], r.Port[i] = uint32(p.Ifindex), p.Port
	}
	if err := f.coll.Maps["routes"].Put(node*f.hosts+host, &r); err != nil {
		return fmt.Errorf("set route of node %d to host %d: %w", node, host, err)
	}
	return nil
}

// CNMs reads how many CNMs the switch sent out of a port, of congestion points of its own.
func (f *Fabric) CNMs(port uint32) (uint64, error) {
	var n uint64
	if err := f.coll.Maps["cnms_sent"].Lookup(port, &n); err != nil {
		return 0, fmt.Errorf("read CNMs of port %d: %w", port, err)
	}
	return n, nil
}

// Drops reads what the switches dropped.
func (f *Fabric) Drops() (FabricDrops, error) {
	var n [5]uint64
	for i := range n {
		if err := f.coll.Maps["fabric_drops"].Lookup(uint32(i), &n[i]); err != nil {
			return FabricDrops{}, fmt.Errorf("read fabric drops: %w", err)
		}
	}
	return FabricDrops{NotIP: n[0], NoRoute: n[1], NoPort: n[2], Redirect: n[3], NoCNM: n[4]}, nil
}
