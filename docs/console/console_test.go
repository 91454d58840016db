// SPDX-License-Identifier: Apache-2.0

package console

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestParse(t *testing.T) {
	steps, err := Parse("Text.\n\n```yaml file=a.yaml\nname: a\n```\n\n```console fast exit=3\n" +
		"$ pcn run a.yaml \\\n    --out b\nok\n...\n# pcn host up\n```\n\n" +
		"<!-- file=c.txt\nhidden\n-->\n```console tested=./tests/x needs=htb\n" +
		"# cat > f <<END\ntext\nEND\n```\n```c\n$ no\n```\n")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(steps, []Step{
		{Line: 3, File: "a.yaml", Text: "name: a\n"},
		{
			Line: 8, Text: "pcn run a.yaml \\\n    --out b", Class: Fast,
			Printed: []string{"ok", "..."},
		},
		{Line: 12, Text: "pcn host up", Class: Fast, Exit: 3, AsRoot: true},
		{Line: 15, File: "c.txt", Text: "hidden\n"},
		{
			Line: 19, Text: "cat > f <<END\ntext\nEND", Class: Tested, By: "./tests/x",
			Needs: "htb", AsRoot: true,
		},
	}))
}

func TestMistakes(t *testing.T) {
	for text, want := range map[string]string{
		"```console\n$ a\n```\n":             "line 1: .* says not what it needs.*",
		"```console quick\n$ a\n```\n":       "line 1: unknown word \"quick\".*",
		"```console fast exit=x\n$ a\n```\n": "line 1: .*invalid syntax",
		"```console fast\n$ a\n":             "line 3: the block has no end",
	} {
		_, err := Parse(text)
		qt.Check(t, qt.ErrorMatches(err, want), qt.Commentf("%s", text))
	}
}
