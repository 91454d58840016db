// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"testing"

	"github.com/go-quicktest/qt"
)

const dependentYAML = `name: dependent
topology: {kind: star, hosts: 8}
schemes: [pfc]
duration: 10ms
flows:
  - {name: a, from: H0..H1, to: H2, size: 1MB}
  - {name: b, from: H2, to: H3, size: 1MB, after: [a + 10us, c]}
  - {name: endless, from: H2, to: H3}
collective:
  name: c
  kind: ring-all-reduce
  ranks: H4..H7
  size: 1MB
  chunks: 2
  stragglers: [{host: H5, late: 10us}]
`

func TestErrorsOfDependencies(t *testing.T) {
	testErrors(t, dependentYAML, []spoilt{
		{"unknown flow", "[a + 10us, c]", "aa", "aa}",
			`unknown flow "aa" (hint: one of a, b, endless, c, a-H0-0, a-H1-0, ` +
				`c-H4-H5, c-H5-H6, c-H6-H7, c-H7-H4)`},
		{"no name", "[a + 10us, c]", `["+ 10us"]`, "[\"+ 10us",
			`"+ 10us" names no flow (hint: write F0 or F0 + 10us)`},
		{"no unit", "[a + 10us, c]", "a + 10", "a + 10",
			`"10": unit is missing (hint: write a time as 5us)`},
		{"negative", "[a + 10us, c]", "a + -1us", "a + -1us",
			`delay -1us is out of range (hint: 0s to 100s)`},
		{"endless", "[a + 10us, c]", "endless", "endless}",
			`b waits for flow endless, which never ends (hint: give it a size)`},
		{"itself", "[a + 10us, c]", "b", "b}",
			`flows wait for each other: b waits for b (hint: have one of them ` +
				`start at a time)`},
		{"its own flow", "from: H0..H1, to: H2, size: 1MB",
			"from: H0..H1, to: H2, size: 1MB, after: a-H0-0", "a-H0-0",
			`flows wait for each other: a waits for a (hint: have one of them ` +
				`start at a time)`},
		{"circle", "name: c\n", "name: c\n  after: b\n", "[a",
			`flows wait for each other: b waits for c waits for b (hint: have ` +
				`one of them start at a time)`},
		{"start", "after: [a", "start: 1ms, after: [a", "1ms",
			`"start" is given, and flows start after others (hint: keep one of ` +
				`them: after: F0 + 10us has a delay)`},
		{"kind", "ring-all-reduce", "ring-all-reduc", "ring-all-reduc",
			`unknown collective "ring-all-reduc" (hint: did you mean ` +
				`"ring-all-reduce"?)`},
		{"ranks", "ranks: H4..H7", "ranks: [H4, H9]", "[H4, H9",
			`unknown host "H9" (hint: did you mean "H0"?)`},
		{"a rank twice", "ranks: H4..H7", "ranks: [H4, H4]", "[H4, H4",
			`duplicate rank's host "H4" (hint: keep one of them)`},
		{"one rank", "ranks: H4..H7", "ranks: [H4]", "[H4]",
			`1 ranks are out of range (hint: 2 to 4096)`},
		{"chunks", "ring-all-reduce", "all-to-all", "2",
			`an all-to-all passes nothing on, so it has no chunks (hint: remove ` +
				`chunks:)`},
		{"straggler", "host: H5", "host: H0", "H0",
			`unknown rank's host "H0" (hint: did you mean "H4"?)`},
		{"no size", "  size: 1MB\n", "", "name: c", `"size" is missing (hint: add size:)`},
		{"name", "name: c\n", "name: a\n", "a",
			`duplicate name "a" (hint: give each flow and burst its own name)`},
	})
}

// What a ring's messages wait for: from the second step on, for the message before from the rank
// before.
func TestWaitsOfARing(t *testing.T) {
	e, err := Parse("f.yaml", []byte(`name: ring
topology: {kind: star, hosts: 3}
schemes: [pfc]
duration: 10ms
collective: {kind: ring-all-reduce, ranks: [H2, H0, H1], size: 1000B}
`))
	qt.Assert(t, qt.IsNil(err))
	var names []string
	for _, f := range e.Flows {
		names = append(names, f.Name)
		qt.Check(t, qt.Equals(f.Message, 334))
		qt.Check(t, qt.Equals(f.Size, 4*334))
	}
	qt.Check(t, qt.DeepEquals(names, []string{"c-H2-H0", "c-H0-H1", "c-H1-H2"}))
	waits := map[Part]Part{}
	for _, w := range e.Waits {
		waits[w.Then[0]] = w.For[0]
	}
	want := map[Part]Part{}
	for flow := range int32(3) {
		for message := int32(2); message <= 4; message++ {
			want[Part{flow, message}] = Part{(flow + 2) % 3, message - 1}
		}
	}
	qt.Check(t, qt.DeepEquals(waits, want))
}
