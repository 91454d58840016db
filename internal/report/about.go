// SPDX-License-Identifier: Apache-2.0

package report

import (
	"regexp"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/scheme"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// about tells a reader who knows nothing what was run: what the experiment says of itself, and what
// each scheme is.
type about struct {
	Text    string
	Schemes []schemeInLine
}

type schemeInLine struct{ Name, Title string }

// aboutOf explains an experiment, with the schemes that a catalogue has.
func aboutOf(text string, schemes []string, of *scheme.Catalogue) about {
	a := about{Text: text}
	for _, name := range schemes {
		s, err := of.Lookup(name)
		if err != nil {
			continue
		}
		upper := strings.ToUpper(name)
		base, _, _ := strings.Cut(upper, "+")
		a.Schemes = append(a.Schemes,
			schemeInLine{upper, strings.TrimPrefix(s.Title, base+": ")})
	}
	return a
}

// explain adds the ways to mark that these texts or the names of schemes mention.
func (a *about) explain(texts ...string) {
	for _, s := range a.Schemes {
		texts = append(texts, s.Name)
	}
	all := strings.Join(append(texts, a.Text), "\n")
	for _, m := range scheme.Markings {
		if regexp.MustCompile(`\b` + m.Name + `\b`).MatchString(all) {
			a.Schemes = append(a.Schemes, schemeInLine(m))
		}
	}
}

// addControls names the flows that have a control of their own.
func (a *about) addControls(groups []experiment.FlowGroup) {
	for _, g := range groups {
		if g.Control != "" {
			a.Schemes = append(a.Schemes, schemeInLine{g.Name,
				"has Linux's own " + g.Control + " in place of the scheme's control"})
		}
	}
}

// schemesOf returns the schemes of runs, in their order.
func schemesOf(runs []*result.Run) []string {
	var names []string
	for _, r := range runs {
		if name := r.Manifest.Scheme; !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// keyDocs explains those keys of experiments that say little by their names, as their comments do.
var keyDocs = map[string]string{
	"noise.moderation": "how long after the first new packet hosts look at what has arrived",
	"noise.scheduling": "mean of a random time by which each such look is later",
}

// parametersOf explains those parameters of a sweep that a scheme has, T in pcn.T, or that keyDocs
// has.
func parametersOf(paths []string, of *scheme.Catalogue) []schemeInLine {
	var all []schemeInLine
	for _, path := range paths {
		section, key, _ := strings.Cut(path, ".")
		object := of.Sections()[section]
		if object == nil {
			if doc := keyDocs[path]; doc != "" {
				all = append(all, schemeInLine{path, doc})
			}
			continue
		}
		if p := object.Param(key); p != nil {
			all = append(all, schemeInLine{path, p.Doc})
		}
	}
	return all
}
