// SPDX-License-Identifier: Apache-2.0

package config

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"go.yaml.in/yaml/v3"
)

func TestSuggestIsTheClosest(t *testing.T) {
	qt.Assert(t, qt.Equals(Suggest("hold", []string{"hole", "holds", "cold"}),
		`did you mean "hole"?`))
	qt.Assert(t, qt.Equals(Suggest("a", []string{"b"}), `one of b`))
	many := strings.Split(strings.Repeat("name ", 43), " ")
	qt.Assert(t, qt.Equals(Suggest("other", many[:43]),
		"one of "+strings.Repeat("name, ", 40)+"and 3 more"))
	qt.Assert(t, qt.Equals(Suggest("pnc", []string{"pfc", "pcn", "qcn"}), `did you mean "pcn"?`))
	qt.Assert(t, qt.Equals(Suggest("dcqn", []string{"dcqn", "dcqcn"}), `did you mean "dcqcn"?`))
	qt.Assert(t, qt.Equals(Suggest("dcqn", []string{"dcqn"}), ""))
	qt.Assert(t, qt.Equals(editDistance("ab", "ba"), 1))
	qt.Assert(t, qt.Equals(editDistance("kitten", "sitting"), 3))
	qt.Assert(t, qt.Equals(editDistance("", "abc"), 3))
}

func TestSyntaxErrorsHaveAPlace(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"a: 1\n  b: 2\n", `f.yaml:2:4: mapping values are not allowed .*\(hint: write text .*\)`},
		{"a: [1, 2\nb: 3\n", `f.yaml:1:4: did not find expected .*\(hint: close this bracket\)`},
		{"a: 1\n\tb: 2\n", `f.yaml:2:1: .*\(hint: indent with spaces.*\)`},
		{"a: 'x\n", `f.yaml:1:4: .*\(hint: close this quote\)`},
		{"b: 1\na: *x\n", `f.yaml:2:4: unknown anchor 'x' .*\(hint: .* in quotes\)`},
		{"", `f.yaml:1:1: file is empty \(hint: start with a\)`},
	} {
		d := NewDecoder("f.yaml", "file", "a")
		qt.Check(t, qt.IsNil(d.Root([]byte(c.text))))
		qt.Check(t, qt.ErrorMatches(d.Err(), c.want), qt.Commentf("%q", c.text))
	}
}

func TestValueIndex(t *testing.T) {
	for _, c := range []struct {
		text, key string
		want      int
	}{
		{"{a: 1, b: 2}", "a", 1},
		{"{a: 1, b: 2}", "b", 3},
		{"{a: 1, b: 2}", "c", -1},
		{"{a: b, c: d}", "b", -1}, // a value
		{"{}", "a", -1},
		{"[a, 1]", "a", -1}, // no mapping
		{"a", "a", -1},
	} {
		var doc yaml.Node
		qt.Assert(t, qt.IsNil(yaml.Unmarshal([]byte(c.text), &doc)))
		qt.Check(t, qt.Equals(ValueIndex(doc.Content[0], c.key), c.want),
			qt.Commentf("%s in %s", c.key, c.text))
	}
}
