// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// law is how a sender sets its rate: the equations of one model.
type law interface {
	// advance moves the sender's state by a step.
	advance(h heard)
	// rate is that of the sender now, in bytes/s. rtt is the round trip of what leaves now.
	rate(rtt float64) float64
}

// newLaw starts a sender.
type newLaw func(s sender) law

// sender is what a law knows of its flow and of the network.
type sender struct {
	values      *scheme.Values
	line        float64 // bytes/s: the host's rate
	initial     float64 // bytes/s
	frame       float64 // bytes
	propagation float64 // s: the same, without the time that frames take on links
}

// heard is what a sender learns in a step.
type heard struct {
	h             float64 // s
	acked, marked float64 // bytes
	rtt           float64 // s, of what is acknowledged
	samples       float64 // CNMs: how many, on average
	feedback      float64 // CNMs: the sum of their QntzFb
}

// share returns the share of marked bytes.
func (h heard) share() float64 {
	if h.acked == 0 {
		return 0
	}
	return h.marked / h.acked
}

// laws are the models, by the section of their parameters.
var laws = map[string]newLaw{
	"pcn": newPCN, "dcqcn": newDCQCN, "qcn": newQCN, "timely": newTimely,
	"dctcp": newDCTCP, "ldcp": newLDCP,
}

// schemes returns the sections of the schemes that have a model; so does pfc, which has no section.
func schemes() []string { return slices.Sorted(maps.Keys(laws)) }

// line is no control at all: pfc.
type line struct{ bps float64 }

func newLine(s sender) law          { return line{s.initial} }
func (line) advance(heard)          {}
func (l line) rate(float64) float64 { return l.bps }

// source is flows that are alike: one fluid, with so many times a flow's rate.
type source struct {
	names    []string    // of its flows
	ends     [][2]string // their hosts
	group    string
	from, to string
	flows    float64
	first    int // step at which it starts
	law      law // nil for a burst
	limit    float64
	size     float64 // bytes of each flow; 0: it never ends
	pace     float64 // of a burst, bytes/s; 0: all at once
	capable  bool    // of being marked, for a burst
	path     []*port
	slot     int           // the source's number at the last port
	base     float64       // s: the round trip of an empty network
	back     int           // steps from the receiver to the sender
	toSender map[*port]int // steps that a congestion point's message takes
	priority int
	startNs  int64

	left     float64 // bytes that are not sent yet
	sent     float64
	received float64
	marked   float64
	done     int // step at which all had arrived; 0: not yet
	lastRate float64
	rtt      float64 // the last that was heard
	cnps     float64

	reports []report // of the receiver, and of congestion points: a ring
	bin     amount
}

// report is feedback on its way to a sender.
type report struct {
	acked, marked, wait float64
	samples, feedback   float64
}

// unresponsive reports whether it is a burst.
func (s *source) unresponsive() bool { return s.law == nil }

// active reports whether the source has anything to send.
func (s *source) active(m *model) bool {
	return m.step >= s.first && (s.size == 0 || s.left > 0)
}

// wants returns what the source would send in this step, in bytes.
func (s *source) wants(m *model) float64 {
	if !s.active(m) {
		return 0
	}
	var bytes float64
	switch {
	case s.law != nil:
		s.lastRate = min(s.law.rate(s.base+s.waits()), s.limit)
		bytes = s.lastRate * m.h * s.flows
	case s.pace == 0:
		return s.left
	default:
		bytes = s.pace * m.h * s.flows
	}
	if s.size > 0 {
		bytes = min(bytes, s.left)
	}
	return bytes
}

// send takes from the source what enters the host's port.
func (s *source) send(bytes float64) {
	s.sent += bytes
	if s.size > 0 {
		s.left -= bytes
	}
}

// waits returns how long the queues of the path are now, in s.
func (s *source) waits() float64 {
	var sum float64
	for _, p := range s.path {
		sum += p.length / (p.rate * p.copies)
	}
	return sum
}

// advance lets the receiver take what arrives, and the sender hear what was reported.
func (s *source) advance(m *model) {
	if m.step < s.first {
		return
	}
	n := len(s.reports)
	last := s.path[len(s.path)-1]
	got := last.delivered(m.step)[s.slot]
	r := &s.reports[(m.step+s.back)%n]
	r.acked, r.marked = got.bytes, got.marked
	for _, p := range s.path {
		r.wait += p.wait
	}
	s.received += got.bytes
	s.marked += got.marked
	s.bin.bytes += got.bytes
	s.bin.marked += got.marked
	if s.size > 0 && s.done == 0 && s.left <= 0 && s.received >= s.sent*(1-1e-9) {
		s.done = m.step
	}
	now := &s.reports[m.step%n]
	if s.law != nil {
		h := heard{
			h: m.h, acked: now.acked / s.flows, marked: now.marked / s.flows,
			rtt: s.base + now.wait, samples: now.samples / s.flows,
			feedback: now.feedback / s.flows,
		}
		if h.acked > 0 {
			s.rtt = h.rtt
		}
		s.cnps += h.samples
		s.law.advance(h)
	}
	*now = report{}
}

