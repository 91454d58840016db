// SPDX-License-Identifier: Apache-2.0

// Command document writes the reference of all schemes, docs/schemes.md, from what their sources say.
package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/config/scheme"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: document FILE")
		os.Exit(2)
	}
	if err := os.WriteFile(os.Args[1], []byte(document(scheme.Builtin())), 0o644); err != nil {
		fmt.Fprintf(os.Stderr, "document: write the reference of schemes: %v\n", err)
		os.Exit(1)
	}
}

const introduction = `<!-- Generated from bpf/cc, bpf/algo and config/scheme/presets by go generate: do not edit. -->

# Schemes and their parameters

What each congestion-control scheme needs of a network, and what can be set. A scheme's parameters
stand in its section of an [experiment file](experiments.md): ` + "`pcn: {T: 25us}`" + `. All of this comes
from the sources in ` + "`bpf/cc`, `bpf/algo` and `config/scheme/presets`" + `.

Ranges and defaults are values or formulas. A formula may name other keys of the section, and

| name | is |
|---|---|
| ` + "`line_rate`" + ` | the rate of hosts' links, ` + "`topology.rate`" + ` |
| ` + "`base_rtt`" + ` | the round trip of the longest path, from propagation delays alone |
| ` + "`frame`" + ` | bytes of a full data frame |

A rate is written as 40Gbps, a time as 50us, a size as 64KB, and a ratio as 0.5, 1/128 or 5%.

A scheme with sets of values, such as those of a paper and of a simulator, has the key ` + "`set`" + `, which
names the set that defaults are from. Any other key replaces one of its values.
`

// document returns the reference of all schemes of a catalogue, as Markdown.
func document(c *scheme.Catalogue) string {
	p := &page{}
	p.text("%s", introduction)
	p.overview(c)
	for _, s := range c.Schemes() {
		p.scheme(s)
	}
	p.text("\n## Linux's own\n\n%s\n", kernelControls())
	return p.String()
}

// page is a document that is being written.
type page struct{ strings.Builder }

func (p *page) text(format string, args ...any) { fmt.Fprintf(p, format, args...) }

// row writes a row of a table.
func (p *page) row(cells ...string) {
	for i, cell := range cells {
		cells[i] = strings.ReplaceAll(cell, "|", `\|`)
	}
	p.text("| %s |\n", strings.Join(cells, " | "))
}

