// SPDX-License-Identifier: Apache-2.0

package jsonschema

import (
	"cmp"
	"encoding"
	"encoding/json"
	"io"
	"reflect"
	"strings"
)

// Null is the type of what is not there.
const Null Type = "null"

// OfOutput returns the schema of what [json.Marshal] writes of a type. Each key that has no
// omitempty is there; other keys may come.
func OfOutput(t reflect.Type) *Schema {
	switch {
	case t.Kind() == reflect.Pointer:
		return orNull(OfOutput(t.Elem()))
	case t.Kind() == reflect.Float64 && t.Implements(reflect.TypeFor[json.Marshaler]()):
		return &Schema{Type: Types{Number, Null}} // infinite, or undefined
	case t.Implements(reflect.TypeFor[encoding.TextMarshaler]()):
		return &Schema{Type: String}
	}
	switch t.Kind() {
	case reflect.Bool:
		return &Schema{Type: Boolean}
	case reflect.String:
		return &Schema{Type: String}
	case reflect.Float32, reflect.Float64:
		return &Schema{Type: Number}
	case reflect.Slice, reflect.Array:
		return &Schema{Type: Array, Items: OfOutput(t.Elem())}
	case reflect.Map:
		return &Schema{Type: Object, AdditionalProperties: OfOutput(t.Elem())}
	case reflect.Struct:
		s := &Schema{Type: Object, Properties: map[string]*Schema{}}
		s.addFields(t)
		return s
	case reflect.Interface:
		return &Schema{}
	default:
		return &Schema{Type: Integer}
	}
}

// orNull returns a schema that allows null, too.
func orNull(s *Schema) *Schema {
	with := *s
	switch t := s.Type.(type) {
	case Type:
		with.Type = Types{t, Null}
	case Types:
		with.Type = append(t[:len(t):len(t)], Null)
	}
	return &with
}

// addFields adds the keys of a struct, and of those that it embeds.
func (s *Schema) addFields(t reflect.Type) {
	for f := range t.Fields() {
		tag, tagged := f.Tag.Lookup("json")
		name, options, _ := strings.Cut(tag, ",")
		if f.Anonymous && !tagged {
			s.addFields(f.Type)
			continue
		}
		if !f.IsExported() || name == "-" {
			continue
		}
		name = cmp.Or(name, f.Name)
		s.Properties[name] = OfOutput(f.Type)
		if !strings.Contains(options, "omit") {
			s.Required = append(s.Required, name)
		}
	}
}

// WriteOutput writes the schema of a command's output.
func (s *Schema) WriteOutput(w io.Writer) error {
	whole := *s
	whole.Schema = draft
	return whole.write(w)
}
