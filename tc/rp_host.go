// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"fmt"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/loader"
)

// HostRPOptions say which CNPs the reaction point of a real host obeys. docs/security.md says what each option stops.
type HostRPOptions struct {
	// RequireTag refuses CNPs that no key of the ring signed, and replayed ones.
	RequireTag bool

	// Window is how far a signed CNP's time may be from this host's wall clock; 0: DefaultWindow.
	Window time.Duration

	// CNPInterval is the shortest time between two CNPs of a flow, in the long run; 0: any. NP sends one each T.
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

// maxWindow is what a stamp can tell from its next turn.
const maxWindow = time.Hour

func (o HostRPOptions) check() error {
	if o.Window < 0 || o.Window > maxWindow {
		return fmt.Errorf("window %v: want 0 to %v", o.Window, maxWindow)
	}
	if o.CNPInterval < 0 || o.CNPInterval > time.Hour {
		return fmt.Errorf("CNP interval %v: want 0 to 1h", o.CNPInterval)
	}
	if o.CNPBurst < 0 || o.CNPBurst > 1_000_000 {
		return fmt.Errorf("burst of %d CNPs: want 0 to 1000000", o.CNPBurst)
	}
	return nil
}

// HostRP is PCN's reaction point on a real host (tc/bpf/rp_host.bpf.c).
type HostRP struct{ object }

// HostRPCounts are the CNPs received, by what became of them.
type HostRPCounts struct {
	Decrease uint64 `json:"decrease"` // obeyed
	Increase uint64 `json:"increase"`
	UDP      uint64 `json:"udp"` // of flows of UDP: they went to the stack, for the application

	Malformed   uint64 `json:"malformed"`    // ours by the header, but not in length or fixed fields
	Interface   uint64 `json:"interface"`    // on an interface where none are expected
	Prefix      uint64 `json:"prefix"`       // from an address where none are expected
	NoFlow      uint64 `json:"no_flow"`      // no live flow of this host with that peer
	BadICRC     uint64 `json:"bad_icrc"`     // damaged; signed CNPs are checked by their tag instead
	Unsigned    uint64 `json:"unsigned"`     // without a tag, where one is required
	NoKey       uint64 `json:"no_key"`       // signed with a key that this host does not have
	BadTag      uint64 `json:"bad_tag"`      // not signed with the key that it says
	Stale       uint64 `json:"stale"`        // signed outside the window
	Replayed    uint64 `json:"replayed"`     // signed no later than one of the flow that came before
	RateLimited uint64 `json:"rate_limited"` // more than the flow's limit
}

// Rejected are the CNPs that were not obeyed, by cause: the JSON names.
func (c HostRPCounts) Rejected() map[string]uint64 {
	return map[string]uint64{
		"malformed": c.Malformed, "interface": c.Interface, "prefix": c.Prefix, "no_flow": c.NoFlow,
		"bad_icrc": c.BadICRC, "unsigned": c.Unsigned, "no_key": c.NoKey, "bad_tag": c.BadTag,
		"stale": c.Stale, "replayed": c.Replayed, "rate_limited": c.RateLimited,
	}
}

// LoadHostRP loads the reaction point of the flows of congestion control "pcn". It obeys no CNP until Allow or Attach.
func LoadHostRP(control *loader.Control, o HostRPOptions, opts ...Option) (*HostRP, error) {
	if control.Name() != "pcn" || control.FlowTable() == nil { // or another process's of that name
		return nil, fmt.Errorf("rp: congestion control %s has no reaction point for hosts: want pcn", control.Name())
	}
	return loadHostRP(control.Params(), o, map[string]*ebpf.Map{rphostMapFlows: control.FlowTable()}, opts...)
}

// loadHostRP loads it with a flow table that is shared, or one of its own.
func loadHostRP(params any, o HostRPOptions, shared map[string]*ebpf.Map, opts ...Option) (*HostRP, error) {
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("rp: %w", err)
	}
	if o.Window == 0 {
		o.Window = DefaultWindow
	}
	if o.CNPBurst == 0 {
		o.CNPBurst = DefaultCNPBurst
	}
	spec, err := loadRphost()
	if err != nil {
		return nil, err
	}
	obj, err := load("rp_host", spec, map[string]any{
		rphostVarParams:        params,
		rphostVarFloorBps:      o.FloorBps,
		rphostVarRequireTag:    o.RequireTag,
		rphostVarWindowStamps:  uint32(o.Window / cnp.StampUnitNs),
		rphostVarCnpIntervalNs: uint64(o.CNPInterval),
		rphostVarCnpBurstNs:    uint64(o.CNPInterval) * uint64(o.CNPBurst-1),
		rphostVarCrc32Slice:    crcSlices(),
	}, shared, opts...)
	if err != nil {
		return nil, err
	}
	return &HostRP{obj}, nil
}

