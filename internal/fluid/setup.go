// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"fmt"
	"math"
	"slices"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/network"
)

// kinds are the topologies in which a flow has one path, and no flow meets its own feedback.
var kinds = []string{"dumbbell", "fig1", "parking-lot", "star", "tcd-fig2"}

// setup is what an experiment says, with numbers in place of names.
type setup struct {
	scheme  scheme.Scheme
	values  *scheme.Values // of the scheme; nil if nothing controls senders
	network *network.Network
	routes  *network.Routes
	names   []string       // of nodes
	number  map[string]int // of nodes
	rttNs   uint64         // base round trip
	law     newLaw
	marker  marker
	phased  bool    // senders have periods that begin with their flows
	jitters bool    // flows start later by their jitter
	frame   float64 // bytes
	line    float64 // rate of hosts, bytes/s
}

// newSetup reads an experiment; it fails if there is no model of it.
func newSetup(e *experiment.Experiment, name string) (*setup, error) {
	if err := canExpress(e); err != nil {
		return nil, err
	}
	n := e.Topology.Network()
	s := &setup{
		network: n, names: n.Nodes(), number: n.Numbers(),
		frame: float64(e.Frame), line: float64(e.Topology.Rate) / 8,
	}
	var err error
	if s.scheme, err = e.Scheme(name); err != nil {
		return nil, err
	}
	if s.routes, err = n.Routes(); err != nil {
		return nil, err
	}
	s.rttNs = e.BaseRTTNs(s.routes)
	if err := s.resolve(e); err != nil {
		return nil, err
	}
	return s, s.choose(e)
}

// canExpress returns what of an experiment has no counterpart in a fluid.
func canExpress(e *experiment.Experiment) error {
	const other = "run it with `--engine sim`"
	if err := e.CheckEngine(experiment.EngineFluid); err != nil {
		return err
	}
	switch {
	case !slices.Contains(kinds, e.Topology.Kind) || len(e.Topology.Failed) > 0:
		kind := e.Topology.Kind
		if e.Topology.File != "" {
			kind = e.Topology.File
		}
		return fmt.Errorf("topology %s may have several paths, and the fluid models have one: "+
			"want one of %v, or %s", kind, kinds, other)
	case e.Disturbed() || e.LinkStates():
		return fmt.Errorf("links that lose or delay packets, or fail, have no fluid model: %s",
			other)
	case len(e.Waits) > 0 || len(e.Collectives) > 0:
		return fmt.Errorf("flows that wait for others have no fluid model: %s", other)
	case e.Switch.Detectors:
		return fmt.Errorf("switch.detectors are about packets: remove it, or %s", other)
	case e.Switch.FlowControl == experiment.FlowCBFC:
		return fmt.Errorf("switch.flow_control cbfc has no fluid model: want pfc, or %s", other)
	case e.Transport.Acks != experiment.ReplyControl || e.Transport.CNP != experiment.ReplyControl:
		return fmt.Errorf("transport.acks and transport.cnp have no fluid model: remove them, "+
			"or %s", other)
	case e.Switch.MarkingByRate:
		return fmt.Errorf("switch.marking_by_rate has no fluid model: remove it, or %s", other)
	case e.Switch.PFC.Dynamic != nil && e.Switch.PFC.Dynamic.ByRate:
		return fmt.Errorf("switch.pfc.dynamic.by_rate has no fluid model: remove it, or %s", other)
	case len(e.DataClasses()) > 1:
		return fmt.Errorf("flows have several priorities, and the fluid models one: %s", other)
	}
	return nil
}

// resolve computes the values of the scheme's parameters in this network.
func (s *setup) resolve(e *experiment.Experiment) error {
	if s.scheme.Object == nil {
		return fmt.Errorf("scheme %s is Linux's own and has no fluid model: run it with "+
			"`--engine kernel`", s.scheme.Name)
	}
	if s.scheme.Sender == scheme.SenderLine {
		return nil
	}
	values, problems := s.scheme.Object.Resolve(e.Settings(s.scheme), e.SchemeNetwork())
	for _, p := range problems {
		return fmt.Errorf("scheme %s: %s: %s", s.scheme.Name, p.Key, p.Msg)
	}
	s.values = values
	return nil
}

// choose finds the models of the scheme's parts.
func (s *setup) choose(e *experiment.Experiment) error {
	var ok bool
	s.law, ok = laws[s.scheme.Section]
	if s.scheme.Sender == scheme.SenderLine {
		s.law, ok = newLine, true
	}
	if !ok || s.scheme.TCD || s.scheme.Own != nil {
		return fmt.Errorf("scheme %s has no fluid model: want one of %v, or run it with "+
			"`--engine sim`", s.scheme.Name, schemes())
	}
	if f := "feedback"; s.scheme.Section == "pcn" && s.values.Get(f).String() != "cnp" {
		return fmt.Errorf("pcn.feedback %s has no fluid model: want cnp, or run it with "+
			"`--engine sim`", s.values.Get(f))
	}
	for _, key := range []string{"per_rtt", "count_increases"} {
		if s.scheme.Section == "timely" && get(s.values, key) != 0 {
			return fmt.Errorf("timely.%s has no fluid model: want false, or run it with "+
				"`--engine sim`", key)
		}
	}
	s.phased = s.scheme.Section == "pcn"
	s.jitters = s.phased && len(e.Flows) <= maxPhases
	var err error
	s.marker, err = newMarker(e, s.scheme)
	return err
}