// maxSources bounds a run's memory and time.
const maxSources = 4096

// maxPhases is how many flows start at different times, by their jitter. Only models with periods
// of their own need that: without, all flows of PCN would be in phase. More flows start together:
// they are as many models otherwise.
const maxPhases = 16

// addSources makes the sources of all flows and bursts.
func (m *model) addSources() error {
	like := map[flowKey]*source{}
	rng := rand.New(rand.NewPCG(m.exp.Seed, 0))
	for i, f := range m.exp.Flows {
		key := flowKey{like: keyOf(f)}
		key.from, key.to = m.alike[m.setup.number[f.From]], m.alike[m.setup.number[f.To]]
		if m.setup.jitters && f.StartJitter > 0 {
			f.Start += experiment.Duration(rng.Uint64N(uint64(f.StartJitter)))
			key.like.Name = m.exp.Flows[i].Name // on its own
		}
		if s := like[key]; s != nil {
			s.names = append(s.names, f.Name)
			s.ends = append(s.ends, [2]string{f.From, f.To})
			s.flows++
			continue
		}
		s := &source{
			names: []string{f.Name}, ends: [][2]string{{f.From, f.To}},
			group: f.Group, from: f.From, to: f.To, flows: 1,
			size: m.wire(float64(f.Size), tcpHeader), limit: m.setup.line, priority: f.Priority,
			startNs: int64(f.Start),
		}
		if f.LimitRate != 0 {
			s.limit = float64(f.LimitRate) / 8
		}
		initial := m.setup.line
		if f.InitialRate != 0 {
			initial = float64(f.InitialRate) / 8
		}
		if err := m.addSource(s); err != nil {
			return err
		}
		s.law = m.setup.law(sender{
			values: m.setup.values, line: m.setup.line, initial: initial, frame: m.setup.frame,
			propagation: float64(m.setup.rttNs) / 1e9,
		})
		like[key] = s
	}
	if err := m.addBursts(); err != nil {
		return err
	}
	for _, s := range m.sources {
		s.left = s.size * s.flows
	}
	return nil
}

// addBursts makes a source of each start of a burst and each group of hosts.
func (m *model) addBursts() error {
	for _, b := range m.exp.Bursts {
		for k, start := range b.Starts(m.exp.Duration) {
			like := map[int]*source{}
			for _, from := range b.From {
				group := m.alike[m.setup.number[from]]
				s := like[group]
				if s == nil {
					s = &source{
						group: b.Name, from: from, to: b.To,
						size: m.wire(float64(b.Size), udpHeader), limit: m.setup.line,
						pace: float64(b.Rate) / 8, capable: b.Rate != 0, startNs: int64(start),
					}
					like[group] = s
					if err := m.addSource(s); err != nil {
						return err
					}
				}
				s.flows += float64(b.Flows)
				for i := range b.Flows {
					s.names = append(s.names, fmt.Sprintf("%s-%s-%d", b.Name, from, k*b.Flows+i))
					s.ends = append(s.ends, [2]string{from, b.To})
				}
			}
		}
	}
	return nil
}

// Bytes of a frame before its payload, of controlled flows and of bursts.
const (
	tcpHeader = 14 + 20 + 20 + 12
	udpHeader = 14 + 20 + 8
)

// wire returns how many bytes of frames carry so much data.
func (m *model) wire(size, header float64) float64 {
	return size + math.Ceil(size/(m.setup.frame-header))*header
}

// addSource finds the source's path, and adds it to its ports.
func (m *model) addSource(s *source) error {
	if len(m.sources) == maxSources {
		return fmt.Errorf("more than %d groups of flows: run it with `--engine sim`", maxSources)
	}
	s.path = m.path(s.from, s.to)
	s.first = max(m.start+int(math.Round(float64(s.startNs)/m.stepNs)), 0)
	var before *port
	s.toSender = map[*port]int{}
	slot, forward, back := 0, 0, 0.0
	for _, p := range s.path {
		p.inputs = append(p.inputs, input{source: s, from: before, slot: slot})
		before, slot = p, len(p.inputs)-1
		s.toSender[p] = int(math.Round(back / m.stepNs))
		forward += p.delay
		back += float64(p.link.DelayNs) + tcpHeader/p.rate*1e9
	}
	s.slot = slot
	s.back = int(math.Round(back / m.stepNs))
	s.base = float64(forward+s.back) * m.h
	s.reports = make([]report, forward+s.back+2)
	m.sources = append(m.sources, s)
	return nil
}
