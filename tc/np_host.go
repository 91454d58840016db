// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
)

// MaxUDPPorts is how many ports of UDP a HostNP can watch.
const MaxUDPPorts = 8

// HostNPOptions are those of PCN's notification point on a real host.
type HostNPOptions struct {
	TNs            uint64        // T, the CNP period
	CongestedShare float64       // 0.95: a flow with more of its packets marked is congested
	MaxFlows       uint32        // 0: 65536
	Idle           time.Duration // a flow without a packet for so long has ended; 0: 10 s
	UDPPorts       []uint16      // flows of UDP from or to these are watched too; at most MaxUDPPorts
}

// defaultIdle is far longer than any flow that still needs CNPs is silent.
const defaultIdle = 10 * time.Second

func (o HostNPOptions) check() error {
	if o.TNs == 0 || !(o.CongestedShare >= 0 && o.CongestedShare < 1) {
		return fmt.Errorf("np: T %d ns, congested share %g: want T > 0 and 0 <= share < 1", o.TNs, o.CongestedShare)
	}
	if o.TNs < 2*cnp.StampUnitNs {
		return fmt.Errorf("np: T %d ns: want at least %d ns, or signed CNPs of one flow would have the same date", o.TNs, 2*cnp.StampUnitNs)
	}
	if o.Idle < 0 {
		return fmt.Errorf("np: idle time %v: want 0 or more", o.Idle)
	}
	if len(o.UDPPorts) > MaxUDPPorts {
		return fmt.Errorf("np: %d ports of UDP: want at most %d", len(o.UDPPorts), MaxUDPPorts)
	}
	for _, p := range o.UDPPorts {
		if p == 0 {
			return fmt.Errorf("np: port 0 of UDP: want 1 to 65535")
		}
	}
	return nil
}

// HostNP is PCN's notification point on a real host (tc/bpf/np_host.bpf.c).
type HostNP struct{ object }

// HostNPCounts are the CNPs sent, and what became of flows.
type HostNPCounts struct {
	Decrease, Increase uint64 // CNPs sent
	NoFlow             uint64 // packets whose flow the table refused
	NoClone            uint64 // CNPs that could not be sent
	Extensions         uint64 // IPv6 packets with extension headers that are not looked into
	Ended, Idle        uint64 // flows that ended with FIN or RST, and that fell silent
	Untracked          uint64 // windows of flows that only the table's size removes
}

// LoadHostNP loads the notification point.
func LoadHostNP(o HostNPOptions, opts ...Option) (*HostNP, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Idle == 0 {
		o.Idle = defaultIdle
	}
	spec, err := loadNphost()
	if err != nil {
		return nil, err
	}
	if o.MaxFlows != 0 {
		spec.Maps[nphostMapNpFlows].MaxEntries = o.MaxFlows
		spec.Maps[nphostMapNpLive].MaxEntries = 2 * o.MaxFlows
	}
	var ports [MaxUDPPorts]uint16
	for i, p := range o.UDPPorts {
		ports[i] = p<<8 | p>>8 // network byte order
	}
	params := struct {
		TNs               uint64
		CongestedPermille uint32
		Pad               uint32
	}{o.TNs, uint32(o.CongestedShare*1000 + 0.5), 0}
	obj, err := load("np_host", spec, map[string]any{
		nphostVarNpParams:   params,
		nphostVarIdleNs:     uint64(o.Idle),
		nphostVarUdpPorts:   ports,
		nphostVarCrc32Slice: crcSlices(),
	}, nil, opts...)
	if err != nil {
		return nil, err
	}
	return &HostNP{obj}, nil
}

// Places are where Attach attaches its programs, in this order.
func (n *HostNP) Places() []Place {
	return []Place{
		{nphostProgNpEgress, ebpf.AttachTCXEgress, link.Head()},
		{nphostProgNpIngress, ebpf.AttachTCXIngress, link.Tail()},
	}
}

// Attach puts it at the device: last at ingress, first at egress.
func (n *HostNP) Attach(h netns.NsHandle, ifindex int) error {
	return n.attachAll(h, ifindex, n.Places())
}

// Keys are what it signs CNPs with; it signs none while no key's state is KeySigns.
func (n *HostNP) Keys() *KeyRing { return NewKeyRing(n.coll.Maps[KeysMap], n.coll.Maps[ClockMap]) }

// Counts reads the CNPs sent.
func (n *HostNP) Counts() (HostNPCounts, error) {
	var c HostNPCounts
	for i, to := range []*uint64{
		&c.Decrease, &c.Increase, &c.NoFlow, &c.NoClone, &c.Extensions, &c.Ended, &c.Idle, &c.Untracked,
	} {
		v, err := n.sum(nphostMapNpCounts, uint32(i))
		if err != nil {
			return HostNPCounts{}, err
		}
		*to = v
	}
	return c, nil
}
