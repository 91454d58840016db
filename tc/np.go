// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"strings"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

// NP is a notification point: it answers the marked packets that a receiver gets with CNPs. Each is
// a C file that includes bpf/include/notify.h.
type NP struct {
	object
	own []byte // the user's own object; nil: a built-in one
}

// MaxUDPPorts is the largest number of UDP ports that a host's notification point can watch.
const MaxUDPPorts = 8

// HostNPOptions holds the parameters of PCN's notification point on a real host.
type HostNPOptions struct {
	TNs uint64 // T, the CNP period
	// a flow is congested if more of its packets are marked; 0.95 in the paper
	CongestedShare float64
	MaxFlows       uint32        // 0: 65536
	Idle           time.Duration // a flow without packets for this long has ended; 0 means 10 s
	// flows of several network namespaces may have the same addresses and ports
	NetnsKeys bool
	UDPPorts  []uint16 // UDP flows from or to these are watched; at most MaxUDPPorts
	// Params is the point's struct of parameters as C lays it out, from package scheme; nil: those
	// of a lab, with TNs and CongestedShare.
	Params []byte
	// EnterFirst, for tests, makes flows enter the table with their first packet, which anyone can
	// forge, instead of their second.
	EnterFirst bool
}

// defaultIdle is far longer than the pauses of any flow that still needs CNPs.
const defaultIdle = 10 * time.Second

func (o HostNPOptions) check() error {
	if o.TNs == 0 || !(o.CongestedShare >= 0 && o.CongestedShare < 1) {
		return fmt.Errorf("np: T %d ns, congested share %g: want T above 0 and a share of 0 to "+
			"below 1", o.TNs, o.CongestedShare)
	}
	if o.TNs < 2*cnp.StampUnitNs {
		return fmt.Errorf("np: T %d ns: want at least %d ns, so that signed CNPs of one flow "+
			"have different dates", o.TNs, 2*cnp.StampUnitNs)
	}
	if o.Idle < 0 {
		return fmt.Errorf("np: idle time %v: want 0 or more", o.Idle)
	}
	if len(o.UDPPorts) > MaxUDPPorts {
		return fmt.Errorf("np: %d ports of UDP: want at most %d", len(o.UDPPorts), MaxUDPPorts)
	}
	if slices.Contains(o.UDPPorts, 0) {
		return fmt.Errorf("np: port 0 of UDP: want 1 to 65535")
	}
	return nil
}

// LoadHostNP loads PCN's notification point (tc/bpf/np.bpf.c) for a real host. It handles IPv4,
// IPv6, VLAN tags, TCP and the watched UDP ports, forgets ended flows, and signs CNPs.
func LoadHostNP(o HostNPOptions, options ...Option) (*NP, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Idle = cmp.Or(o.Idle, defaultIdle)
	spec, err := loadNp()
	if err != nil {
		return nil, err
	}
	var ports [MaxUDPPorts]uint16
	for i, p := range o.UDPPorts {
		ports[i] = bits.ReverseBytes16(p) // network byte order
	}
	var params any = npPcnNpParams{
		T_ns: o.TNs, CongestedPermille: uint32(o.CongestedShare*1000 + 0.5),
	}
	if o.Params != nil {
		params = o.Params
	}
	return loadedNP("np", spec, o.MaxFlows, map[string]any{
		npVarParams:      params,
		npVarOnHost:      true,
		npVarNetnsKeys:   o.NetnsKeys,
		npVarIdleNs:      uint64(o.Idle),
		npVarUdpPorts:    ports,
		npVarEnterSecond: !o.EnterFirst,
	}, options)
}

// PointOptions holds the parameters that a lab gives to any notification point.
type PointOptions struct {
	// Params is the point's struct of parameters as C lays it out, from package scheme.
	Params []byte
	// Object is a compiled notification point of the user's own; nil loads the one of the name.
	Object        []byte
	TCD           bool // ECT(0) is TCD's mark for undetermined, which CNPs report
	IdealTime     bool // take arrival times from the packets, where the lab's ports write them
	DilationShift uint32
	MaxFlows      uint32 // 0: 65536
}