// Places are where Attach attaches it.
func (r *HostRP) Places() []Place {
	return []Place{{rphostProgRpIngress, ebpf.AttachTCXIngress, link.Tail()}}
}

// Attach puts it last at the device's ingress, and allows CNPs there from these prefixes; without any, from everywhere.
func (r *HostRP) Attach(h netns.NsHandle, ifindex int, prefixes ...netip.Prefix) error {
	if err := r.Allow(ifindex, prefixes...); err != nil {
		return err
	}
	return r.attachAll(h, ifindex, r.Places())
}

// Allow lets CNPs come in at the device from these prefixes too; without any, from everywhere.
func (r *HostRP) Allow(ifindex int, prefixes ...netip.Prefix) error {
	if len(prefixes) == 0 {
		prefixes = []netip.Prefix{netip.MustParsePrefix("::/0")}
	}
	if err := r.coll.Maps[rphostMapRpInterfaces].Put(uint32(ifindex), uint32(0)); err != nil {
		return fmt.Errorf("rp: allow CNPs at device %d: %w", ifindex, err)
	}
	for _, p := range prefixes {
		source, err := sourceOf(ifindex, p)
		if err != nil {
			return err
		}
		if err := r.coll.Maps[rphostMapRpSources].Put(&source, uint32(0)); err != nil {
			return fmt.Errorf("rp: allow CNPs from %s at device %d: %w", p, ifindex, err)
		}
	}
	return r.changeRules()
}

// changeRules makes flows forget that their peers were allowed.
func (r *HostRP) changeRules() error {
	var rules uint32
	m := r.coll.Maps[rphostMapRpRules]
	if err := m.Lookup(uint32(0), &rules); err != nil {
		return fmt.Errorf("rp: read the issue of the rules: %w", err)
	}
	if err := m.Put(uint32(0), rules+1); err != nil {
		return fmt.Errorf("rp: put the rules into force: %w", err)
	}
	return nil
}

// Disallow takes back what Allow gave, of these prefixes.
func (r *HostRP) Disallow(ifindex int, prefixes ...netip.Prefix) error {
	for _, p := range prefixes {
		source, err := sourceOf(ifindex, p)
		if err != nil {
			return err
		}
		if err := r.coll.Maps[rphostMapRpSources].Delete(&source); err != nil {
			return fmt.Errorf("rp: no longer allow CNPs from %s at device %d: %w", p, ifindex, err)
		}
	}
	return r.changeRules()
}

// sourceOf is the key of rp_sources: the device is part of the prefix, and IPv4 is mapped into IPv6.
func sourceOf(ifindex int, p netip.Prefix) (rphostSource, error) {
	if !p.IsValid() {
		return rphostSource{}, fmt.Errorf("rp: allow CNPs from prefix %q: want one such as 10.0.0.0/8 or 2001:db8::/32", p)
	}
	const ifindexBits, mappedBits = 32, 96
	s := rphostSource{PrefixBits: uint32(ifindexBits + p.Bits()), Ifindex: uint32(ifindex)}
	if p.Addr().Is4() {
		s.PrefixBits += mappedBits
	}
	addr := p.Masked().Addr().As16()
	for i := range s.Addr {
		s.Addr[i] = nativeWord(addr[4*i:])
	}
	return s, nil
}

// Keys are what it checks signed CNPs by.
func (r *HostRP) Keys() *KeyRing { return NewKeyRing(r.coll.Maps[KeysMap], r.coll.Maps[ClockMap]) }

// Counts reads the CNPs received.
func (r *HostRP) Counts() (HostRPCounts, error) {
	var c HostRPCounts
	for i, to := range []*uint64{
		&c.Decrease, &c.Increase, &c.UDP, &c.Malformed, &c.NoFlow, &c.Interface, &c.Prefix, &c.BadICRC,
		&c.Unsigned, &c.NoKey, &c.BadTag, &c.Stale, &c.Replayed, &c.RateLimited,
	} {
		v, err := r.sum(rphostMapRpCounts, uint32(i))
		if err != nil {
			return HostRPCounts{}, err
		}
		*to = v
	}
	return c, nil
}
