// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/loader"
)

// RP is a reaction point: what hears of congestion for a control's flows. Each is a C file over
// bpf/include/react.h, or react_cnm.h for QCN.
type RP struct{ object }

// reactionPoints are the reaction points by their controls' names: those in tc/bpf/rp*.bpf.c.
var reactionPoints = map[string]func() (*ebpf.CollectionSpec, error){
	"pcn": loadRp, "qcn": loadRpqcn,
	"dcqcn": loadRpdcqcn, "dcqcn_tcd": loadRpdcqcn,
	"ibcc": loadRpibcc, "ibcc_tcd": loadRpibcc,
	"timely_tcd": loadRptimely,
}

// LabRPVariables are the values of bpf/include/react.h's variables for a lab: packets carry their ideal
// arrival. rateUnitBps is what RecRate counts; 0: 1 Mbit/s. tcd says whether CNPs may say UE.
func LabRPVariables(dilationShift, rateUnitBps uint32, tcd bool) map[string]any {
	vars := map[string]any{rpVarDilationShift: dilationShift, rpVarIdealTime: true}
	if rateUnitBps != 0 {
		vars[rpVarRateUnitBps] = rateUnitBps
	}
	if tcd {
		vars[rpVarTcd] = true
	}
	return vars
}

// LoadRP loads the reaction point of the control's flows for a lab: it sees plain IPv4 only, and takes
// CNPs from anybody.
func LoadRP(control *loader.Control, dilationShift uint32, options ...Option) (*RP, error) {
	specOf, ok := reactionPoints[control.Name()]
	if !ok || control.FlowTable() == nil { // or another process's of that name
		return nil, fmt.Errorf("rp: congestion control %s has no reaction point", control.Name())
	}
	spec, err := specOf()
	if err != nil {
		return nil, err
	}
	vars := LabRPVariables(dilationShift, control.RateUnitBps(), control.TCD())
	vars[rpVarParams] = control.Params()
	return loadedRP("rp of "+control.Name(), spec, vars, control.FlowTable(), options)
}

// HostRPOptions say which CNPs the reaction point of a real host obeys. docs/security.md says what each
// option stops.
type HostRPOptions struct {
	// RequireTag refuses CNPs that no key of the ring signed, and replayed ones.
	RequireTag bool

	// Window is how far a signed CNP's time may be from this host's wall clock; 0: DefaultWindow.
	Window time.Duration

	// CNPInterval is the shortest time between two CNPs of a flow, in the long run; 0: any. NP sends
	// one each T.
	CNPInterval time.Duration

	// CNPBurst is how many CNPs may come at once; 0: DefaultCNPBurst.
	CNPBurst int

	// FloorBps is the rate below which no CNP brings a flow; 0: the control's own floor.
	FloorBps uint64
}

// Defaults of HostRPOptions.
const (
	DefaultWindow   = 500 * time.Millisecond
	DefaultCNPBurst = 8
)

// maxWindow is short enough that a stamp is never taken for one of its next turn.
const maxWindow = time.Hour

func (o HostRPOptions) check() error {
	if o.Window < 0 || o.Window > maxWindow {
		return fmt.Errorf("rp: window %v: want 0 to %v", o.Window, maxWindow)
	}
	if o.CNPInterval < 0 || o.CNPInterval > time.Hour {
		return fmt.Errorf("rp: CNP interval %v: want 0 to 1h", o.CNPInterval)
	}
	if o.CNPBurst < 0 || o.CNPBurst > 1_000_000 {
		return fmt.Errorf("rp: burst of %d CNPs: want 0 to 1000000", o.CNPBurst)
	}
	return nil
}

// Variables are the values of bpf/include/react.h's variables for a real host. It checks the options.
func (o HostRPOptions) Variables() (map[string]any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.CNPBurst == 0 {
		o.CNPBurst = DefaultCNPBurst
	}
	return map[string]any{
		rpVarOnHost:        true,
		rpVarFloorBps:      o.FloorBps,
		rpVarRequireTag:    o.RequireTag,
		rpVarWindowStamps:  uint32(o.Window / cnp.StampUnitNs),
		rpVarCnpIntervalNs: uint64(o.CNPInterval),
		rpVarCnpBurstNs:    uint64(o.CNPInterval) * uint64(o.CNPBurst-1),
	}, nil
}

