// SPDX-License-Identifier: Apache-2.0

package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/pcn-linux/pcn/host/internal/bpffs"
)

// Preview returns what Up would do, with the settings that would change in the notes. It loads and
// verifies all programs, and changes nothing.
func (h *Host) Preview(ctx context.Context, c *Config) (changes []Change, err error) {
	if err := HaveKernel(); err != nil {
		return nil, err
	}
	if err := bpffs.CheckMount(h.root); err != nil {
		return nil, err
	}
	if _, err := c.key(); err != nil {
		return nil, err
	}
	components, err := h.plan(ctx, c)
	if err != nil {
		return nil, err
	}
	if err := c.checkCgroups(); err != nil {
		return nil, err
	}
	s, err := h.survey()
	if err != nil {
		return nil, err
	}
	var t transaction // nothing to undo, much to free
	defer func() { err = t.end(err) }()
	objects, err := h.load(&t, s, components)
	if err != nil {
		return nil, err
	}
	for i, one := range components {
		d, err := s.decide(h.folder(one.folderIn(s.here)), one, objects[i])
		if err != nil {
			return nil, err
		}
		change := d.Change
		change.Note = strings.Join(append(d.details(), nonEmpty(change.Note)...), "; ")
		changes = append(changes, change)
	}
	removed, err := h.removals(s, s.unwanted(components))
	if err != nil {
		return nil, err
	}
	for _, one := range removed {
		changes = append(changes, one.Change)
	}
	return append(changes, wouldReselect(changes)...), nil
}

func nonEmpty(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// details says what a change would be, by the settings.
func (d decision) details() []string {
	if d.What == Kept {
		return nil
	}
	var before state
	if d.now != nil {
		before = *d.now
	}
	var out []string
	for _, s := range d.want.Settings {
		switch was := before.setting(s.Key); {
		case d.What == Added && s.Value != "":
			out = append(out, s.Key+" "+s.Value)
		case d.What == Changed && was != s.Value:
			out = append(out, fmt.Sprintf("%s %s to %s", s.Key, orNone(was), orNone(s.Value)))
		}
	}
	if d.What == Changed && len(out) == 0 {
		out = append(out, "other programs, or other places")
	}
	return []string{strings.Join(out, ", ")}
}

func orNone(value string) string {
	if value == "" {
		return "none"
	}
	return value
}

// wouldReselect returns the namespaces that chose a control which gets new programs.
func wouldReselect(changes []Change) []Change {
	var controls []string
	for _, c := range changes {
		name, ok := strings.CutPrefix(c.Component, ControlPrefix)
		if ok && c.What != Kept && c.What != Removed {
			controls = append(controls, name)
		}
	}
	chosen, _, err := Choices(controls)
	if err != nil {
		return nil
	}
	var out []Change
	for _, c := range chosen {
		out = append(out, Change{Component: ControlPrefix + c.Control, What: Reselected,
			Namespace: c.Namespace.String()})
	}
	return out
}
