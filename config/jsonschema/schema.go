// SPDX-License-Identifier: Apache-2.0

// Package jsonschema makes JSON schemas (draft 2020-12) of the structs that files are decoded into,
// so that editors complete and check files. Keys are those that package config decodes.
package jsonschema

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"reflect"
	"slices"

	"go.yaml.in/yaml/v3"

	"github.com/pcn-linux/pcn/config"
)

// Schema is a JSON schema. Zero fields are left out.
type Schema struct {
	Schema      string `json:"$schema,omitempty"`
	Title       string `json:"title,omitempty"`
	Description string `json:"description,omitempty"`
	Ref         string `json:"$ref,omitempty"`

	// Type is a [Type], or several: Types.
	Type             any      `json:"type,omitempty"`
	Enum             []string `json:"enum,omitempty"`
	Pattern          string   `json:"pattern,omitempty"`
	Minimum          *float64 `json:"minimum,omitempty"`
	Maximum          *float64 `json:"maximum,omitempty"`
	ExclusiveMinimum *float64 `json:"exclusiveMinimum,omitempty"`
	ExclusiveMaximum *float64 `json:"exclusiveMaximum,omitempty"`

	Properties map[string]*Schema `json:"properties,omitempty"`
	// AdditionalProperties is false or a *Schema.
	AdditionalProperties any       `json:"additionalProperties,omitempty"`
	PropertyNames        *Schema   `json:"propertyNames,omitempty"`
	Required             []string  `json:"required,omitempty"`
	Items                *Schema   `json:"items,omitempty"`
	PrefixItems          []*Schema `json:"prefixItems,omitempty"`
	MinItems             int       `json:"minItems,omitempty"`
	MaxItems             int       `json:"maxItems,omitempty"`

	AnyOf []*Schema `json:"anyOf,omitempty"`
	If    *Schema   `json:"if,omitempty"`
	Then  *Schema   `json:"then,omitempty"`
	Else  *Schema   `json:"else,omitempty"`

	Defs map[string]*Schema `json:"$defs,omitempty"`
}

// Type is what a value is in JSON.
type Type string

// The types.
const (
	String  Type = "string"
	Integer Type = "integer"
	Number  Type = "number"
	Boolean Type = "boolean"
	Object  Type = "object"
	Array   Type = "array"
)

// Types is a list of types, of which a value has one.
type Types []Type

// draft is the version of JSON Schema.
const draft = "https://json-schema.org/draft/2020-12/schema"

// Write writes the schema of a whole file.
func (s *Schema) Write(w io.Writer) error {
	whole := *s
	whole.Schema, whole.Defs = draft, definitions()
	return whole.write(w)
}

func (s *Schema) write(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	if err := e.Encode(s); err != nil {
		return fmt.Errorf("write the JSON schema: %w", err)
	}
	return nil
}

// definitions returns the schemas of values with units. YAML reads a 0 without a unit as a number.
func definitions() map[string]*Schema {
	withUnit := func(pattern string) *Schema {
		return &Schema{
			Type: Types{String, Integer}, Pattern: pattern, Minimum: new(0.0), Maximum: new(0.0),
		}
	}
	return map[string]*Schema{
		"rate":     withUnit(config.RatePattern),
		"time":     withUnit(config.DurationPattern),
		"size":     withUnit(config.BytesPattern),
		"ratio":    {Type: Types{String, Number}, Pattern: config.RatioPattern},
		"quantity": {Type: Types{String, Number}, Pattern: config.QuantityPattern},
	}
}

// Rate returns the schema of a [config.Rate].
func Rate() *Schema { return &Schema{Ref: "#/$defs/rate"} }

// Time returns the schema of a [config.Duration].
func Time() *Schema { return &Schema{Ref: "#/$defs/time"} }

// Size returns the schema of a [config.Bytes].
func Size() *Schema { return &Schema{Ref: "#/$defs/size"} }

// Ratio returns the schema of a [config.Ratio].
func Ratio() *Schema { return &Schema{Ref: "#/$defs/ratio"} }

// Quantity returns the schema of a [config.Quantity].
func Quantity() *Schema { return &Schema{Ref: "#/$defs/quantity"} }

// Text returns the schema of a text, which YAML may take for a number or a truth value.
func Text() *Schema { return &Schema{Type: Types{String, Number, Boolean}} }

// OneOf returns the schema of a text that is one of some names.
func OneOf[T ~string](names []T) *Schema {
	s := &Schema{Type: String}
	for _, n := range names {
		s.Enum = append(s.Enum, string(n))
	}
	return s
}

// List returns the schema of a list.
func List(items *Schema) *Schema { return &Schema{Type: Array, Items: items} }

// OneOrList returns the schema of an item, or a list of them.
func OneOrList(item *Schema) *Schema { return &Schema{AnyOf: []*Schema{item, List(item)}} }