// get returns a parameter in SI units and bytes: bytes/s, s, bytes, or a number. It may have other
// names in other schemes.
func get(v *scheme.Values, key string, others ...string) float64 {
	for _, k := range others {
		if !v.Has(key) {
			key = k
		}
	}
	x := v.Get(key)
	switch x.Kind {
	case scheme.KindRate:
		return x.Number / 8
	case scheme.KindTime:
		return x.Number / 1e9
	default:
		return x.Number
	}
}

// stepsPerRTT is how many steps a round trip has at least, and a period of PCN.
const stepsPerRTT = 32

// newModel lays out a run.
func newModel(e *experiment.Experiment, name string) (*model, error) {
	s, err := newSetup(e, name)
	if err != nil {
		return nil, err
	}
	return s.model(e)
}

// model lays out a run of a setup.
func (s *setup) model(e *experiment.Experiment) (*model, error) {
	m := &model{exp: e, setup: *s, lossy: !e.PFCOn(s.scheme.Name)}
	longest := float64(s.rttNs) / stepsPerRTT
	if s.phased {
		longest = min(longest, s.values.Get("T").Number/stepsPerRTT)
	}
	m.perBin = int(math.Ceil(float64(e.Sample) / max(longest, 1)))
	m.stepNs = float64(e.Sample) / float64(m.perBin)
	m.h = m.stepNs / 1e9
	m.start = int(e.Warmup/e.Sample) * m.perBin
	m.steps = m.start + int(e.Duration/e.Sample)*m.perBin
	m.addPorts()
	if err := m.addSources(); err != nil {
		return nil, err
	}
	if err := m.sortPorts(); err != nil {
		return nil, err
	}
	for _, p := range m.order {
		p.allocate()
	}
	m.record.begin(m)
	return m, nil
}

// addPorts makes the ports of the network. Ports of hosts that are alike are one model with so many
// times the rate: of each it tells the mean.
func (m *model) addPorts() {
	m.nodes = make([]node, len(m.setup.names))
	m.alike = m.alikeHosts()
	shared := map[portKey]*port{}
	for _, l := range m.setup.network.Links {
		a, b := m.setup.number[l.A], m.setup.number[l.B]
		for i, ends := range [2][2]int{{a, b}, {b, a}} {
			id := physical{name: l.Ports()[i], link: l, node: ends[0], peer: ends[1]}
			key := portKey{m.alike[ends[0]], m.alike[ends[1]], l.Suffix}
			p := shared[key]
			if p == nil {
				p = m.newPort(id)
				shared[key] = p
			} else {
				p.copies++
			}
			id.port = p
			m.ports = append(m.ports, p)
			m.physical = append(m.physical, id)
		}
	}
	for _, c := range m.exp.LinkEvents {
		at := m.start + int(math.Round(float64(c.At)/m.stepNs))
		for _, id := range m.physical {
			if id.name == c.Port {
				m.changes = append(m.changes, rateChange{at, id.port, float64(c.Rate) / 8})
			}
		}
	}
	slices.SortStableFunc(m.changes, func(a, b rateChange) int { return a.step - b.step })
}

// physical is a port of the network, with the model that it shares with those alike.
type physical struct {
	name       string
	link       network.Link
	node, peer int
	port       *port
}

// portKey is what ports that are alike have in common: the numbers of the groups of both nodes.
type portKey struct {
	node, peer int
	suffix     string
}

func (m *model) newPort(id physical) *port {
	p := &port{
		name: id.name, link: id.link, node: id.node, peer: id.peer, copies: 1,
		rate: float64(id.link.RateBps) / 8, fromHost: id.node < len(m.setup.network.Hosts),
	}
	// A switch stores a packet before it forwards it.
	wait := float64(id.link.DelayNs) + m.setup.frame/p.rate*1e9
	p.delay = int(math.Round(wait / m.stepNs))
	p.loop = max(int(math.Round(float64(id.link.DelayNs)/m.stepNs)), 1)
	return p
}

// path returns the ports from one host to another.
func (m *model) path(from, to string) []*port {
	s := &m.setup
	at, end := s.number[from], s.number[to]
	var path []*port
	for _, p := range m.ports {
		if p.fromHost && p.node == m.alike[at] {
			path = append(path, p)
			at = p.peer
			break
		}
	}
	for at != end {
		id := s.routes.Ports(at, end)[0]
		path = append(path, m.ports[id])
		at = m.physical[id].peer
	}
	return path
}

// sortPorts puts the ports with flows in an order in which each is behind those that feed it.
func (m *model) sortPorts() error {
	const (
		open = 1
		done = 2
	)
	state := map[*port]int{}
	var visit func(p *port) error
	visit = func(p *port) error {
		switch state[p] {
		case done:
			return nil
		case open:
			return fmt.Errorf("flows wait for each other in a cycle at port %s, and the fluid "+
				"models can't: run it with `--engine sim`", p.name)
		}
		state[p] = open
		for _, in := range p.inputs {
			if in.from == nil {
				continue
			}
			if err := visit(in.from); err != nil {
				return err
			}
		}
		state[p] = done
		m.order = append(m.order, p)
		return nil
	}
	for _, p := range m.ports {
		if len(p.inputs) == 0 {
			continue
		}
		if err := visit(p); err != nil {
			return err
		}
	}
	return nil
}
