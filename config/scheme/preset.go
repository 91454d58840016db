// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"github.com/pcn-linux/pcn/config"
)

// presetFiles holds sets of values for schemes' parameters, one file per section.
//
//go:embed presets
var presetFiles embed.FS

// presetFile is a file of presets.
type presetFile struct {
	Sets []Preset `yaml:"sets"`
}

// Preset is a set of values with their sources.
type Preset struct {
	// Name is the value of the key set in files.
	Name string `yaml:"name"`
	// Source is the source of the values without one of their own.
	Source string `yaml:"source"`
	// Values holds the values by key.
	Values map[string]PresetValue `yaml:"values"`

	formulas map[string]*formula
}

// PresetValue is the value of a parameter in a set.
type PresetValue struct {
	// Is is the value, or a formula.
	Is string `yaml:"is"`
	// From is its source, if that is not the set's.
	From string `yaml:"from"`
}

// readPresets reads the presets of a section. There may be none.
func readPresets(section string) ([]Preset, error) {
	name := "presets/" + section + ".yaml"
	data, err := presetFiles.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	return parsePresets(name, data)
}

func parsePresets(name string, data []byte) ([]Preset, error) {
	d := config.NewDecoder(name, "file of presets", "sets:")
	var f presetFile
	if root := d.Root(data); root != nil {
		d.Decode(root, &f)
	}
	return f.Sets, d.Err()
}

// sets returns the sets of values, which are read when they are first asked for. Tests cover them,
// so an error is a mistake in the build.
func (o *Object) sets() []Preset {
	o.readOnce.Do(func() {
		sets, err := readPresets(o.section)
		if err == nil {
			err = o.addPresets(sets)
		}
		if err != nil {
			panic(fmt.Sprintf("scheme: %v", err))
		}
	})
	return o.presets
}

// addPresets adds sets of values to the object; it fails for unknown keys.
func (o *Object) addPresets(sets []Preset) error {
	for _, s := range sets {
		if s.Name == "" {
			return fmt.Errorf("preset of control %s has no name", o.Control)
		}
		if slices.ContainsFunc(o.presets, func(p Preset) bool { return p.Name == s.Name }) {
			return fmt.Errorf("duplicate preset %s of control %s", s.Name, o.Control)
		}
		s.formulas = map[string]*formula{}
		for key, v := range s.Values {
			p := o.Param(key)
			if p == nil {
				return fmt.Errorf("preset %s of control %s: there is no parameter %q", s.Name,
					o.Control, key)
			}
			var err error
			if p.byDefault == nil {
				_, err = p.Kind.parse(v.Is, p.choices)
			} else {
				s.formulas[key], err = parseFormula(v.Is)
			}
			if err != nil {
				return fmt.Errorf("preset %s of control %s: %s: %w", s.Name, o.Control, key, err)
			}
		}
		o.presets = append(o.presets, s)
	}
	return nil
}

// Presets returns the sets, the default first.
func (o *Object) Presets() []Preset { return slices.Clone(o.sets()) }

// PresetNames returns the names of the sets, the default first.
func (o *Object) PresetNames() []string {
	var all []string
	for _, s := range o.sets() {
		all = append(all, s.Name)
	}
	return all
}

// preset returns a set by its name; the first for an empty name.
func (o *Object) preset(name string) (Preset, error) {
	sets := o.sets()
	if len(sets) == 0 {
		if name != "" {
			return Preset{}, fmt.Errorf("unknown set of parameters %q: the scheme has no sets",
				name)
		}
		return Preset{}, nil
	}
	if name == "" {
		return sets[0], nil
	}
	i := slices.IndexFunc(sets, func(s Preset) bool { return s.Name == name })
	if i < 0 {
		return sets[0], fmt.Errorf("unknown set of parameters %q", name)
	}
	return sets[i], nil
}
