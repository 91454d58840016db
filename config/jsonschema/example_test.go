// SPDX-License-Identifier: Apache-2.0

package jsonschema_test

import (
	"fmt"
	"reflect"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/config/jsonschema"
)

// A schema of one's own file, for editors.
func ExampleMaker() {
	type file struct {
		// Rate is that of the link.
		Rate config.Rate `yaml:"rate"`
	}
	m := jsonschema.Maker{Structs: map[reflect.Type]jsonschema.Struct{
		reflect.TypeFor[file](): {Required: []string{"rate"}},
	}}
	s := m.Of(&file{}) // s.Write writes it
	fmt.Println(s.Required)
	// Output: [rate]
}