// points holds the notification points by their names in schemes (bpf/include/scheme.h).
var points = map[string]func() (*ebpf.CollectionSpec, error){
	"pcn": loadNplab, "marked": loadNpmarked,
}

// LoadPoint loads a notification point by its name, or one of the user's own, for a lab.
func LoadPoint(name string, o PointOptions, options ...Option) (*NP, error) {
	load, ok := points[name]
	if o.Object != nil {
		load = func() (*ebpf.CollectionSpec, error) {
			return ebpf.LoadCollectionSpecFromReader(bytes.NewReader(o.Object))
		}
	} else if !ok {
		return nil, fmt.Errorf("unknown notification point %q: want one of %s", name,
			strings.Join(slices.Sorted(maps.Keys(points)), ", "))
	}
	spec, err := load()
	if err != nil {
		return nil, fmt.Errorf("np %s: %w", name, err)
	}
	vars := map[string]any{"ideal_time": o.IdealTime, "dilation_shift": o.DilationShift}
	if o.Params != nil {
		vars["params"] = o.Params
	}
	if spec.Variables["tcd"] != nil {
		vars["tcd"] = o.TCD
	}
	n, err := loadedNP("np "+name, spec, o.MaxFlows, vars, options)
	if err == nil {
		n.own = o.Object
	}
	return n, err
}

// Undefined describes what a point of the user's own did that C leaves undefined.
func (n *NP) Undefined() ([]string, error) {
	if n == nil || n.own == nil {
		return nil, nil
	}
	return loader.Undefined(n.coll.Maps[loader.UndefinedMap], func(at uint64) string {
		return scheme.FileAt(bytes.NewReader(n.own), at)
	})
}

// loadedNP loads a program that includes bpf/include/notify.h. With maxFlows 0 the size of the flow
// table is that in the C file.
func loadedNP(
	name string, spec *ebpf.CollectionSpec, maxFlows uint32, vars map[string]any, options []Option,
) (*NP, error) {
	flows, live := spec.Maps[npMapNpFlows], spec.Maps[npMapNpLive]
	if maxFlows != 0 {
		flows.MaxEntries = maxFlows
	}
	live.MaxEntries = 2 * flows.MaxEntries
	if _, ends := vars[npVarIdleNs]; !ends {
		live.MaxEntries = 1 // this point keeps no flows
	}
	obj, err := load(name, spec, vars, nil, options...)
	if err != nil {
		return nil, err
	}
	return &NP{object: obj}, nil
}

// Places returns where Attach attaches the programs, in this order.
func (n *NP) Places() []Place {
	return []Place{
		{npProgNpEgress, ebpf.AttachTCXEgress, link.Head()},
		{npProgNpIngress, ebpf.AttachTCXIngress, link.Tail()},
	}
}

// Attach attaches it last at the device's ingress and first at egress.
func (n *NP) Attach(h netns.NsHandle, ifindex int) error {
	return n.attachAll(h, ifindex, n.Places())
}

// Keys returns the keys with which it signs CNPs on a host. It signs only while a key's state is
// KeySigns.
func (n *NP) Keys() *KeyRing { return NewKeyRing(n.coll.Maps[KeysMap], n.coll.Maps[ClockMap]) }

// Counts reads the counters of sent CNPs and of failures: struct np_counts of bpf/include/notify.h.
func (n *NP) Counts() (Counts, error) { return n.readCounts(npCounts) }

// Forget removes a flow from the flow table, if it is there.
func (n *NP) Forget(k loader.FlowKey) error {
	err := n.coll.Maps[npMapNpFlows].Delete(k)
	if err != nil && !errors.Is(err, ebpf.ErrKeyNotExist) {
		return fmt.Errorf("np: forget flow %s: %w", k, err)
	}
	return nil
}
