// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/report/look"
)

// written writes a site, and returns the address of its folder.
func written(t *testing.T, s *site) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "site")
	qt.Assert(t, qt.IsNil(s.write(out)))
	return "file://" + out + "/"
}

// What strangers read first has contrast and no line that is wider than a telephone.
func TestPagesInBrowser(t *testing.T) {
	address := written(t, sharedSite(t))
	for _, name := range []string{"index", "tutorial", "experiments", "schemes-pcn", "cli"} {
		look.Layout(t, name, address+name+".html")
	}
}

const sampleText = `# Sample

A paragraph with ` + "`code`" + `, a [link](docs/tutorial.md), and **bold** text. It is long enough
for several lines on a telephone, and has no meaning.

` + "```console\n$ bin/pcn run hol --algo pfc,pcn --duration 19ms --engine sim --out one\n```" + `

## Table

| you want to | use | because |
|---|---|---|
| try an idea on thousands of nodes | ns-3 or htsim, simulators | more models, larger networks |
| know what hardware does | a testbed | nothing replaces it |

> A quotation.

1. one
2. two
`

// The front page looks as it did. Its text is a sample, so that editing a document does not change
// the picture.
func TestFrontPageInBrowser(t *testing.T) {
	texts := map[string]string{}
	for name := range sharedSite(t).byPath {
		texts[name] = "# " + filepath.Base(name) + "\n\nText.\n"
	}
	texts["README.md"] = sampleText
	s, err := load(repositoryRoot, "", texts)
	qt.Assert(t, qt.IsNil(err))
	address := written(t, s)
	qt.Check(t, qt.Equals(look.Page(t, "front", address+"index.html"), 0))
	info, err := os.Stat(filepath.Join(address[len("file://"):], "index.html"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(info.Size() < 1e6))
}
