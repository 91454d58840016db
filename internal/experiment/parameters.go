// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"maps"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/scheme"
)

// parameters holds the parameters of schemes that an experiment's file gives, in one section per
// scheme.
type parameters struct {
	catalogue *scheme.Catalogue
	objects   map[string]*scheme.Object // by section
	settings  map[string]scheme.Settings
	values    map[string]*scheme.Values
}

func newParameters(c *scheme.Catalogue) parameters {
	return parameters{
		catalogue: c, objects: c.Sections(),
		settings: map[string]scheme.Settings{}, values: map[string]*scheme.Values{},
	}
}

// ExtraKeys returns the keys of a file that are not fields of Experiment: the sections of schemes.
func (e *Experiment) ExtraKeys() []string { return e.parameters.catalogue.SectionNames() }

// DecodeExtra decodes the section of a scheme.
func (e *Experiment) DecodeExtra(d *config.Decoder, path, key string, n *yaml.Node) {
	section := scheme.Section{Object: e.parameters.objects[key]}
	e.parameters.settings[key] = section.Decode(d, path, n)
}

// network returns what defaults depend on. It looks at paths only if a parameter needs them: then
// the traffic must be valid.
func (e *Experiment) network() scheme.Network {
	if e.parameters.needPaths() {
		return e.SchemeNetwork()
	}
	return scheme.Network{LineRateBps: uint64(e.Topology.Rate), FrameBytes: uint64(e.Frame)}
}

// SenderNetwork returns what parameters of senders depend on in an engine that knows the base round
// trip. Parameters that are auto depend on the number of flows too.
func (e *Experiment) SenderNetwork(baseRTTNs uint64) scheme.Network {
	n := e.network()
	n.BaseRTTNs = baseRTTNs
	return n
}

// SchemeNetwork returns what parameters may depend on.
func (e *Experiment) SchemeNetwork() scheme.Network {
	t := e.traffic()
	return scheme.Network{
		LineRateBps: uint64(e.Topology.Rate), FrameBytes: uint64(e.Frame), BaseRTTNs: t.rttNs,
		Flows: t.sharing,
	}
}

// needPaths reports whether the file leaves a parameter to the network.
func (p parameters) needPaths() bool {
	for _, s := range p.settings {
		for _, v := range s.Given {
			if v.IsAuto() {
				return true
			}
		}
	}
	return false
}

// resolveParameters computes the parameters of every scheme, also of those that do not run, and
// fails for values out of range.
func (d *decoder) resolveParameters(e *Experiment) {
	if e.Topology.Rate < leastRate || e.Topology.Rate > e.maxRate() {
		return // already reported; its consequences need no report
	}
	d.validateMarking(e)
	for _, section := range slices.Sorted(maps.Keys(e.parameters.objects)) {
		object := e.parameters.objects[section]
		settings := e.parameters.settings[section]
		values, problems := object.Resolve(settings, e.network())
		for _, p := range problems {
			d.failParameter(e, section, p)
		}
		if e.Marking != nil {
			settings = e.withMarking(object, settings)
			// validateMarking has checked the marking
			values, _ = object.Resolve(settings, e.network())
		}
		e.parameters.settings[section], e.parameters.values[section] = settings, values
		if len(problems) == 0 {
			d.checkSenders(e, section)
		}
	}
}

// failParameter fails for a value that is out of range. Below 1 Mbit/s defaults may be, which then
// is no mistake of a file that does not run the scheme.
func (d *decoder) failParameter(e *Experiment, section string, p scheme.Problem) {
	path := section + "." + p.Key
	switch {
	case d.has(path):
		d.fail(path, p.Msg, p.Hint)
	case e.Topology.Rate >= minRate:
		d.fail(path, p.Msg, p.Hint)
	case slices.ContainsFunc(e.Schemes, func(name string) bool {
		s, err := e.Scheme(name)
		return err == nil && (s.Section == section || s.MarkingSection == section)
	}):
		d.fail(path, fmt.Sprintf("%s, by default at %s: %s", path, e.Topology.Rate, p.Msg), p.Hint)
	}
}

// withMarking replaces the scheme's marking by the experiment's.
func (e *Experiment) withMarking(o *scheme.Object, s scheme.Settings) scheme.Settings {
	if o.Param(keyKMin) == nil {
		return s
	}
	s.Given = maps.Clone(s.Given)
	if s.Given == nil {
		s.Given = map[string]scheme.Value{}
	}
	s.Given[keyKMin] = scheme.Value{Kind: scheme.KindBytes, Number: float64(e.Marking.KMin)}
	s.Given[keyKMax] = scheme.Value{Kind: scheme.KindBytes, Number: float64(e.Marking.KMax)}
	s.Given[keyPMax] = scheme.Value{Kind: scheme.KindRatio, Number: float64(e.Marking.PMax)}
	return s
}

// The keys of RED's marking in a section.
const (
	keyKMin = "marking.kmin"
	keyKMax = "marking.kmax"
	keyPMax = "marking.pmax"
)

// Catalogue returns the built-in schemes and the experiment's own.
func (e *Experiment) Catalogue() *scheme.Catalogue { return e.parameters.catalogue }

