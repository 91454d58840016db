// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// flowKey is what flows have in common whose fluid is one.
type flowKey struct {
	like     experiment.Flow // without names and hosts
	from, to int             // groups of hosts
}

// keyOf returns what a flow has in common with those alike, but for its hosts.
func keyOf(f experiment.Flow) experiment.Flow {
	f.Name, f.From, f.To, f.StartJitter, f.Traced = "", "", "", 0, false
	return f
}

// alikeHosts groups hosts that no model can tell apart: they have equal links to one switch, and
// send and receive equal flows to and from hosts that are alike. It returns a number for each node:
// that of the first of its group.
func (m *model) alikeHosts() []int {
	s := &m.setup
	hosts := len(s.network.Hosts)
	text := make([]string, len(s.names))
	for i := range text {
		text[i] = fmt.Sprint("alone ", i)
	}
	for _, l := range s.network.Links {
		a, b := s.number[l.A], s.number[l.B]
		if b < hosts {
			a, b = b, a
		}
		if a < hosts && !m.changesRate(l.Ports()) {
			text[a] = fmt.Sprint(b, l.RateBps, l.DelayNs)
		}
	}
	group := numbers(text)
	for range 3 { // what hosts talk to is alike, and what these talk to
		group = numbers(m.refine(group))
	}
	return group
}

func (m *model) changesRate(ports [2]string) bool {
	return slices.ContainsFunc(m.exp.LinkEvents, func(c experiment.LinkEvent) bool {
		return c.Port == ports[0] || c.Port == ports[1]
	})
}

// refine describes each node by its group and by the flows of its group.
func (m *model) refine(group []int) []string {
	lines := make([][]string, len(group))
	add := func(from, to int, what string) {
		lines[from] = append(lines[from], fmt.Sprint("to ", group[to], what))
		lines[to] = append(lines[to], fmt.Sprint("from ", group[from], what))
	}
	for _, f := range m.exp.Flows {
		add(m.setup.number[f.From], m.setup.number[f.To], fmt.Sprintf("%+v", keyOf(f)))
	}
	for i, b := range m.exp.Bursts {
		for _, from := range b.From {
			add(m.setup.number[from], m.setup.number[b.To], fmt.Sprint("burst ", i))
		}
	}
	text := make([]string, len(group))
	for i := range group {
		slices.Sort(lines[i])
		text[i] = fmt.Sprint(group[i], "\n", strings.Join(lines[i], "\n"))
	}
	return text
}

// numbers replaces each text by the number of its first place.
func numbers(text []string) []int {
	first := map[string]int{}
	out := make([]int, len(text))
	for i, t := range text {
		if _, ok := first[t]; !ok {
			first[t] = i
		}
		out[i] = first[t]
	}
	return out
}
