// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"encoding/json"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
)

const repositoryRoot = "../.."

// pagesFromCode are made once: the program is compiled for them.
var pagesFromCode = sync.OnceValues(func() (map[string]string, error) {
	return reference(context.Background(), repositoryRoot)
})

// loadedSite is made once, as it takes seconds. Tests only read it.
var loadedSite = sync.OnceValues(func() (*site, error) {
	generated, err := pagesFromCode()
	if err != nil {
		return nil, err
	}
	return load(repositoryRoot, "", generated)
})

// sharedSite returns the pages of this repository, without figures.
func sharedSite(t *testing.T) *site {
	t.Helper()
	s, err := loadedSite()
	qt.Assert(t, qt.IsNil(err))
	return s
}

// Every link leads to a page, a heading of it, a picture or a file of the repository.
func TestLinks(t *testing.T) {
	s := sharedSite(t)
	byURL := map[string]*page{}
	for _, p := range s.byPath {
		byURL[p.URL] = p
	}
	links := 0
	for _, p := range s.byPath {
		for _, link := range p.links {
			links++
			if strings.Contains(link, "://") {
				continue
			}
			url, anchor, _ := strings.Cut(link, "#")
			to := p
			if url != "" {
				to = byURL[url]
			}
			if to == nil {
				_, err := os.Stat(filepath.Join(repositoryRoot, "docs", url))
				qt.Check(t, qt.IsNil(err), qt.Commentf("%s: dead link %q", p.Path, link))
				continue
			}
			if anchor != "" {
				qt.Check(t, qt.IsTrue(to.ids[anchor]),
					qt.Commentf("%s: %q leads to no heading of %s", p.Path, link, to.Path))
			}
		}
	}
	qt.Assert(t, qt.IsTrue(links > 200), qt.Commentf("found only %d links", links))
}

// Every document is a page of the site, so that the search finds it.
func TestEveryDocumentIsAPage(t *testing.T) {
	s := sharedSite(t)
	visit := func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".md") {
			return err
		}
		name, err := filepath.Rel(repositoryRoot, path)
		qt.Check(t, qt.IsTrue(s.byPath[name] != nil), qt.Commentf("nav.yaml lacks %s", name))
		return err
	}
	qt.Assert(t, qt.IsNil(filepath.WalkDir(repositoryRoot+"/docs", visit)))
}

// goName matches names of Go's types and fields, such as DilationShift and Port.Dropped.
var goName = regexp.MustCompile(`\b[A-Z][a-z]+[A-Z]\w*|\b[A-Z]\w+\.[A-Z]\w+`)

// Every column of a result file has a meaning, in words that need no source.
func TestEveryColumnHasAText(t *testing.T) {
	generated, err := pagesFromCode()
	qt.Assert(t, qt.IsNil(err))
	columns := 0
	for row := range strings.Lines(generated["generated/results"]) {
		cells := strings.Split(strings.TrimSpace(row), " | ")
		if !strings.HasPrefix(row, "| `") {
			continue
		}
		columns++
		meaning := strings.TrimSuffix(cells[len(cells)-1], " |")
		qt.Check(t, qt.IsTrue(len(cells) == 3 && len(meaning) > 3), qt.Commentf("%s", row))
		named := goName.FindString(strings.ReplaceAll(meaning, "InfiniBand", ""))
		qt.Check(t, qt.Equals(named, ""), qt.Commentf("%s", row))
	}
	qt.Check(t, qt.IsTrue(columns > 100), qt.Commentf("%d", columns))
}