// Mapping returns the schema of a mapping that has these keys and no others.
func Mapping(properties map[string]*Schema) *Schema {
	return &Schema{Type: Object, Properties: properties, AdditionalProperties: false}
}

// Maker makes schemas of Go types.
type Maker struct {
	// Types holds the schemas of types that decode themselves, and of enumerations.
	Types map[reflect.Type]*Schema
	// Structs holds what the Go types of structs do not say.
	Structs map[reflect.Type]Struct
}

// Struct holds what the Go type of a struct does not say.
type Struct struct {
	// Required are the keys that must be there.
	Required []string
	// OneRequired are keys of which at least one must be there.
	OneRequired []string
	// Alternatives are sets of keys of which one must be there as a whole, in place of OneRequired.
	Alternatives [][]string
	// Fields are the schemas of fields in place of those of their types.
	Fields map[string]*Schema
}

// Extended is a struct that takes more keys than its fields have, a [config.Extra].
type Extended interface {
	config.Extra
	// ExtraSchemas returns the schemas of the values of these keys.
	ExtraSchemas() map[string]*Schema
}

// Of returns the schema of files that are decoded into v, a pointer. It panics for an unknown type,
// which is a mistake in the program.
func (m Maker) Of(v any) *Schema { return m.of(reflect.ValueOf(v).Elem()) }

// The schemas of types of package config.
var configTypes = map[reflect.Type]func() *Schema{
	reflect.TypeFor[config.Rate]():     Rate,
	reflect.TypeFor[config.Duration](): Time,
	reflect.TypeFor[config.Bytes]():    Size,
	reflect.TypeFor[config.Ratio]():    Ratio,
	reflect.TypeFor[config.Quantity](): Quantity,
}

// of returns the schema of an addressable value.
func (m Maker) of(v reflect.Value) *Schema {
	t := v.Type()
	if s, ok := m.Types[t]; ok {
		return s
	}
	if s, ok := configTypes[t]; ok {
		return s()
	}
	if _, ok := v.Addr().Interface().(yaml.Unmarshaler); ok {
		panic(fmt.Sprintf("jsonschema: %v decodes itself, and has no schema", t))
	}
	switch t.Kind() {
	case reflect.String:
		return Text()
	case reflect.Bool:
		return &Schema{Type: Boolean}
	case reflect.Int:
		return &Schema{Type: Integer}
	case reflect.Uint, reflect.Uint64:
		return &Schema{Type: Integer, Minimum: new(0.0)}
	case reflect.Pointer:
		return m.ofType(t.Elem())
	case reflect.Map:
		return &Schema{Type: Object, AdditionalProperties: m.ofType(t.Elem())}
	case reflect.Slice:
		if _, ok := v.Interface().(config.OneOrMore); ok {
			return OneOrList(m.ofType(t.Elem()))
		}
		return List(m.ofType(t.Elem()))
	case reflect.Struct:
		return m.ofStruct(v)
	default:
		panic(fmt.Sprintf("jsonschema: there is no schema of %v", t))
	}
}

func (m Maker) ofType(t reflect.Type) *Schema { return m.of(reflect.New(t).Elem()) }

func (m Maker) ofStruct(v reflect.Value) *Schema {
	t := v.Type()
	more := m.Structs[t]
	s := Mapping(map[string]*Schema{})
	for _, f := range config.KeyedFields(t) {
		if s.Properties[f.Key] = more.Fields[f.Key]; s.Properties[f.Key] == nil {
			s.Properties[f.Key] = m.of(v.FieldByIndex(f.Index))
		}
	}
	if x, ok := v.Addr().Interface().(config.Extra); ok {
		addExtra(s, t, x)
	}
	alternatives := more.Alternatives
	for _, key := range more.OneRequired {
		alternatives = append(alternatives, []string{key})
	}
	named := slices.Concat(more.Required, slices.Concat(alternatives...),
		slices.Collect(maps.Keys(more.Fields)))
	for _, key := range named {
		if s.Properties[key] == nil {
			panic(fmt.Sprintf("jsonschema: %v has no key %q", t, key))
		}
	}
	s.Required = more.Required
	for _, keys := range alternatives {
		s.AnyOf = append(s.AnyOf, &Schema{Required: keys})
	}
	return s
}

// addExtra adds the keys of a struct that are of no field.
func addExtra(s *Schema, t reflect.Type, x config.Extra) {
	extended, ok := x.(Extended)
	if !ok {
		panic(fmt.Sprintf("jsonschema: %v takes more keys, and has no schemas of them", t))
	}
	schemas := extended.ExtraSchemas()
	for _, key := range x.ExtraKeys() {
		if schemas[key] == nil {
			panic(fmt.Sprintf("jsonschema: %v has no schema of key %q", t, key))
		}
		s.Properties[key] = schemas[key]
	}
}
