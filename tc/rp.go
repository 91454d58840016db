// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"cmp"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

// RP is a reaction point: it receives CNPs or CNMs for a control's flows. It is part of the
// control's object, which includes bpf/include/react.h, or react_cnm.h for QCN.
type RP struct {
	object
	source *btf.Struct // key of rpSources; nil if it hears CNMs
}

// Names in objects that include bpf/include/react.h.
const (
	rpIngress    = scheme.ReactionPoint
	rpFlows      = "flows"
	rpSources    = "rp_sources"
	rpRules      = "rp_rules"
	rpInterfaces = "rp_interfaces"
)

// LoadRP loads the reaction point of the control's flows for a lab. There it handles plain IPv4
// only, and obeys CNPs of any source. Packets carry their ideal arrival time.
func LoadRP(control *loader.Control, options ...Option) (*RP, error) {
	return rpOf(control, map[string]any{"ideal_time": true}, options)
}

// rpOf loads the reaction point of a control's object.
func rpOf(control *loader.Control, vars map[string]any, options []Option) (*RP, error) {
	if control.Hears() == scheme.None {
		return nil, fmt.Errorf("rp: congestion control %s has no reaction point", control.Name())
	}
	spec, err := control.Scheme().Object.Spec()
	if err != nil {
		return nil, err
	}
	if spec.Programs[rpIngress] == nil {
		return nil,
			fmt.Errorf("rp: the object of congestion control %s has no program %s, but its "+
				"scheme hears %s: "+
				"include react.h or react_cnm.h", control.Name(), rpIngress, control.Hears())
	}
	if err := loader.SetVariables(spec, control.Variables()); err != nil {
		return nil, fmt.Errorf("rp of %s: %w", control.Name(), err)
	}
	return loadedRP("rp of "+control.Name(), spec, vars, control.Shared(), options)
}

// HostRPOptions restricts which CNPs the reaction point of a real host obeys. docs/security.md says
// which attack each option stops.
type HostRPOptions struct {
	// RequireTag drops CNPs that no key of the ring signed, and replayed ones.
	RequireTag bool

	// Window is the largest difference between a signed CNP's time and this host's wall clock; 0
	// means DefaultWindow.
	Window time.Duration

	// CNPInterval is the shortest mean time between two CNPs of a flow; 0 allows any. NP sends one
	// each T.
	CNPInterval time.Duration

	// CNPBurst is how many CNPs may come at once; 0 means DefaultCNPBurst.
	CNPBurst int

	// FloorBps is the lowest rate to which CNPs can slow a flow; 0 means the control's own floor.
	FloorBps uint64
}

// Defaults of HostRPOptions.
const (
	DefaultWindow   = 500 * time.Millisecond
	DefaultCNPBurst = 8
)

// maxWindow is short enough that a stamp is never confused with the same one after a wrap, 4.9
// hours later.
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

// Variables returns the values of bpf/include/react.h's variables for a real host. It fails if an
// option is out of range.
func (o HostRPOptions) Variables() (map[string]any, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	o.Window = cmp.Or(o.Window, DefaultWindow)
	o.CNPBurst = cmp.Or(o.CNPBurst, DefaultCNPBurst)
	return map[string]any{
		"on_host":         true,
		"floor_bps":       o.FloorBps,
		"require_tag":     o.RequireTag,
		"window_stamps":   uint32(o.Window / cnp.StampUnitNs),
		"cnp_interval_ns": uint64(o.CNPInterval),
		"cnp_burst_ns":    uint64(o.CNPInterval) * uint64(o.CNPBurst-1),
	}, nil
}

// LoadHostRP loads the reaction point of the control's flows for a real host. It obeys no CNP
// before Allow.
func LoadHostRP(control *loader.Control, o HostRPOptions, options ...Option) (*RP, error) {
	vars, err := o.Variables()
	if err != nil {
		return nil, err
	}
	return rpOf(control, vars, options)
}

