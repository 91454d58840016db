// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/loader"
)

// Kind is the qdisc's name in tc.
const Kind = "npecn"

// Qdisc is the port qdisc, registered with the kernel.
type Qdisc struct {
	objs        npecnObjects
	link        link.Link
	rateChanges []int // of each port
	own         ownMarker
	object      []byte    // with an own marker; nil: the built-in one
	undefined   *ebpf.Map // what the own marker counts; nil: nothing
}

// Load registers the qdisc for these ports. The error wraps loader.ErrNotSupported on a kernel
// without CONFIG_NET_SCH_BPF.
func Load(o Options) (*Qdisc, error) {
	o.QuantumNs = cmp.Or(o.QuantumNs, defaultQuantum)
	o.EventsBytes = cmp.Or(o.EventsBytes, defaultEvents)
	if err := o.check(); err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	if err := loader.HaveQdisc(); err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	spec, err := o.spec()
	if err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	own, err := findOwnMarker(spec)
	if err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	if err := own.check(o.Ports); err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	ports, slots := o.layout()
	o.sizeMaps(spec, len(ports), slots)
	cpus, err := ebpf.PossibleCPU()
	if err != nil {
		return nil, fmt.Errorf("qdisc %s: count CPUs: %w", Kind, err)
	}
	var several uint32
	if cpus > 1 {
		several = 1
	}
	for name, value := range map[string]any{
		npecnVarDilationShift: o.DilationShift,
		npecnVarEarlyNs:       o.EarlyNs,
		npecnVarSampleNs:      o.SampleNs,
		npecnVarNoiseDelays:   o.NoiseDelaysNs,
		npecnVarUses:          uint32(o.uses()),
		npecnVarSeveralCpus:   several,
	} {
		if err := spec.Variables[name].Set(value); err != nil {
			return nil, fmt.Errorf("qdisc %s: set %s: %w", Kind, name, err)
		}
	}
	q := &Qdisc{own: own, object: o.Object}
	for i := range o.Ports {
		q.rateChanges = append(q.rateChanges, o.Ports[i].RateChanges)
	}
	load := &ebpf.CollectionOptions{Cache: loader.KernelTypes()}
	if counts := spec.Maps[loader.UndefinedMap]; counts != nil {
		counts = counts.Copy()
		counts.Flags |= unix.BPF_F_MMAPABLE // as the loader makes it
		if q.undefined, err = ebpf.NewMap(counts); err != nil {
			return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
		}
		load.MapReplacements = map[string]*ebpf.Map{loader.UndefinedMap: q.undefined}
	}
	if err := spec.LoadAndAssign(&q.objs, load); err != nil {
		q.undefined.Close()
		return nil, fmt.Errorf("load qdisc %s: %w", Kind, loader.ExplainVerifier(err))
	}
	if err := q.register(&o, ports); err != nil {
		q.objs.Close()
		q.undefined.Close()
		return nil, err
	}
	return q, nil
}

// sizeMaps makes the maps as large as so many ports with so many slots need.
func (o *Options) sizeMaps(spec *ebpf.CollectionSpec, ports int, slots uint32) {
	spec.Maps[npecnMapPorts].MaxEntries = uint32(ports)
	spec.Maps[npecnMapNodes].MaxEntries = uint32(len(o.Nodes))
	spec.Maps[npecnMapSlots].MaxEntries = slots
	spec.Maps[npecnMapLinkRings].MaxEntries = uint32(ports * Classes)
	if o.uses()&npecnUseUSE_WATCHDOG != 0 {
		spec.Maps[npecnMapGuards].MaxEntries = uint32(ports * Classes)
	}
	spec.Maps[npecnMapRateChanges].MaxEntries = uint32(ports * rateChangesMax)
	spec.Maps[npecnMapOpportunities].MaxEntries = max(1, uint32(len(o.traces())))
	spec.Maps[npecnMapEvents].MaxEntries = o.EventsBytes
	spec.Maps[npecnMapHostArrivals].MaxEntries = uint32(ports)
	spec.Maps[npecnMapDataSent].MaxEntries = max(o.Flows, 1)
}

// traces returns the moments of all links' traces.
func (o *Options) traces() []uint32 {
	var all []uint32
	for i := range o.Ports {
		all = append(all, o.Ports[i].Link.Trace...)
	}
	return all
}

func (q *Qdisc) register(o *Options, ports []npecnPort) error {
	for id := range ports {
		value := q.own.portValue(&ports[id], o.Ports[id].OwnMarkerParams)
		if err := q.objs.Ports.Put(uint32(id), value); err != nil {
			return fmt.Errorf("configure port %d: %w", id, err)
		}
		for c, k := range o.Ports[id].Classes {
			if k.Pauses == 0 {
				continue
			}
			if err := q.putPauses(uint32(id), c, unknownPauses(k.Pauses)); err != nil {
				return fmt.Errorf("configure port %d: %w", id, err)
			}
		}
	}
	for i, ms := range o.traces() {
		if err := q.objs.Opportunities.Put(uint32(i), ms); err != nil {
			return fmt.Errorf("tell moment %d of the links' traces: %w", i, err)
		}
	}
	for i, n := range o.Nodes {
		if err := q.objs.Nodes.Put(uint32(i), &npecnNode{BufferBytes: n.BufferBytes}); err != nil {
			return fmt.Errorf("configure node %d: %w", i, err)
		}
	}
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: q.objs.Npecn})
	if errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("register qdisc %s: another program has registered it; "+
			"end that one first: %w", Kind, err)
	}
	if err != nil {
		return fmt.Errorf("register qdisc %s: %w", Kind, err)
	}
	q.link = l
	return nil
}

