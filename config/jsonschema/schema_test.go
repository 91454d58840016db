// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"bytes"
	"reflect"
	"testing"

	"github.com/go-quicktest/qt"
	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

type colour string

type inner struct {
	Size  config.Bytes     `yaml:"size"`
	Share *config.Ratio    `yaml:"share"`
	Max   *config.Quantity `yaml:"max"`
}

type outer struct {
	inner   `yaml:",inline"`
	Name    string          `yaml:"name"`
	On      bool            `yaml:"on"`
	Count   int             `yaml:"count"`
	Seed    uint64          `yaml:"seed"`
	Colours []colour        `yaml:"colours"`
	By      map[string]uint `yaml:"by"`
	Hidden  string
}

func TestSchemaOfStruct(t *testing.T) {
	m := Maker{
		Types: map[reflect.Type]*Schema{
			reflect.TypeFor[colour](): OneOf([]colour{"red", "green"}),
		},
		Structs: map[reflect.Type]Struct{
			reflect.TypeFor[outer](): {
				Required: []string{"name"}, OneRequired: []string{"size", "max"},
			},
		},
	}
	var text bytes.Buffer
	qt.Assert(t, qt.IsNil(m.Of(&outer{}).Write(&text)))
	start, _, _ := bytes.Cut(text.Bytes(), []byte(",\n  \"$defs\""))
	qt.Assert(t, qt.JSONEquals(string(start)+"}", map[string]any{
		"$schema":              "https://json-schema.org/draft/2020-12/schema",
		"type":                 "object",
		"additionalProperties": false,
		"required":             []string{"name"},
		"anyOf": []any{
			map[string]any{"required": []string{"size"}},
			map[string]any{"required": []string{"max"}},
		},
		"properties": map[string]any{
			"size":  map[string]any{"$ref": "#/$defs/size"},
			"share": map[string]any{"$ref": "#/$defs/ratio"},
			"max":   map[string]any{"$ref": "#/$defs/quantity"},
			"name":  map[string]any{"type": []string{"string", "number", "boolean"}},
			"on":    map[string]any{"type": "boolean"},
			"count": map[string]any{"type": "integer"},
			"seed":  map[string]any{"type": "integer", "minimum": 0},
			"colours": map[string]any{
				"type":  "array",
				"items": map[string]any{"type": "string", "enum": []string{"red", "green"}},
			},
			"by": map[string]any{
				"type":                 "object",
				"additionalProperties": map[string]any{"type": "integer", "minimum": 0},
			},
		},
	}))
}

type decodesItself struct{}

func (*decodesItself) UnmarshalYAML(*yaml.Node) error { return nil }

type takesMore struct{}

func (*takesMore) ExtraKeys() []string { return []string{"more"} }

func (*takesMore) DecodeExtra(*config.Decoder, string, string, *yaml.Node) {}

type saysLess struct{ takesMore }

func (*saysLess) ExtraSchemas() map[string]*Schema { return nil }

// What a schema would be wrong about is a mistake in the program.
func TestTypesWithoutSchema(t *testing.T) {
	for want, v := range map[string]any{
		`decodesItself decodes itself, and has no schema`:       &decodesItself{},
		`there is no schema of float32`:                         new(float32),
		`takesMore takes more keys, and has no schemas of them`: &takesMore{},
		`saysLess has no schema of key "more"`:                  &saysLess{},
		`inner has no key "sise"`:                               &inner{},
	} {
		m := Maker{
			Structs: map[reflect.Type]Struct{
				reflect.TypeFor[inner](): {Required: []string{"sise"}},
			},
		}
		qt.Check(t, qt.PanicMatches(func() { m.Of(v) }, `jsonschema: (jsonschema\.)?`+want))
	}
}