func loadedRP(
	name string, spec *ebpf.CollectionSpec, vars map[string]any, shared map[string]*ebpf.Map,
	options []Option,
) (*RP, error) {
	keepProgram(spec, rpIngress)
	var source *btf.Struct // the kernel would tell it to CAP_SYS_ADMIN only
	if m := spec.Maps[rpSources]; m != nil {
		var ok bool
		if source, ok = btf.As[*btf.Struct](m.Key); !ok {
			return nil, fmt.Errorf("%s: the keys of its map %s are not a struct", name, rpSources)
		}
	}
	maps.DeleteFunc(shared, func(name string, _ *ebpf.Map) bool { return spec.Maps[name] == nil })
	obj, err := load(name, spec, vars, shared, options...)
	if err != nil {
		return nil, err
	}
	return &RP{obj, source}, nil
}

// Places returns where Attach attaches the program.
func (r *RP) Places() []Place {
	return []Place{{rpIngress, ebpf.AttachTCXIngress, link.Tail()}}
}

// Attach attaches it last at the device's ingress. On a host call Allow next.
func (r *RP) Attach(h netns.NsHandle, ifindex int) error {
	return r.attachAll(h, ifindex, r.Places())
}

// Allow also accepts CNPs from these prefixes at a host's device; without prefixes, from
// everywhere.
func (r *RP) Allow(ifindex int, prefixes ...netip.Prefix) error {
	if len(prefixes) == 0 {
		prefixes = []netip.Prefix{netip.MustParsePrefix("::/0")}
	}
	maps := r.coll.Maps
	if err := maps[rpInterfaces].Put(uint32(ifindex), uint32(0)); err != nil {
		return fmt.Errorf("rp: allow CNPs at device %d: %w", ifindex, err)
	}
	for _, p := range prefixes {
		source, err := r.sourceOf(ifindex, p)
		if err != nil {
			return err
		}
		err = maps[rpSources].Put(source, uint32(0))
		if errors.Is(err, unix.ENOSPC) {
			return fmt.Errorf("rp: allow CNPs from %s at device %d: there is room for %d "+
				"prefixes, of all devices together: write fewer, larger ones: %w", p, ifindex,
				maps[rpSources].MaxEntries(), err)
		}
		if err != nil {
			return fmt.Errorf("rp: allow CNPs from %s at device %d: %w", p, ifindex, err)
		}
	}
	return changeRules(maps[rpRules])
}

// changeRules makes flows check again whether their peers are allowed.
func changeRules(m *ebpf.Map) error {
	var rules uint32
	if err := m.Lookup(uint32(0), &rules); err != nil {
		return fmt.Errorf("rp: read the version of the rules: %w", err)
	}
	if err := m.Put(uint32(0), rules+1); err != nil {
		return fmt.Errorf("rp: put the rules into force: %w", err)
	}
	return nil
}

// sourceOf returns the key in rp_sources: the device is part of the prefix, and IPv4 is mapped into
// IPv6.
func (r *RP) sourceOf(ifindex int, p netip.Prefix) ([]byte, error) {
	if !p.IsValid() {
		return nil, fmt.Errorf(
			"rp: allow CNPs from prefix %q: want one such as 10.0.0.0/8 or 2001:db8::/32", p)
	}
	if r.source == nil {
		return nil, fmt.Errorf("rp: allow CNPs from %s: this reaction point hears none", p)
	}
	const ifindexBits, mappedBits = 32, 96
	bits := uint32(ifindexBits + p.Bits())
	if p.Addr().Is4() {
		bits += mappedBits
	}
	addr := p.Masked().Addr().As16()
	key := make([]byte, r.source.Size)
	for _, m := range r.source.Members {
		at := key[m.Offset.Bytes():]
		switch m.Name {
		case "prefix_bits":
			binary.NativeEndian.PutUint32(at, bits)
		case "ifindex":
			binary.NativeEndian.PutUint32(at, uint32(ifindex))
		case "addr": // network byte order
			copy(at, addr[:])
		}
	}
	return key, nil
}

// Keys returns the keys with which it checks signed CNPs, on a host.
func (r *RP) Keys() *KeyRing { return NewKeyRing(r.coll.Maps[KeysMap], r.coll.Maps[ClockMap]) }

// Counts reads the CNPs by outcome: struct rp_counts of bpf/include/rp_counts.h.
func (r *RP) Counts() (Counts, error) { return r.readCounts(rpCounts) }
