// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"errors"
	"fmt"
	"os"
	"unsafe"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/cilium/ebpf/link"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
)

// SinglePort is the id of a [Single]'s port: the group of its device.
const SinglePort = 1

// The classes of a [Single]'s port. Control goes first and is never marked.
const (
	SingleControl = 6
	SingleData    = 0
)

// SingleOptions configure a [Single].
type SingleOptions struct {
	// Kind is the qdisc's name in tc: letters, digits and '_', at most 15, one for each Single of
	// the machine.
	Kind    string
	RateBps uint64
	// BufferBytes is the longest queue, of both classes: what does not fit is dropped.
	BufferBytes uint64
}

func (o *SingleOptions) check() error {
	switch {
	case o.Kind == "" || len(o.Kind) > 15:
		return fmt.Errorf("kind %q: want 1 to 15 characters", o.Kind)
	case o.RateBps == 0:
		return errors.New("rate is 0: want more")
	case o.BufferBytes < fullFrame:
		return fmt.Errorf("buffer of %d bytes: want at least a frame, %d bytes", o.BufferBytes,
			fullFrame)
	}
	return nil
}

// ports returns the port: it serialises at its rate, without delay and without PFC, and marks data
// by NP-ECN.
func (o *SingleOptions) ports() Options {
	const leastFrame = 60
	slots := uint32(min(max(o.BufferBytes/leastFrame, 2), uint64(ringMax)))
	p := Port{
		Name: o.Kind, RateBps: o.RateBps, Peer: 0, Marker: NPECN, Seed: 1, WireSlots: 1024,
	}
	p.Classes[SingleData] = Class{Slots: slots, Marked: true}
	p.Classes[SingleControl] = Class{Slots: slots}
	return Options{
		Ports: []Port{{}, p}, Nodes: []Node{{BufferBytes: o.BufferBytes}},
		QuantumNs: defaultQuantum, EventsBytes: uint32(os.Getpagesize()),
	}
}

// Single is the qdisc with one port, in real time, under a kind of its own: a switch port of a real
// host. It is loaded, and not yet registered.
type Single struct {
	coll *ebpf.Collection
	kind string
}

// LoadSingle loads the qdisc. The error wraps loader.ErrNotSupported on a kernel without
// CONFIG_NET_SCH_BPF.
func LoadSingle(o SingleOptions) (*Single, error) {
	s, err := loadSingle(o)
	if err != nil {
		return nil, fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	return s, nil
}

func loadSingle(o SingleOptions) (*Single, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	all := o.ports()
	if err := all.check(); err != nil {
		return nil, err
	}
	if err := loader.HaveQdisc(); err != nil {
		return nil, err
	}
	spec, err := loadNpecn()
	if err != nil {
		return nil, err
	}
	ports, slots := all.layout()
	all.sizeMaps(spec, len(ports), slots)
	s := &Single{kind: o.Kind}
	if err := setKind(spec.Maps[Kind], o.Kind); err != nil {
		return nil, err
	}
	s.coll, err = ebpf.NewCollectionWithOptions(spec,
		ebpf.CollectionOptions{Cache: loader.KernelTypes()})
	if err != nil {
		return nil, loader.ExplainVerifier(err)
	}
	if err := s.configure(ports, all.Nodes); err != nil {
		s.coll.Close()
		return nil, err
	}
	return s, nil
}

// setKind gives the qdisc another name than "npecn".
func setKind(operations *ebpf.MapSpec, kind string) error {
	of, ok := btf.As[*btf.Struct](operations.Value)
	data, isBytes := operations.Contents[0].Value.([]byte)
	if !ok || !isBytes {
		return errors.New("the object's struct Qdisc_ops can't be read")
	}
	for _, m := range of.Members {
		if m.Name == "id" {
			id := data[m.Offset.Bytes():][:16]
			clear(id)
			copy(id, kind)
			return nil
		}
	}
	return errors.New("the object's struct Qdisc_ops has no id")
}

func (s *Single) configure(ports []npecnPort, nodes []Node) error {
	for id := range ports {
		if err := s.coll.Maps[npecnMapPorts].Put(uint32(id), &ports[id]); err != nil {
			return fmt.Errorf("configure port %d: %w", id, err)
		}
	}
	for i, n := range nodes {
		value := npecnNode{BufferBytes: n.BufferBytes}
		if err := s.coll.Maps[npecnMapNodes].Put(uint32(i), &value); err != nil {
			return fmt.Errorf("configure node %d: %w", i, err)
		}
	}
	return nil
}

// Kind returns the qdisc's name in tc.
func (s *Single) Kind() string { return s.kind }

// SingleFingerprint returns a hash of a Single's programs. It depends on no option.
func SingleFingerprint() (string, error) {
	spec, err := loadNpecn()
	if err != nil {
		return "", fmt.Errorf("qdisc %s: %w", Kind, err)
	}
	return loader.Fingerprint(spec), nil
}

// Maps returns the map of the port, for [ReadSingle].
func (s *Single) Maps() map[string]*ebpf.Map {
	return map[string]*ebpf.Map{npecnMapPorts: s.coll.Maps[npecnMapPorts]}
}

// Register makes the qdisc's kind known to the kernel until the link is closed and unpinned.
// Devices that have the qdisc then keep it.
func (s *Single) Register() (link.Link, error) {
	l, err := link.AttachStructOps(link.StructOpsOptions{Map: s.coll.Maps[Kind]})
	if errors.Is(err, unix.EEXIST) {
		return nil, fmt.Errorf("register qdisc %s: another program has registered it: %w", s.kind,
			err)
	}
	if err != nil {
		return nil, fmt.Errorf("register qdisc %s: %w", s.kind, err)
	}
	return l, nil
}

// Close frees what is neither registered nor pinned.
func (s *Single) Close() error {
	s.coll.Close()
	return nil
}

// SingleStats are the counters of a [Single]'s port.
type SingleStats struct {
	SentPackets, DroppedPackets uint64
	QueueMaxBytes               uint64
}

// ReadSingle reads the counters from a Single's map of ports, such as a pinned one. It fails for a
// map of another version.
func ReadSingle(ports *ebpf.Map) (SingleStats, error) {
	value, err := ports.LookupBytes(uint32(SinglePort))
	if err != nil {
		return SingleStats{}, fmt.Errorf("read port: %w", err)
	}
	const want = int(unsafe.Sizeof(npecnPort{}))
	if len(value) != want {
		return SingleStats{}, fmt.Errorf("read port: %d bytes, of another version: want %d",
			len(value), want)
	}
	p := view[npecnPort](value)
	s := SingleStats{QueueMaxBytes: p.Counters.QueueMaxBytes}
	for _, n := range p.Counters.Dropped {
		s.DroppedPackets += n
	}
	for c := range p.Classes {
		s.SentPackets += p.Classes[c].Counters.SentPackets
	}
	return s, nil
}
