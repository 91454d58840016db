// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"maps"
	"slices"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/link"
)

// Option changes how programs are loaded.
type Option func(*options)

type options struct{ reuse map[string]*ebpf.Map }

// Reuse gives the programs maps of an earlier load, by their names, so that they keep its state. It
// ignores maps of another layout or size and maps that only hold variables.
func Reuse(old map[string]*ebpf.Map) Option {
	return func(o *options) { o.reuse = old }
}

// reused returns the given maps that fit the object.
func (o options) reused(spec *ebpf.CollectionSpec) map[string]*ebpf.Map {
	fit := map[string]*ebpf.Map{}
	for name, m := range o.reuse {
		if s := spec.Maps[name]; s != nil && name[0] != '.' && s.Compatible(m) == nil {
			fit[name] = m
		}
	}
	for _, together := range mapsTogether {
		isNew := func(name string) bool { return spec.Maps[name] != nil && fit[name] == nil }
		if slices.ContainsFunc(together, isNew) {
			maps.DeleteFunc(fit, func(name string, _ *ebpf.Map) bool {
				return slices.Contains(together, name)
			})
		}
	}
	return fit
}

// mapsTogether have state of one another: they are reused together or not at all. A pin may be
// missing after a killed upgrade. Without np_live nothing would ever remove NP's silent flows.
var mapsTogether = [][]string{{"np_flows", "np_live", "np_sweeper"}}

// Place is where one of an object's programs is attached at a device.
type Place struct {
	Program string
	Where   ebpf.AttachType
	Anchor  link.Anchor // position among the programs there
}

// Object is a loaded object file, for callers that attach and pin its programs themselves.
type Object interface {
	Close() error
	Places() []Place
	Programs() map[string]*ebpf.Program
	Maps() map[string]*ebpf.Map
	Fingerprint() string
	Types() ([]byte, error)
}

var _ = []Object{
	(*Stamp)(nil), (*FirstRTT)(nil), (*NP)(nil), (*RP)(nil), (*PlainSYN)(nil), (*WRED)(nil),
}

// Places returns where Attach attaches the program.
func (s *Stamp) Places() []Place { return []Place{{"stamp", ebpf.AttachTCXEgress, link.Tail()}} }

// Places returns where Attach attaches the program: before WRED, which reads what it writes.
func (f *FirstRTT) Places() []Place {
	return []Place{{"first_rtt", ebpf.AttachTCXEgress, link.Head()}}
}

// Places returns where Attach attaches the program: before WRED, which reads what it writes.
func (s *PlainSYN) Places() []Place {
	return []Place{{"syn", ebpf.AttachTCXEgress, link.Head()}}
}

// Places returns where Attach attaches the program.
func (w *WRED) Places() []Place { return []Place{{"wred", ebpf.AttachTCXEgress, link.Tail()}} }

// Programs returns the object's programs by name.
func (o *object) Programs() map[string]*ebpf.Program { return o.coll.Programs }

// Maps returns the object's maps by name.
func (o *object) Maps() map[string]*ebpf.Map { return o.coll.Maps }

// Fingerprint returns a hash of the programs and their parameters.
func (o *object) Fingerprint() string { return o.fingerprint() }

// Types returns the types of the object's flow table and counters, for [loader.UnmarshalTypes].
func (o *object) Types() ([]byte, error) { return o.types() }