// Close takes the qdisc's name from the kernel. Ports that have it keep it until their device or
// qdisc goes.
func (q *Qdisc) Close() error {
	err := errors.Join(q.link.Close(), q.objs.Close(), q.undefined.Close())
	if err != nil {
		return fmt.Errorf("unregister qdisc %s: %w", Kind, err)
	}
	return nil
}

// Undefined describes what an own marker did so far that C leaves undefined.
func (q *Qdisc) Undefined() ([]string, error) {
	return loader.Undefined(q.undefined, func(at uint64) string {
		return scheme.FileAt(bytes.NewReader(q.object), at)
	})
}

// port reads a port: its configuration, state and counters.
func (q *Qdisc) port(id uint32) (*npecnPort, error) {
	value := make([]byte, q.objs.Ports.ValueSize())
	if err := q.objs.Ports.Lookup(id, value); err != nil {
		return nil, fmt.Errorf("read port %d: %w", id, err)
	}
	return view[npecnPort](value), nil // what an own marker adds is behind it
}

// view returns the T that b begins with, in place. T has no pointers, and b is not shorter.
func view[T any](b []byte) *T { return (*T)(unsafe.Pointer(unsafe.SliceData(b))) }

// Events returns the ring buffer of events and samples, for an EventReader and for tc.LoadArrive.
func (q *Qdisc) Events() *ebpf.Map { return q.objs.Events }

// HostArrivals returns the map of what came to each host last, for tc.LoadArrive.
func (q *Qdisc) HostArrivals() *ebpf.Map { return q.objs.HostArrivals }

// WatchHosts measures how late hosts' TCP is from a time on, which is not 0: Stats.LateACKs and
// LateData, and FlowStart events.
func (q *Qdisc) WatchHosts(fromNs uint64) error {
	if err := q.objs.WatchFromNs.Set(fromNs); err != nil {
		return fmt.Errorf("watch hosts: %w", err)
	}
	return nil
}

// BeginTraces has the links' traces begin at a time.
func (q *Qdisc) BeginTraces(fromNs uint64) error {
	if err := q.objs.TraceFromNs.Set(fromNs); err != nil {
		return fmt.Errorf("begin the links' traces: %w", err)
	}
	return nil
}

// ChangeRates tells a port its rates to come, in order of time, as many as its Port.RateChanges
// said.
func (q *Qdisc) ChangeRates(id uint32, changes []RateChange) error {
	if err := q.checkRates(id, changes); err != nil {
		return fmt.Errorf("change rate of port %d: %w", id, err)
	}
	for i, c := range changes {
		key := id*uint32(rateChangesMax) + uint32(i)
		value := npecnRateChange{AtNs: c.AtNs, RateBps: c.RateBps}
		if err := q.objs.RateChanges.Put(key, &value); err != nil {
			return fmt.Errorf("change rate of port %d: %w", id, err)
		}
	}
	return nil
}

func (q *Qdisc) checkRates(id uint32, changes []RateChange) error {
	if int(id) >= len(q.rateChanges) {
		return fmt.Errorf("there are %d ports", len(q.rateChanges))
	}
	if len(changes) != q.rateChanges[id] {
		return fmt.Errorf("%d changes: it was configured for %d", len(changes), q.rateChanges[id])
	}
	for i, c := range changes {
		if c.AtNs == 0 {
			return fmt.Errorf("at %d ns to %d bit/s: want a time above 0", c.AtNs, c.RateBps)
		}
		if i > 0 && c.AtNs < changes[i-1].AtNs {
			return fmt.Errorf("at %d ns, after one at %d ns: want them in order", c.AtNs,
				changes[i-1].AtNs)
		}
	}
	return nil
}

// Attach makes it the root qdisc of a device, in place of what is there. The device's group must be
// a port's id, and a port has one device. The handle is of the device's network namespace.
func Attach(h *netlink.Handle, ifindex int) error {
	q := portQdisc(ifindex)
	err := h.QdiscAdd(q)
	if errors.Is(err, unix.EEXIST) {
		// not QdiscReplace: it leaves a qdisc of the same name as it is, also if that is an earlier
		// Load's
		if err = h.QdiscDel(q); err == nil {
			err = h.QdiscAdd(q)
		}
	}
	if err != nil {
		return fmt.Errorf("make %s the root qdisc of device %d "+
			"(is its group a configured port, and no other device's?): %w", Kind, ifindex, err)
	}
	return nil
}

func portQdisc(ifindex int) *netlink.GenericQdisc {
	return &netlink.GenericQdisc{
		QdiscAttrs: netlink.QdiscAttrs{LinkIndex: ifindex, Parent: netlink.HANDLE_ROOT},
		QdiscType:  Kind,
	}
}
