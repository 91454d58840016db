// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
)

// The committed reference is what the sources say.
func TestReferenceIsUpToDate(t *testing.T) {
	committed, err := os.ReadFile("../../../docs/schemes.md")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(
		t, qt.Equals(string(committed), document(scheme.Builtin())),
		qt.Commentf("run go generate ./config/scheme"),
	)
}

// Every scheme has a chapter, with all that it says of itself.
func TestReferenceIsComplete(t *testing.T) {
	chapters := map[string]string{}
	for chapter := range strings.SplitSeq(document(scheme.Builtin()), "\n## ") {
		title, text, _ := strings.Cut(chapter, "\n")
		chapters[title] = text
	}
	for _, s := range scheme.Builtin().Schemes() {
		text := chapters[s.Name]
		qt.Assert(t, qt.IsTrue(text != ""), qt.Commentf("%s", s.Name))
		contains := func(what string) {
			qt.Check(
				t, qt.IsTrue(strings.Contains(text, what)), qt.Commentf("%s: %s", s.Name, what),
			)
		}
		contains(s.Title)
		for word := range strings.FieldsSeq(s.Source) { // which is wrapped
			contains(word)
		}
		for _, p := range s.Object.Params {
			contains("`" + p.Key + "`")
			contains(p.Doc)
			contains(p.Range)
			for _, choice := range p.Choices {
				contains("`" + choice + "`")
			}
		}
		for _, set := range s.Object.Presets() {
			contains("`" + set.Name + "`")
			contains(set.Source)
			for _, v := range set.Values {
				contains("`" + v.Is + "`")
				contains(v.From)
			}
		}
		for _, stat := range s.Object.Stats {
			contains("`" + stat.Key + "`")
			contains(stat.Doc)
		}
	}
	for _, name := range scheme.KernelControls() {
		qt.Check(t, qt.StringContains(chapters["Linux's own"], "`"+name+"`"))
	}
}

// Tables have at most six columns, and all rows of one as many.
func TestTablesAreNarrow(t *testing.T) {
	columns := 0
	for line := range strings.SplitSeq(document(scheme.Builtin()), "\n") {
		if !strings.HasPrefix(line, "|") {
			columns = 0
			qt.Check(t, qt.IsTrue(len(line) <= 100), qt.Commentf("%s", line))
			continue
		}
		n := strings.Count(line, "|") - 1
		qt.Check(t, qt.IsTrue(n <= 6), qt.Commentf("%s", line))
		qt.Check(t, qt.IsTrue(columns == 0 || n == columns), qt.Commentf("%s", line))
		columns = n
	}
}
