// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/loader"
	"github.com/pcn-linux/pcn/tc"
)

// Status describes what runs on a host.
type Status struct {
	Components []ComponentStatus `json:"components"` // what runs on this host
	// Default is net.ipv4.tcp_congestion_control of this network namespace.
	Default string `json:"default_control"`
	// Notes say what makes flows slower than they need be, and what to do.
	Notes []string `json:"notes"`
	// Differences lists where the host differs from the configuration, if one was given.
	Differences []string `json:"differences"`
}

// ComponentStatus describes one running component.
type ComponentStatus struct {
	// Name is NAME@NAMESPACE for a component of another network namespace.
	Name     string            `json:"name"`
	Settings []Setting         `json:"settings"` // what it was started with
	Where    []string          `json:"where"`    // interfaces, or a cgroup
	Counts   map[string]uint64 `json:"counts"`   // what it counted since it was started, by name
	Problems []string          `json:"problems"` // what needs somebody to act
	Warnings []string          `json:"warnings"` // what is worth knowing

	// IsOthers tells that only other network namespaces want it.
	IsOthers bool `json:"-"`
	// Signs tells that it has keys for signed CNPs.
	Signs bool `json:"-"`

	flows []loader.Flow
}

// Setting returns the value of a setting, empty if there is none.
func (s *ComponentStatus) Setting(key string) string { return settingIn(s.Settings, key) }

// OK reports whether all components are whole and there are no differences.
func (s Status) OK() bool {
	broken := func(c ComponentStatus) bool { return len(c.Problems) > 0 }
	return len(s.Differences) == 0 && !slices.ContainsFunc(s.Components, broken)
}

