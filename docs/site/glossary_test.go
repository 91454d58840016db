// SPDX-License-Identifier: Apache-2.0

package main

import (
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// notAcronyms are words in capitals that are not short for anything, or that only examples have.
var notAcronyms = []string{
	"INVALID", "ON", "OFF", "NOT", "MET", "OR", // verdicts, and states of a queue
	"NVIDIA", "IBM", "TAG", "ASTRA", // names
	"KB", "MB", "GB", "GHz", "NO", "PR", // units, and a short no
	"DOUBT", "LOSSES", "RATE", // columns of pcn flows
	"CONTRIBUTING", "CHANGELOG", "KNOWN_ISSUES", "LICENSE", "CITATION", "README", "STYLE",
	"SPDX", "GNU",
}

var (
	codeBlock = regexp.MustCompile("(?s)```.*?\n```")
	codeSpan  = regexp.MustCompile("(?s)`[^`]*`")
	linkTo    = regexp.MustCompile(`\]\([^)]*\)`)
	comment   = regexp.MustCompile(`(?s)<!--.*?-->`)
	indented  = regexp.MustCompile(`(?m)^    .*$`)
	// Two capitals in a row: also RoCE and AccECN. A plural's s is cut off below.
	capitals = regexp.MustCompile(`\b(?:[A-Z][a-z]+)?[A-Z][A-Z][A-Za-z0-9]*\b`)
	// Names in code, such as CNPInterval, and IPv4's version.
	identifier = regexp.MustCompile(`[a-z]{4,}$`)
	version    = regexp.MustCompile(`v?[0-9]+$`)
	// Nodes, links, flows and figures: H0, S1, F0, W2, Table 3's L3.
	node = regexp.MustCompile(`^[A-Z][0-9]+$`)
)

// acronymsOf returns the acronyms in a document's prose.
func acronymsOf(text string) []string {
	for _, not := range []*regexp.Regexp{codeBlock, comment, codeSpan, linkTo, indented} {
		text = not.ReplaceAllString(text, " ")
	}
	found := map[string]bool{}
	for _, word := range capitals.FindAllString(text, -1) {
		if node.MatchString(word) || identifier.MatchString(word) {
			continue
		}
		word = strings.TrimSuffix(version.ReplaceAllString(word, ""), "s")
		if len(word) > 1 {
			found[word] = true
		}
	}
	return slices.Sorted(maps.Keys(found))
}

// explained returns what the glossary's tables have in their first column.
func explained(t *testing.T) map[string]bool {
	t.Helper()
	data, err := os.ReadFile(repositoryRoot + "/docs/glossary.md")
	qt.Assert(t, qt.IsNil(err))
	words := map[string]bool{}
	rows := regexp.MustCompile(`(?m)^\| (\S+) \|`)
	for _, row := range rows.FindAllStringSubmatch(string(data), -1) {
		words[version.ReplaceAllString(row[1], "")] = true
	}
	return words
}

// The glossary explains every acronym of every document.
func TestGlossaryHasEveryAcronym(t *testing.T) {
	known := explained(t)
	qt.Assert(t, qt.IsTrue(known["PFC"]))
	for name := range sharedSite(t).byPath {
		data, err := os.ReadFile(filepath.Join(repositoryRoot, name))
		if err != nil {
			continue // a generated page: its words are those of the documents that it is about
		}
		for _, word := range acronymsOf(string(data)) {
			if !known[word] && !slices.Contains(notAcronyms, word) {
				t.Errorf("%s: %q is not in docs/glossary.md", name, word)
			}
		}
	}
}

func TestAcronymsOf(t *testing.T) {
	got := acronymsOf("CNPs of RoCEv2, `NOT` this, nor [that](XYZ.md).\n```\nABC\n```\nH0 and TCP.")
	qt.Check(t, qt.DeepEquals(got, []string{"CNP", "RoCE", "TCP"}))
}
