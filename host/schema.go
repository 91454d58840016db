// SPDX-License-Identifier: Apache-2.0

package host

import (
	"reflect"

	"github.com/pcn-linux/pcn/config/jsonschema"
)

// Schema returns the JSON schema of host files.
func Schema() *jsonschema.Schema {
	m := jsonschema.Maker{
		Types: map[reflect.Type]*jsonschema.Schema{reflect.TypeFor[Period](): periodSchema},
		Structs: map[reflect.Type]jsonschema.Struct{
			reflect.TypeFor[Cgroup](): {Required: []string{"path", "control"}},
		},
	}
	for _, p := range allParts(&Config{}) {
		m.Structs[reflect.TypeOf(p).Elem()] = jsonschema.Struct{Required: p.required()}
	}
	s := m.Of(&Config{})
	s.Title = "PCN for Linux: host"
	s.Description = "What pcn host up loads. pcn docs host describes the keys."
	return s
}