// Status reads what runs. If c is not nil, it also lists the differences from c.
func (h *Host) Status(ctx context.Context, c *Config) (*Status, error) {
	names, err := h.components()
	if err != nil {
		return nil, err
	}
	here, err := currentNamespace()
	if err != nil {
		return nil, err
	}
	s := &Status{Components: []ComponentStatus{}, Notes: []string{}, Differences: []string{}}
	if s.Default, err = defaultControl(); err != nil {
		return nil, err
	}
	for _, name := range names {
		one, err := h.componentStatus(here, name)
		if err != nil {
			return nil, err
		}
		s.Components = append(s.Components, *one)
	}
	s.Notes = append(s.Notes, s.ecnNotes()...)
	if c != nil {
		if s.Differences, err = h.differences(ctx, c, s.Components); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// componentStatus reads one component. What can't be read of it is a problem of its own, unless all
// lacks the rights.
func (h *Host) componentStatus(here Namespace, folderName string) (*ComponentStatus, error) {
	f := h.folder(folderName)
	component, cookie := splitFolder(folderName)
	command := commandOf(component)
	s := &ComponentStatus{
		Name: component, Settings: []Setting{}, Where: []string{}, Counts: map[string]uint64{},
		Problems: []string{}, Warnings: []string{},
	}
	problem := func(format string, args ...any) {
		s.Problems = append(s.Problems, fmt.Sprintf(format, args...))
	}
	st, err := f.state()
	switch {
	case errors.Is(err, fs.ErrPermission):
		return nil, err
	case err != nil:
		problem("%v", err)
	case st == nil:
		problem("a change of it was interrupted: run %s up or down", command)
	default:
		s.Settings = st.Settings
		s.IsOthers = len(st.Namespaces) > 0 && !slices.Contains(st.cookies(), here.Cookie)
	}
	isElsewhere := cookie != 0 && cookie != here.Cookie
	s.IsOthers = s.IsOthers || isElsewhere
	if isElsewhere {
		s.Name = component + "@" + h.nameOf(folderName, cookie)
	}
	p, err := f.open()
	if err != nil {
		problem("%v", err)
		return s, nil
	}
	defer p.close()
	if len(p.links) == 0 {
		problem("it is attached nowhere")
	}
	ours, err := ourLinks(h.root)
	if err != nil {
		problem("%v", err)
	}
	for pin, l := range p.links {
		where := whereOf(pin)
		if isDetached(l) {
			problem("what it was attached to is gone (%s): run %s up", pin, command)
			continue
		}
		if p, ok := tcxOf(l); ok && where != "" && !isElsewhere {
			now, err := net.InterfaceByIndex(p.device)
			_, isHere := p.chain()
			switch {
			case !isHere:
				problem("interface %s is in another network namespace now: run %s up there, and "+
					"here without it", where, command)
			case err == nil && now.Name != where:
				name := shownName(now.Name)
				problem("interface %s is now called %s: %s", where, name,
					afterRename(component, where, name))
				where = name
			}
			if text := p.hidden(ours); text != "" {
				problem("%s: %s: run %s up, which puts it before them", pin, text, command)
			}
		}
		if where != "" && !slices.Contains(s.Where, where) {
			s.Where = append(s.Where, where)
		}
	}
	slices.Sort(s.Where)
	slices.Sort(s.Problems)
	types, err := st.mapTypes()
	if err != nil {
		problem("%v", err)
		return s, nil
	}
	if err := readCounts(component, p, types, s.Counts); err != nil {
		problem("%v", err)
		return s, nil
	}
	if err := s.addClock(p); err != nil {
		problem("%v", err)
		return s, nil
	}
	if s.flows, err = readFlows(component, p, types); err != nil {
		problem("%v", err)
		return s, nil
	}
	if hasFlows(component, p) {
		s.countFlows()
	}
	s.addDoubts()
	return s, nil
}

// whereOf returns the interface of a pin, such as eth0:np_ingress; empty for one that is at none.
func whereOf(pin string) string {
	if name, _, ok := strings.Cut(pin, pinMark); ok {
		return pinUnescapes.Replace(name)
	}
	number, _, _ := strings.Cut(pin, "_") // of an earlier version
	index, err := strconv.Atoi(number)
	if err != nil {
		return ""
	}
	device, err := net.InterfaceByIndex(index)
	if err != nil {
		return fmt.Sprintf("interface %d, of another network namespace", index)
	}
	return shownName(device.Name)
}

// shownName quotes what is not for a terminal: an interface may be renamed to anything.
func shownName(name string) string {
	if isPrintable(name) {
		return name
	}
	return strconv.Quote(name)
}

// readCounts reads all counters of a component's programs.
func readCounts(
	name string, p *pinned, types loader.MapTypes, into map[string]uint64,
) error {
	for pin, m := range p.maps {
		if !loader.IsCounts(pin) {
			continue
		}
		counts, err := tc.ReadCounts(pin, m, types)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		maps.Copy(into, counts)
	}
	if err := portCounts(p, into); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	return nil
}

// differences compares what runs with the configuration. Interfaces that are not there, and a line
// rate or round trip that is not known, are differences like others: the rest is compared.
func (h *Host) differences(
	ctx context.Context, c *Config, running []ComponentStatus,
) ([]string, error) {
	out := []string{}
	planned, err := h.plan(ctx, c)
	if errors.Is(err, ErrNotReady) {
		out = append(out, err.Error())
		planned, err = h.plan(ctx, c.asRuns(running))
	}
	if err != nil {
		return nil, err
	}
	for _, p := range planned {
		if _, err := devicesOf(p.interfaces); err != nil {
			out = append(out, fmt.Sprintf("%s: %v", p.name, err))
		}
		i := slices.IndexFunc(running, func(r ComponentStatus) bool { return r.Name == p.name })
		if i < 0 {
			out = append(out, p.name+" does not run")
			continue
		}
		out = append(out, compareSettings(p.name, running[i].Settings, p.settings)...)
	}
	for _, r := range running {
		isPlanned := func(p component) bool { return p.name == r.Name }
		if !r.IsOthers && !isSwitchPort(r.Name) && !slices.ContainsFunc(planned, isPlanned) {
			out = append(out, r.Name+" runs, and is not configured")
		}
	}
	return out, nil
}

// asRuns returns the configuration with the line rate and round trip that were found when what runs
// was set up.
func (c *Config) asRuns(running []ComponentStatus) *Config {
	found := *c
	for _, r := range running {
		if rate, err := config.ParseRate(r.Setting("line_rate")); err == nil {
			found.LineRate = cmp.Or(found.LineRate, rate)
		}
		if rtt, err := config.ParseDuration(r.Setting("rtt")); err == nil {
			found.RTT = cmp.Or(found.RTT, rtt)
		}
	}
	found.Cgroups = slices.DeleteFunc(slices.Clone(c.Cgroups), func(g Cgroup) bool {
		_, err := os.Stat(g.Path)
		return err != nil
	})
	found.LineRate = cmp.Or(found.LineRate, loader.MaxRateBps)
	found.RTT = cmp.Or(found.RTT, config.Second)
	return &found
}

func compareSettings(name string, runs, asked []Setting) []string {
	var out []string
	for _, s := range asked {
		if now := settingIn(runs, s.Key); now != s.Value {
			out = append(out,
				fmt.Sprintf("%s: %s is %q, %q is configured", name, s.Key, now, s.Value))
		}
	}
	return out
}