// The reference has every metric, every result file's columns, every command and every scheme.
func TestReferenceIsComplete(t *testing.T) {
	generated, err := pagesFromCode()
	qt.Assert(t, qt.IsNil(err))
	for _, m := range experiment.Metrics() {
		_, row, found := strings.Cut(generated["generated/metrics"], "\n| `"+string(m)+"` |")
		qt.Check(t, qt.IsTrue(found), qt.Commentf("%s", m))
		row, _, _ = strings.Cut(row, "\n")
		qt.Check(t, qt.IsTrue(len(row) > 40), qt.Commentf("%s has no definition: %s", m, row))
	}
	for _, want := range []string{"`rate_bps` | bit/s", "`srtt_ns` | ns", "`verdict` |"} {
		qt.Check(t, qt.StringContains(generated["generated/results"], want))
	}
	for _, want := range []string{"## pcn run\n", "## pcn host up\n", "--engine"} {
		qt.Check(t, qt.StringContains(generated["generated/cli"], want))
	}
	for _, want := range []string{"## pcn run --json", "`expectations[].measured[].value` | number",
		"`components[].name` | text", "`hint` | text"} {
		qt.Check(t, qt.StringContains(generated["generated/json"], want))
	}
	for _, want := range []string{"`switch.pfc.xoff` | a size", "`flows[].from`"} {
		qt.Check(t, qt.StringContains(generated["generated/schema"], want))
	}
	s := sharedSite(t)
	for _, c := range scheme.Builtin().Schemes() {
		name := strings.TrimPrefix(c.Name, "pcn_")
		p := s.byPath["docs/schemes/"+name+".md"]
		qt.Assert(t, qt.IsTrue(p != nil), qt.Commentf("%s has no page", c.Name))
		for _, param := range c.Object.Params {
			qt.Check(t, qt.StringContains(string(p.Body), "<code>"+param.Key+"</code>"))
		}
		for _, heading := range []string{"idea", "formula", "experiments"} {
			qt.Check(t, qt.IsTrue(p.ids[heading]), qt.Commentf("%s: %s", c.Name, heading))
		}
	}
}

// The site is whole in its folder: nothing is loaded from elsewhere, and the index is JSON.
func TestSiteIsOffline(t *testing.T) {
	out := filepath.Join(t.TempDir(), "site")
	s := sharedSite(t)
	qt.Assert(t, qt.IsNil(s.write(out)))
	qt.Assert(t, qt.IsNil(s.write(out))) // over itself
	for _, p := range s.byPath {
		html, err := os.ReadFile(filepath.Join(out, p.URL))
		qt.Assert(t, qt.IsNil(err))
		for _, remote := range []string{`src="http`, "@import", `sheet" href="http`} {
			qt.Check(t, qt.IsFalse(strings.Contains(string(html), remote)),
				qt.Commentf("%s has %s", p.URL, remote))
		}
	}
	script, err := os.ReadFile(filepath.Join(out, "search.js"))
	qt.Assert(t, qt.IsNil(err))
	index, _, _ := strings.Cut(strings.TrimPrefix(string(script), "const chapters = "), ";\n")
	var chapters []chapter
	qt.Assert(t, qt.IsNil(json.Unmarshal([]byte(index), &chapters)))
	qt.Check(t, qt.IsTrue(len(chapters) > 100), qt.Commentf("%d chapters", len(chapters)))
}

// A folder with other files is not removed.
func TestOtherFoldersAreKept(t *testing.T) {
	out := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(out, "thesis.tex"), nil, 0o600)))
	qt.Check(t, qt.ErrorMatches(sharedSite(t).write(out), ".* has files that are no site: .*"))
}

// Each key that a command prints has a text: the site is not made without.
func TestKeysHaveTexts(t *testing.T) {
	dir := t.TempDir()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "a.go"), []byte(`package a
type A struct {
	// Said has a text.
	Said int `+"`json:\"said\"`"+`
	Beside int `+"`json:\"beside\"`"+` // it has one, too
	Inner []B `+"`json:\"inner\"`"+` // of the other kind
}
type B struct {
	Silent string `+"`json:\"silent\"`"+`
}
`), 0o600)))
	decls, err := goPackage(dir)
	qt.Assert(t, qt.IsNil(err))
	var p strings.Builder
	err = writeKeys(&p, "", "A", structsOf(decls), nil)
	qt.Check(t, qt.ErrorMatches(err, `B.Silent: the key inner\[\].silent has no text`))
	qt.Check(t, qt.StringContains(p.String(), "| `beside` | number | it has one, too |"))
}
