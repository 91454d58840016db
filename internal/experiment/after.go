// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// After is what flows wait for before they start: one dependency or a list of them.
type After []Dependency

// Dependency is a flow, or all flows of a group, whose data must have arrived.
type Dependency struct {
	// On names a flow or a group: one of flows, a collective, a trace or a workload.
	On string
	// Delay is how long after the arrival of the last byte the waiting flow starts.
	Delay Duration
}

// parseDependency parses a name, and a delay that may follow it: F0 + 10us.
func parseDependency(text string) (Dependency, error) {
	name, delay, has := strings.Cut(text, "+")
	dep := Dependency{On: strings.TrimSpace(name)}
	if dep.On == "" {
		return Dependency{}, config.Bad(fmt.Sprintf("%q names no flow", text),
			"write F0 or F0 + 10us")
	}
	if !has {
		return dep, nil
	}
	var err error
	if dep.Delay, err = config.ParseDuration(strings.TrimSpace(delay)); err != nil {
		return Dependency{}, err
	}
	if dep.Delay < 0 || dep.Delay > maxDuration {
		return Dependency{}, config.Bad(fmt.Sprintf("delay %s is out of range", dep.Delay),
			fmt.Sprintf("0s to %s", maxDuration))
	}
	return dep, nil
}

// UnmarshalYAML implements [yaml.Unmarshaler].
func (a *After) UnmarshalYAML(n *yaml.Node) error {
	items := []*yaml.Node{n}
	if n.Kind == yaml.SequenceNode {
		items = n.Content
	}
	for _, item := range items {
		var dep Dependency
		if err := config.UnmarshalScalar(&dep, behindAliases(item), parseDependency); err != nil {
			return err
		}
		*a = append(*a, dep)
	}
	return nil
}

// Part is the first messages of a flow. A flow without [Flow.Message] is a single message.
type Part struct {
	Flow     int32 // index in [Experiment.Flows]
	Messages int32
}

// Wait holds back messages of flows until messages of others have arrived at their receivers.
type Wait struct {
	// For must have arrived; it is not empty.
	For []Part
	// Delay is from the arrival of the last of them to when Then may leave.
	Delay Duration
	// Then is what waits: the last message of each part, and so those behind it. Several waits may
	// hold back the same message.
	Then []Part
}

// dependent is a group of flows that may wait for others.
type dependent struct {
	name, path string // path of its key "after" in the file
	after      After
}

// dependents returns the groups that wait for others, in the order of the file.
func (e *Experiment) dependents() []dependent {
	var all []dependent
	for i, g := range e.FlowGroups {
		all = append(all, dependent{g.Name, fmt.Sprintf("flows[%d].after", i), g.After})
	}
	for i, c := range e.Collectives {
		all = append(all, dependent{c.Name, fmt.Sprintf("collective[%d].after", i), c.After})
	}
	return slices.DeleteFunc(all, func(x dependent) bool { return len(x.after) == 0 })
}

// validateAfter checks what groups of flows wait for, which needs the names of all flows.
func (d *decoder) validateAfter(e *Experiment) {
	names := flowNames(e)
	groups := map[string]string{} // by names of flows and groups
	endless := map[string]bool{}  // by the same names
	for _, f := range e.Flows {
		groups[f.Name], groups[f.Group] = f.Group, f.Group
		if f.Size == 0 {
			endless[f.Name], endless[f.Group] = true, true
		}
	}
	waitsFor := map[string][]string{} // groups, by group
	for _, x := range e.dependents() {
		for _, dep := range x.after {
			if !d.checkKnown(x.path, "flow", dep.On, names) {
				continue
			}
			if endless[dep.On] {
				d.fail(x.path, fmt.Sprintf("%s waits for flow %s, which never ends", x.name,
					dep.On), "give it a size")
			}
			waitsFor[x.name] = append(waitsFor[x.name], groups[dep.On])
		}
	}
	for _, x := range e.dependents() {
		if circle := circleOf(waitsFor, x.name); circle != nil {
			d.fail(x.path, "flows wait for each other: "+strings.Join(circle, " waits for "),
				"have one of them start at a time")
			return
		}
	}
}

// circleOf returns the names on a way from a name back to itself; nil if there is none.
func circleOf(waitsFor map[string][]string, from string) []string {
	seen := map[string]bool{}
	var way func(at string) []string
	way = func(at string) []string {
		for _, next := range waitsFor[at] {
			if next == from {
				return []string{at, from}
			}
			if seen[next] {
				continue
			}
			seen[next] = true
			if rest := way(next); rest != nil {
				return append([]string{at}, rest...)
			}
		}
		return nil
	}
	return way(from)
}

// validateGroupAfter checks the keys of a group that waits for others.
func (d *decoder) validateGroupAfter(path string) {
	if !d.has(path + "after") {
		return
	}
	for _, key := range []string{"start", "every", "start_jitter"} {
		if d.has(path + key) {
			d.fail(path+key, fmt.Sprintf("%q is given, and flows start after others", key),
				"keep one of them: after: F0 + 10us has a delay")
		}
	}
}

// addWaits replaces the waits of groups of flows; those of collectives stay.
func (d *decoder) addWaits(e *Experiment) {
	e.Waits = slices.Clip(e.within)
	if len(d.Errs) > 0 {
		return
	}
	members := map[string][]Part{} // whole flows, by name and by group
	for i, f := range e.Flows {
		part := Part{int32(i), int32(f.Messages())}
		members[f.Name] = append(members[f.Name], part)
		if f.Group != f.Name {
			members[f.Group] = append(members[f.Group], part)
		}
	}
	for _, x := range e.dependents() {
		for _, dep := range x.after {
			delays, parts := e.begins(x.name, members[x.name])
			for i, delay := range delays {
				e.Waits = append(e.Waits,
					Wait{For: members[dep.On], Delay: dep.Delay + delay, Then: parts[i]})
			}
		}
	}
}

// begins returns the first messages of a group's flows, by the delays with which they follow what
// the group waits for.
func (e *Experiment) begins(group string, flows []Part) (delays []Duration, parts [][]Part) {
	for _, p := range flows {
		f := &e.Flows[p.Flow]
		delay, c := Duration(0), e.collectiveNamed(group)
		switch {
		case c != nil && !f.Begins:
			continue // it waits for others of the collective
		case c != nil:
			delay = f.Start - c.Start
		}
		i := slices.Index(delays, delay)
		if i < 0 {
			i = len(delays)
			delays, parts = append(delays, delay), append(parts, nil)
		}
		parts[i] = append(parts[i], Part{p.Flow, 1})
	}
	return delays, parts
}

// Messages returns how many messages the flow's data is.
func (f *Flow) Messages() int {
	if f.Message == 0 {
		return 1
	}
	return int(f.Size / f.Message)
}
