// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Option changes how programs are loaded.
type Option func(*options)

type options struct{ reuse map[string]*ebpf.Map }

// Reuse gives the programs maps of an earlier load, by their names, so that they go on where those
// stopped. Maps of another layout or size, and those that only hold variables, are not used.
func Reuse(maps map[string]*ebpf.Map) Option {
	return func(o *options) { o.reuse = maps }
}

// reused are the maps that are there already and fit.
func (o options) reused(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	fit := map[string]*ebpf.Map{}
	for name, m := range o.reuse {
		if s := spec.Maps[name]; s != nil && name[0] != '.' && s.Compatible(m) == nil {
			fit[name] = m
		}
	}
	return fit
}

// Place is where a device has one of an object's programs.
type Place struct {
	Program string
	Where   ebpf.AttachType
	Anchor  link.Anchor // among the others there
}

// Object are loaded programs, for who attaches and pins them itself.
type Object interface {
	Close() error
	Places() []Place
	Programs() map[string]*ebpf.Program
	Maps() map[string]*ebpf.Map
	Fingerprint() string
}

var _ = []Object{
	(*Stamp)(nil), (*FirstRTT)(nil), (*NP)(nil), (*RP)(nil), (*PlainSYN)(nil), (*WRED)(nil),
}

// Places are where Attach attaches it.
func (s *Stamp) Places() []Place { return []Place{{"stamp", ebpf.AttachTCXEgress, link.Tail()}} }

// Places are where Attach attaches it: before WRED, which goes by what it writes.
func (f *FirstRTT) Places() []Place {
	return []Place{{"first_rtt", ebpf.AttachTCXEgress, link.Head()}}
}

// Places are where Attach attaches it: before WRED, which goes by what it writes.
func (s *PlainSYN) Places() []Place {
	return []Place{{"syn", ebpf.AttachTCXEgress, link.Head()}}
}

// Places are where Attach attaches it.
func (w *WRED) Places() []Place { return []Place{{"wred", ebpf.AttachTCXEgress, link.Tail()}} }

// Programs are the object's by their names.
func (o *object) Programs() map[string]*ebpf.Program { return o.coll.Programs }

// Maps are the object's by their names.
func (o *object) Maps() map[string]*ebpf.Map { return o.coll.Maps }

// Fingerprint changes with the programs and their parameters.
func (o *object) Fingerprint() string { return o.fingerprint }