// Scheme returns a scheme by its name.
func (e *Experiment) Scheme(name string) (scheme.Scheme, error) {
	return e.parameters.catalogue.Lookup(name)
}

// Settings returns the parameters of a scheme that the experiment gives.
func (e *Experiment) Settings(s scheme.Scheme) scheme.Settings {
	return e.parameters.settings[s.Section]
}

// Values returns the values of a scheme's parameters; nil for a control of the kernel's own.
func (e *Experiment) Values(s scheme.Scheme) *scheme.Values {
	return e.parameters.values[s.Section]
}

// Section returns the values of the parameters of a section, such as pcn; nil if there is none.
func (e *Experiment) Section(name string) *scheme.Values { return e.parameters.values[name] }

// MarkingValues returns the values that switches and receivers use under a scheme: its own, or
// those of the section that it borrows.
func (e *Experiment) MarkingValues(s scheme.Scheme) *scheme.Values {
	return e.parameters.values[s.MarkingSection]
}

// Setup returns what a scheme needs from the network in this experiment.
func (e *Experiment) Setup(s scheme.Scheme) scheme.Setup {
	setup := s.Setup(e.Values(s))
	if setup.Marker == markerRED && !s.TCD {
		setup.Marker = string(e.Marker)
	}
	return setup
}

// MarkingRule is how switches decide which packets they mark.
type MarkingRule string

// The rules that replace each other.
const (
	MarkRED   MarkingRule = markerRED
	MarkNPECN MarkingRule = "npecn"
)

func markingRules() []MarkingRule { return []MarkingRule{MarkRED, MarkNPECN} }

// Marking is RED on the instantaneous queue of an egress port: a packet that finds a queue of up to
// KMin is never marked. From there to KMax the probability grows from 0 to PMax, and above KMax
// every packet is marked.
type Marking struct {
	// KMin is the queue up to which no packet is marked. In bytes, 0 to KMax.
	KMin Bytes `yaml:"kmin"`
	// KMax is the queue above which every packet is marked. In bytes, to 1GB.
	KMax Bytes `yaml:"kmax"`
	// PMax is the probability at KMax. Above 0, at most 1.
	PMax Ratio `yaml:"pmax"`
}

// minFraction is the lower bound of fractions that must be above 0.
const minFraction = Ratio(1.0 / 65536)

// validateMarking checks the marking for all schemes, if the file has one.
func (d *decoder) validateMarking(e *Experiment) {
	d.checkKnown("marker", "marking rule", string(e.Marker), toStrings(markingRules()))
	if e.Marking == nil {
		return
	}
	m := *e.Marking
	complete := true
	for _, key := range []string{"kmin", "kmax", "pmax"} {
		complete = d.hasRequired("marking.", key) && complete
	}
	if !complete {
		return
	}
	config.InRange(d.Decoder, "marking.kmax", m.KMax, 1, 1e9)
	if m.KMin > m.KMax {
		d.fail("marking.kmin", fmt.Sprintf("kmin %s is above kmax %s", m.KMin, m.KMax),
			"swap them")
	}
	config.InRange(d.Decoder, "marking.pmax", m.PMax, minFraction, 1)
}

// MarkingOf returns the RED marking of switches under a scheme; false if they do not mark by RED.
func (e *Experiment) MarkingOf(name string) (Marking, bool) {
	s, err := e.Scheme(name)
	if err != nil || e.Setup(s).Marker != markerRED {
		return Marking{}, false
	}
	return markingIn(e.MarkingValues(s)), true
}

// markerRED is the marker that uses a [Marking].
const markerRED = "red"

// markingIn returns the marking in a section.
func markingIn(v *scheme.Values) Marking {
	return Marking{
		KMin: Bytes(v.Get(keyKMin).Number), KMax: Bytes(v.Get(keyKMax).Number),
		PMax: Ratio(v.Get(keyPMax).Number),
	}
}

// ECNThreshold returns K_max of the schemes with TCD: the queue above which switches mark every
// packet.
func (e *Experiment) ECNThreshold() Bytes {
	return markingIn(e.parameters.values[detectorSection]).KMax
}

// CongestedShare returns the share of marked packets above which PCN's receivers call a flow
// congested.
func (e *Experiment) CongestedShare() float64 {
	return e.parameters.values[congestedSection].Get("congested_share").Number
}

// The sections with the parameters of detectors: the threshold of plain ECN, and the share of
// NP-ECN's marks.
const (
	detectorSection  = "dcqcn"
	congestedSection = "pcn"
)

func (d *decoder) validateSchemes(e *Experiment) {
	known := slices.Concat(e.parameters.catalogue.Names(), scheme.KernelControls())
	for name := range e.Algorithms { // one that can't be compiled is reported at its name
		known = append(known, name)
	}
	if len(e.Schemes) == 0 {
		d.fail("schemes", "\"schemes\" is missing",
			config.Suggest("", e.parameters.catalogue.Names()))
	}
	d.checkAllKnown("schemes", "scheme", e.Schemes, known)
	d.checkUnique("schemes", "scheme", e.Schemes)
}

// tcdOf reports whether switches mark by TCD under a scheme of the experiment.
func (e *Experiment) tcdOf(name string) bool {
	s, err := e.Scheme(name)
	return err == nil && s.TCD
}
