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
		{"x: 1\ny: 2\na: [1, 2\nb: 3\n", `f.yaml:3:4: .*\(hint: close this bracket\)`},
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

// decoded has each kind of value that a file may have.
type decoded struct {
	Name  string              `yaml:"name"`
	On    bool                `yaml:"on"`
	Low   int                 `yaml:"low"`
	Inner struct{ A, B uint } // no key: not of the file
	Part  part                `yaml:"part"`
	Again *part               `yaml:"again"`
	List  []part              `yaml:"list"`
	Map   map[string]int      `yaml:"map"`
}

type part struct {
	Count uint   `yaml:"count"`
	Text  string `yaml:"text"`
}

func TestDecode(t *testing.T) {
	const text = `name: x
on: true
low: -2
part: &p {count: 3, text: y}
again: *p
list: [{count: 1}, {text: z}]
map: {a: 1, b: 2}
`
	d := NewDecoder("f.yaml", "file", "name")
	root := d.Root([]byte(text))
	var got decoded
	d.Decode(root, &got)
	qt.Assert(t, qt.IsNil(d.Err()))
	three := part{3, "y"}
	qt.Check(t, qt.DeepEquals(got, decoded{
		Name: "x", On: true, Low: -2, Part: three, Again: &three,
		List: []part{{Count: 1}, {Text: "z"}}, Map: map[string]int{"a": 1, "b": 2},
	}))
	var keys []string
	d = NewDecoder("f.yaml", "file", "name")
	d.EachKey("", d.Root([]byte("{a: 1, b: 2, a: 3}")),
		func(key string, at, value *yaml.Node) {
			keys = append(keys, key+value.Value)
			d.Nodes["."+key] = value
		})
	qt.Check(t, qt.DeepEquals(keys, []string{"a1", "b2"}))
	qt.Check(t, qt.ErrorMatches(d.Err(), `f.yaml:1:14: duplicate key "a" .*`))
}

// Each mistake has one message, in the order of the file.
func TestDecodeMistakes(t *testing.T) {
	for _, c := range []struct{ text, want string }{
		{"name: x\nname: y\n", `f.yaml:2:1: duplicate key "name" \(hint: keep one of them\)`},
		{"nam: x\non: maybe\n", `f.yaml:1:1: unknown key "nam" \(hint: did you mean "name"\?\)\n` +
			`f.yaml:2:5: invalid value "maybe": want true or false`},
		{"nam: x\nname: y\n", `f.yaml:1:1: unknown key "nam" .*`},
		{"part: 3\n", `f.yaml:1:7: want a mapping .*`},
		{"part: {count: -1}\n", `f.yaml:1:15: "-1" is not a whole number in range .*`},
		{"name: [x]\n", `f.yaml:1:7: want a single value, not a list or a mapping`},
		{"list: {count: 1}\n", `f.yaml:1:7: want a list .*`},
		{"map: {a: 1, a: 2}\n", `f.yaml:1:13: duplicate key "a" .*`},
		{"part:\n", `f.yaml:1:6: value is missing .*`},
	} {
		d := NewDecoder("f.yaml", "file", "name")
		var got decoded
		d.Decode(d.Root([]byte(c.text)), &got)
		qt.Check(t, qt.ErrorMatches(d.Err(), c.want), qt.Commentf("%q", c.text))
	}
}

// A value that is missing is told at what is around it; a bad value is told once.
func TestFailAtWhatIsThere(t *testing.T) {
	d := NewDecoder("f.yaml", "file", "name")
	var got decoded
	d.Decode(d.Root([]byte("on: maybe\npart: {text: y}\nlow: 7\n")), &got)
	d.Fail("on", "told already", "")
	d.Fail("part.count", "no count", "")
	qt.Check(t, qt.IsTrue(d.FailedAt("part")))
	qt.Check(t, qt.IsFalse(d.FailedAt("low")))
	for _, bound := range []int{6, 7, 8} {
		CountInRange(d, "low", got.Low, bound, 7)
		CountInRange(d, "low", got.Low, 7, bound)
	}
	qt.Check(t, qt.ErrorMatches(d.Err(), `f.yaml:1:5: invalid value .*\n`+
		`f.yaml:2:7: no count\n`+
		`f.yaml:3:6: 7 is out of range \(hint: 7 to 6\)\n`+
		`f.yaml:3:6: 7 is out of range \(hint: 8 to 7\)`))
}
