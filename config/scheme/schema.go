// SPDX-License-Identifier: Apache-2.0

package scheme

import (
	"errors"
	"fmt"
	"maps"
	"strings"

	"github.com/pcn-linux/pcn/config/jsonschema"
)

// JSONSchema returns the schema of the mappings that Decode reads. extra holds the schemas of the
// extra keys.
func (s Section) JSONSchema(extra map[string]*jsonschema.Schema) *jsonschema.Schema {
	root := jsonschema.Mapping(map[string]*jsonschema.Schema{})
	if names := s.Object.PresetNames(); len(names) > 0 {
		set := jsonschema.OneOf(names)
		set.Description = fmt.Sprintf("Whose values are the defaults. Default: %s.", names[0])
		root.Properties[setKey] = set
	}
	for _, p := range s.Object.Params {
		if s.takes(p) {
			propertiesAround(root, p.Key)[lastKey(p.Key)] = s.Object.paramSchema(p)
		}
	}
	maps.Copy(root.Properties, extra)
	return root
}

// propertiesAround returns the properties of the mapping that contains a key, and adds the mapping
// if needed.
func propertiesAround(root *jsonschema.Schema, key string) map[string]*jsonschema.Schema {
	for {
		mapping, rest, ok := strings.Cut(key, ".")
		if !ok {
			return root.Properties
		}
		if root.Properties[mapping] == nil {
			root.Properties[mapping] = jsonschema.Mapping(map[string]*jsonschema.Schema{})
		}
		root, key = root.Properties[mapping], rest
	}
}

func lastKey(key string) string { return key[strings.LastIndexByte(key, '.')+1:] }

func (o *Object) paramSchema(p Param) *jsonschema.Schema {
	s := p.kindSchema()
	if p.Auto != "" {
		s = &jsonschema.Schema{AnyOf: []*jsonschema.Schema{s, jsonschema.OneOf([]string{Auto})}}
	}
	s.Description = p.Doc + "."
	if p.Range != "" {
		s.Description += " " + p.Range + "."
	}
	s.Description += " Default: " + o.defaultInWords(p) + "."
	if p.Auto != "" {
		s.Description += " auto: " + p.Auto + "."
	}
	if p.OnHosts != "" {
		s.Description += " On hosts: " + p.OnHosts + "."
	}
	return s
}

func (p Param) kindSchema() *jsonschema.Schema {
	switch p.Kind {
	case KindRate:
		return jsonschema.Rate()
	case KindTime:
		return jsonschema.Time()
	case KindBytes:
		return jsonschema.Size()
	case KindFlag:
		return &jsonschema.Schema{Type: jsonschema.Boolean}
	case KindChoice:
		return jsonschema.OneOf(p.Choices)
	case KindCount:
		s := &jsonschema.Schema{Type: jsonschema.Integer}
		p.limit(s)
		return s
	default:
		s := jsonschema.Ratio()
		p.limit(s)
		return s
	}
}

// limit adds bounds that are plain numbers. JSON schemas can't limit values that are texts with
// units.
func (p Param) limit(s *jsonschema.Schema) {
	if low, ok := p.low.constant(); ok {
		if p.aboveLow {
			s.ExclusiveMinimum = &low
		} else {
			s.Minimum = &low
		}
	}
	if high, ok := p.high.constant(); ok {
		if p.belowHigh {
			s.ExclusiveMaximum = &high
		} else {
			s.Maximum = &high
		}
	}
}

// constant returns the value of a formula without names.
func (f *formula) constant() (float64, bool) {
	if f == nil || len(f.names) > 0 {
		return 0, false
	}
	number, err := f.eval(
		func(string) (float64, error) { return 0, errors.New("it names something") },
	)
	return number, err == nil
}

// defaultInWords returns the default, or those of all sets: "55us (paper), 1us (hpcc)".
func (o *Object) defaultInWords(p Param) string {
	var all []string
	for _, set := range o.sets() {
		if v, ok := set.Values[p.Key]; ok {
			all = append(all, fmt.Sprintf("%s (%s)", v.Is, set.Name))
		}
	}
	if len(all) == 0 {
		return p.Default
	}
	return strings.Join(all, ", ")
}