// head writes the head of a table.
func (p *page) head(cells ...string) {
	p.row(slices.Clone(cells)...)
	p.text("|%s\n", strings.Repeat("---|", len(cells)))
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

func codes(texts []string) string {
	var all []string
	for _, t := range texts {
		all = append(all, code(t))
	}
	return strings.Join(all, ", ")
}

func (p *page) overview(c *scheme.Catalogue) {
	p.text("\n")
	p.head("scheme", "is", "section")
	for _, s := range c.Schemes() {
		names := []string{s.Name}
		if with, err := s.WithTCD(); err == nil {
			names = append(names, with.Name)
		}
		section := ""
		if len(s.Object.Params) > 0 {
			section = s.Section
		}
		p.row(codes(names), s.Title, code(section))
	}
}

func (p *page) scheme(s scheme.Scheme) {
	p.text("\n## %s\n\n%s\n\n%s\n\n", s.Name, wrap(s.Title+"."), wrap("Source: "+s.Source+"."))
	p.needs(s)
	p.parameters(s)
	p.presets(s.Object.Presets(), s.Object.Params)
	p.statistics(s.Object.Stats)
}

// What attributes' values mean.
var (
	senders = map[string]string{
		"rate": "a rate, by which it is paced", "window": "a window", "line": "nothing: it sends at line rate",
	}
	markers = map[string]string{
		"npecn": "NP-ECN (PCN): packets that congestion delays, but not those that only PAUSE delays",
		"red":   "RED on the queue, by `marking`",
		"fecn":  "FECN (InfiniBand), by section `fecn` of the experiment",
		"qcn":   "QCN: they sample packets, and send CNMs to senders",
	}
	notifications = map[string]string{
		"pcn":    "PCN's notification point: a CNP for each window of T",
		"marked": "a CNP for a marked packet",
	}
	heard = map[string]string{"cnp": "CNPs", "cnm": "CNMs of switches"}
)

// need is a line of what a scheme needs.
type need struct {
	attribute, label string
	words            map[string]string // of its values
	otherwise        string            // if the scheme has no such attribute; empty: no line
}

var needs = []need{
	{"sender", "a sender is controlled by", senders, ""},
	{"marker", "switches mark by", markers, "nothing"},
	{"notification", "receivers answer with", notifications, "nothing"},
	{"hears", "senders hear", heard, "ACKs alone"},
	{"ecn", "ECN", map[string]string{"needed": "is needed"}, "is not needed"},
	{"accecn", "Accurate ECN", map[string]string{"yes": "is used"}, ""},
	{"counts_acks", "the marks that ACKs tell of", map[string]string{"yes": "are counted by the sender"}, ""},
	{"delayed_ack", "every second packet", map[string]string{"yes": "is acknowledged"}, ""},
	{"first_rtt", "packets of the first round trip", map[string]string{"drop": "are not ECN-capable"}, ""},
}

func (p *page) needs(s scheme.Scheme) {
	_, err := s.WithTCD()
	knowsTCD := err == nil
	if knowsTCD {
		p.head("", code(s.Name), code(s.Name+"+tcd"))
	} else {
		p.head("", code(s.Name))
	}
	for _, n := range needs {
		plain := s.Object.Attribute(n.attribute)
		with := plain
		if own := s.Object.Attribute("tcd." + n.attribute); own != "" {
			with = own
		}
		if plain == "" && with == "" && n.otherwise == "" {
			continue
		}
		cells := []string{n.label, n.in(plain)}
		if knowsTCD {
			cells = append(cells, n.in(with))
		}
		p.row(cells...)
	}
	if !knowsTCD {
		return
	}
	words := "With TCD, switches mark so only where a port is congested, and say UE where that can't be told: [tcd.md](tcd.md)."
	if borrowed := s.Object.Attribute("tcd.values"); borrowed != "" {
		words += fmt.Sprintf(" Marking and notification are those of section `%s`.", borrowed)
	}
	p.text("\n%s\n", wrap(words))
}

// in writes the value of an attribute, and when it holds, in words.
func (n need) in(text string) string {
	if text == "" {
		return n.otherwise
	}
	value, when, depends := strings.Cut(text, " when ")
	words := n.words[value]
	if words == "" {
		words = value
	}
	if key, in, ok := strings.Cut(when, " is "); depends && ok {
		words += fmt.Sprintf(", when `%s` is %s", key, strings.Join(mapCode(strings.Split(in, " or ")), " or "))
	}
	return words
}

// mapCode writes each text as code.
func mapCode(texts []string) []string {
	var all []string
	for _, t := range texts {
		all = append(all, code(t))
	}
	return all
}

func (p *page) parameters(s scheme.Scheme) {
	if len(s.Object.Params) == 0 {
		p.text("\nThere is nothing to set.\n")
		return
	}
	p.text("\nParameters, in section `%s`:\n\n", s.Section)
	presets := s.Object.Presets()
	p.head("key", "is", "kind", "range", "default")
	if len(presets) > 0 {
		p.row(code("set"), "Whose values are the defaults", "choice", codes(s.Object.PresetNames()), code(presets[0].Name))
	}
	for _, param := range s.Object.Params {
		p.row(code(param.Key), param.Doc, string(param.Kind), limits(param), code(defaultOf(param, presets)))
	}
}

// limits are what values are allowed.
func limits(p scheme.Param) string {
	switch p.Kind {
	case scheme.KindChoice:
		return codes(p.Choices)
	case scheme.KindFlag:
		return codes([]string{"true", "false"})
	default:
		return p.Range
	}
}

// defaultOf returns the default: the first set's, if there are sets.
func defaultOf(p scheme.Param, presets []scheme.Preset) string {
	if len(presets) > 0 {
		if v, ok := presets[0].Values[p.Key]; ok {
			return v.Is
		}
	}
	return p.Default
}

// setsATable is how many sets stand beside each other: six columns with the key.
const setsATable = 5

func (p *page) presets(presets []scheme.Preset, params []scheme.Param) {
	for sets := range slices.Chunk(presets, setsATable) {
		p.text("\nSets of values:\n\n")
		head := []string{"key"}
		for _, s := range sets {
			head = append(head, code(s.Name))
		}
		p.head(head...)
		for _, param := range params {
			cells := []string{code(param.Key)}
			for _, s := range sets {
				cells = append(cells, code(s.Values[param.Key].Is))
			}
			p.row(cells...)
		}
	}
	if len(presets) > 0 {
		p.text("\nWhere they are from:\n\n")
		p.head("set", "key", "source")
	}
	for _, s := range presets {
		p.row(code(s.Name), "", s.Source)
		for _, param := range params {
			if from := s.Values[param.Key].From; from != "" {
				p.row(code(s.Name), code(param.Key), from)
			}
		}
	}
}

func (p *page) statistics(stats []scheme.Stat) {
	if len(stats) == 0 {
		return
	}
	p.text("\nStatistics of a flow, in `pcn flows` and `flows.csv`:\n\n")
	p.head("column", "is", "kind")
	for _, s := range stats {
		p.row(code(s.Key), s.Doc, string(s.Kind))
	}
}

func kernelControls() string {
	return wrap("A scheme may also be a congestion control that comes with Linux: " +
		strings.Join(mapCode(scheme.KernelControls()), ", ") +
		". Switches then mark by RED, by `dctcp.marking`.")
}

// wrap breaks a text into lines of at most 100 columns.
func wrap(text string) string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(text) {
		if line != "" && len(line)+1+len(word) > 100 {
			lines = append(lines, line)
			line = ""
		}
		line = strings.TrimPrefix(line+" "+word, " ")
	}
	return strings.Join(append(lines, line), "\n")
}
