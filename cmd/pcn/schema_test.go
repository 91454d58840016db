// SPDX-License-Identifier: Apache-2.0

package main

import (
	"encoding/json"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestSchema(t *testing.T) {
	for _, tc := range []struct {
		args []string
		key  string // that it has
	}{
		{nil, "topology"},
		{[]string{"experiment"}, "dcqcn"},
		{[]string{"host"}, "controls"},
	} {
		out, code, err := pcn(t, append([]string{"schema"}, tc.args...)...)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(code, 0))
		var schema struct {
			Schema     string         `json:"$schema"`
			Properties map[string]any `json:"properties"`
		}
		qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(out), &schema)))
		qt.Check(t, qt.Equals(schema.Schema, "https://json-schema.org/draft/2020-12/schema"))
		qt.Check(t, qt.IsNotNil(schema.Properties[tc.key]))
	}
	_, _, err := pcn(t, "schema", "hots")
	var usage usageError
	qt.Check(t, qt.ErrorAs(err, &usage))
	qt.Check(t, qt.ErrorMatches(err, `unknown kind of file "hots" \(hint: did you mean "host"\?\)`))
}
