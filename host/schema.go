// SPDX-License-Identifier: Apache-2.0

package host

import (
	"reflect"

	"github.com/pcn-linux/pcn/config/jsonschema"
	"github.com/pcn-linux/pcn/config/scheme"
)

// Schema returns the JSON schema of host files.
func Schema() *jsonschema.Schema {
	s := schemaMaker.Of(&Config{})
	s.Title = "PCN for Linux: host"
	s.Description = "What pcn host up loads. pcn docs host describes the keys."
	return s
}

var interfacesRequired = jsonschema.Struct{Required: []string{"interfaces"}}

var schemaMaker = jsonschema.Maker{Types: map[reflect.Type]*jsonschema.Schema{
	reflect.TypeFor[Period](): periodSchema,
}, Structs: map[reflect.Type]jsonschema.Struct{
	reflect.TypeFor[NP]():       interfacesRequired,
	reflect.TypeFor[RP]():       interfacesRequired,
	reflect.TypeFor[Stamp]():    interfacesRequired,
	reflect.TypeFor[FirstRTT](): interfacesRequired,
	reflect.TypeFor[Cgroup]():   {Required: []string{"path", "control"}},
}}

// ExtraSchemas returns the schemas of the controls' parameters.
func (c *Controls) ExtraSchemas() map[string]*jsonschema.Schema {
	flows := &jsonschema.Schema{
		Type: jsonschema.Integer, Minimum: new(1.0), Maximum: new(float64(maxFlows)),
		Description: "Size of the flow table. Default: 65536.",
	}
	all := map[string]*jsonschema.Schema{}
	for _, s := range scheme.Builtin().OnLinux() {
		extra := map[string]*jsonschema.Schema{}
		if (Control{Scheme: s}).hasFlowTable() {
			extra[maxFlowsKey] = flows
		}
		all[s.Control] = sectionOf(s).JSONSchema(extra)
		all[s.Control].Description = s.Title + "."
	}
	return all
}