// LoadHostRP loads the reaction point of the flows of congestion control "pcn" for a real host. It obeys
// no CNP until Allow.
func LoadHostRP(control *loader.Control, o HostRPOptions, options ...Option) (*RP, error) {
	if control.Name() != "pcn" || control.FlowTable() == nil { // or another process's of that name
		return nil, fmt.Errorf("rp: congestion control %s has no reaction point for hosts: want pcn",
			control.Name())
	}
	return loadHostRP(control.Params(), o, control.FlowTable(), options...)
}

// loadHostRP loads it with a flow table that is shared; nil: one of its own.
func loadHostRP(params any, o HostRPOptions, flows *ebpf.Map, options ...Option) (*RP, error) {
	vars, err := o.Variables()
	if err != nil {
		return nil, err
	}
	spec, err := loadRp()
	if err != nil {
		return nil, err
	}
	vars[rpVarParams] = params
	return loadedRP("rp", spec, vars, flows, options)
}

func loadedRP(
	name string, spec *ebpf.CollectionSpec, vars map[string]any, flows *ebpf.Map, options []Option,
) (*RP, error) {
	shared := map[string]*ebpf.Map{}
	if flows != nil {
		shared[rpMapFlows] = flows
	}
	obj, err := load(name, spec, vars, shared, options...)
	if err != nil {
		return nil, err
	}
	return &RP{obj}, nil
}

// Places are where Attach attaches it.
func (r *RP) Places() []Place {
	return []Place{{rpProgRpIngress, ebpf.AttachTCXIngress, link.Tail()}}
}

// Attach puts it last at the device's ingress. On a host it then still wants Allow.
func (r *RP) Attach(h netns.NsHandle, ifindex int) error {
	return r.attachAll(h, ifindex, r.Places())
}

// Allow lets CNPs come in at a host's device from these prefixes too; without any, from everywhere.
func (r *RP) Allow(ifindex int, prefixes ...netip.Prefix) error {
	return AllowCNPs(r.coll.Maps, ifindex, prefixes...)
}

// AllowCNPs does what [RP.Allow] does, with the maps of an object over bpf/include/react.h.
func AllowCNPs(maps map[string]*ebpf.Map, ifindex int, prefixes ...netip.Prefix) error {
	if len(prefixes) == 0 {
		prefixes = []netip.Prefix{netip.MustParsePrefix("::/0")}
	}
	if err := maps[rpMapRpInterfaces].Put(uint32(ifindex), uint32(0)); err != nil {
		return fmt.Errorf("rp: allow CNPs at device %d: %w", ifindex, err)
	}
	for _, p := range prefixes {
		source, err := sourceOf(ifindex, p)
		if err != nil {
			return err
		}
		if err := maps[rpMapRpSources].Put(&source, uint32(0)); err != nil {
			return fmt.Errorf("rp: allow CNPs from %s at device %d: %w", p, ifindex, err)
		}
	}
	return changeRules(maps[rpMapRpRules])
}

// changeRules makes flows forget that their peers were allowed.
func changeRules(m *ebpf.Map) error {
	var rules uint32
	if err := m.Lookup(uint32(0), &rules); err != nil {
		return fmt.Errorf("rp: read the issue of the rules: %w", err)
	}
	if err := m.Put(uint32(0), rules+1); err != nil {
		return fmt.Errorf("rp: put the rules into force: %w", err)
	}
	return nil
}

// sourceOf is the key of rp_sources: the device is part of the prefix, and IPv4 is mapped into IPv6.
func sourceOf(ifindex int, p netip.Prefix) (rpRpSource, error) {
	if !p.IsValid() {
		return rpRpSource{}, fmt.Errorf(
			"rp: allow CNPs from prefix %q: want one such as 10.0.0.0/8 or 2001:db8::/32", p)
	}
	const ifindexBits, mappedBits = 32, 96
	s := rpRpSource{PrefixBits: uint32(ifindexBits + p.Bits()), Ifindex: uint32(ifindex)}
	if p.Addr().Is4() {
		s.PrefixBits += mappedBits
	}
	addr := p.Masked().Addr().As16()
	for i := range s.Addr {
		s.Addr[i] = binary.NativeEndian.Uint32(addr[4*i:])
	}
	return s, nil
}

// Keys are what it checks signed CNPs by, on a host.
func (r *RP) Keys() *KeyRing { return NewKeyRing(r.coll.Maps[KeysMap], r.coll.Maps[ClockMap]) }

// Counts reads what became of CNPs: struct rp_counts of bpf/include/rp_counts.h.
func (r *RP) Counts() (Counts, error) { return r.readCounts(rpCounts) }
