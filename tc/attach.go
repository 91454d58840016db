// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netns"

	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/loader/ns"
)

// object is a loaded object file with its attachments.
type object struct {
	name  string
	coll  *ebpf.Collection
	mu    *sync.Mutex // guards links: ports are attached in parallel
	links []io.Closer // each keeps a program attached
	gone  int         // number of links, from the first, whose device is gone

	fingerprint func() string
	types       func() ([]byte, error)
}

// load loads an object with these values of its variables. Maps of the given names are shared.
func load(
	name string, spec *ebpf.CollectionSpec, vars map[string]any, shared map[string]*ebpf.Map,
	opts ...Option,
) (object, error) {
	var o options
	for _, option := range opts {
		option(&o)
	}
	for v, value := range vars {
		if err := spec.Variables[v].Set(value); err != nil {
			return object{}, fmt.Errorf("tc program %s: set %s: %w", name, v, err)
		}
	}
	fresh := *spec
	fresh.Maps = maps.Clone(spec.Maps)
	// slow, and no lab asks for it
	fingerprint := sync.OnceValue(func() string { return loader.Fingerprint(&fresh) })
	types := sync.OnceValues(func() ([]byte, error) { return loader.MarshalTypes(&fresh) })
	replace := o.reused(spec)
	for m, replacement := range shared {
		replace[m] = replacement
		spec.Maps[m] = spec.Maps[m].Copy()
		spec.Maps[m].MaxEntries = replacement.MaxEntries()
	}
	coll, err := ebpf.NewCollectionWithOptions(spec,
		ebpf.CollectionOptions{MapReplacements: replace, Cache: loader.KernelTypes()})
	if err != nil {
		if reason := loader.HavePermission(); reason != nil {
			err = reason
		} else if usesKernelContext(spec) && loader.HaveKernelContext() != nil {
			err = loader.HaveKernelContext()
		}
		return object{}, fmt.Errorf("load tc program %s: %w", name, loader.ExplainVerifier(err))
	}
	return object{name: name, coll: coll, mu: &sync.Mutex{}, fingerprint: fingerprint,
		types: types}, nil
}

// usesKernelContext reports whether a program of the object calls bpf_cast_to_kern_ctx.
func usesKernelContext(spec *ebpf.CollectionSpec) bool {
	for _, p := range spec.Programs {
		for _, ins := range p.Instructions {
			if ins.IsKfuncCall() && ins.Reference() == "bpf_cast_to_kern_ctx" {
				return true
			}
		}
	}
	return false
}

// attach attaches one of the object's programs to a device of the namespace, at the anchor.
func (o *object) attach(
	h netns.NsHandle, ifindex int, program string, where ebpf.AttachType, anchor link.Anchor,
) error {
	return ns.Do(h, func() error {
		l, err := attachProgram(ifindex, o.coll.Programs[program], program, where, anchor)
		if err != nil {
			return fmt.Errorf("attach tc program %s to device %d: %w", program, ifindex, err)
		}
		o.mu.Lock()
		defer o.mu.Unlock()
		o.links = append(o.links, l)
		return nil
	})
}

// attachProgram attaches through tcx, or through clsact on kernels without tcx. Both respect the
// anchor.
func attachProgram(
	ifindex int, program *ebpf.Program, name string, where ebpf.AttachType, anchor link.Anchor,
) (io.Closer, error) {
	l, err := link.AttachTCX(link.TCXOptions{
		Interface: ifindex, Program: program, Attach: where, Anchor: anchor,
	})
	if err == nil {
		return l, nil
	}
	if loader.HaveTCX() == nil {
		return nil, err
	}
	return attachClsact(ifindex, program, name, where, anchor)
}

// attachAll attaches the programs at these places.
func (o *object) attachAll(h netns.NsHandle, ifindex int, places []Place) error {
	for _, p := range places {
		if err := o.attach(h, ifindex, p.Program, p.Where, p.Anchor); err != nil {
			return err
		}
	}
	return nil
}

// Orphaned reports whether all devices are gone to which its programs were attached through tcx.
func (o *object) Orphaned() (bool, error) {
	for ; o.gone < len(o.links); o.gone++ {
		l, ok := o.links[o.gone].(link.Link)
		if !ok {
			continue
		}
		info, err := l.Info()
		if err != nil {
			return false, fmt.Errorf("look for the device of tc program %s: %w", o.name, err)
		}
		if tcx := info.TCX(); tcx != nil && tcx.Ifindex != 0 {
			return false, nil
		}
	}
	return true, nil
}

// Close detaches the programs and frees them.
func (o *object) Close() error {
	var errs []error
	for _, l := range o.links {
		errs = append(errs, l.Close())
	}
	o.coll.Close()
	return errors.Join(errs...)
}

// cnmEgress is the program that sends CNMs, in objects that answer QCN's samples
// (bpf/include/reflect.h).
const cnmEgress = "cnm_egress"

// attachCNMs attaches the sender of CNMs first at a device's egress, if there will be any.
func (o *object) attachCNMs(h netns.NsHandle, ifindex int, unsampled bool) error {
	if unsampled {
		return nil
	}
	return o.attach(h, ifindex, cnmEgress, ebpf.AttachTCXEgress, link.Head())
}

// CNMCounts counts the CNMs that a program sent, or failed to send, for samples of QCN.
type CNMCounts struct{ Sent, Lost uint64 }

// CNMs reads the CNM counters of a Fabric or an Arrive.
func (o *object) CNMs() (CNMCounts, error) {
	c, err := o.readCounts(cnmCounts)
	return CNMCounts{Sent: c["sent"], Lost: c["lost"]}, err
}
