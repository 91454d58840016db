// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
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

// Readers find what these pages have another word for, and what they misspell; commands are copied
// without their prompts, and each page leads to the next.
func TestSearchInBrowser(t *testing.T) {
	ctx := look.Browser(t)
	address := written(t, sharedSite(t))
	look.Do(t, ctx, look.AtSize(1400, "light"), chromedp.Navigate(address+"tutorial.html"))
	for query, want := range map[string]string{"rollback": "", "uninstall": "",
		"pandas":     "notebook",
		"all-reduce": "", "floating point": "", "pausse": "", "sceme": "",
		"zzzzqq": "Nothing found"} {
		found := look.Ask[string](t, ctx, `(() => {
			const query = document.getElementById("query");
			query.value = "`+query+`";
			query.dispatchEvent(new Event("input"));
			return document.getElementById("found").textContent;
		})()`)
		qt.Check(t, qt.StringContains(strings.ToLower(found), strings.ToLower(want)),
			qt.Commentf("%s", query))
		qt.Check(t, qt.Equals(strings.HasPrefix(found, "Nothing found"), query == "zzzzqq"),
			qt.Commentf("%s: %s", query, found))
	}
	copied := look.Ask[string](t, ctx, `(async () => {
		let text = "";
		Object.defineProperty(navigator, "clipboard", {value: {writeText: (t) => { text = t; }}});
		const block = [...document.querySelectorAll(".code")]
			.find((b) => b.querySelector("pre").textContent.startsWith("$ "));
		block.querySelector("button").click();
		await 0;
		return text;
	})()`)
	qt.Check(t, qt.Not(qt.Equals(copied, "")))
	qt.Check(t, qt.Not(qt.StringContains(copied, "$ ")))
	qt.Check(t, qt.Equals(look.Ask[int](t, ctx,
		`document.querySelectorAll(".next a[rel=prev], .next a[rel=next]").length`), 2))
	qt.Check(t, qt.IsTrue(look.Ask[int](t, ctx,
		`document.querySelectorAll(".contents a").length`) > 2))
}
