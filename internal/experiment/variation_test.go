// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
	"go.yaml.in/yaml/v3"
)

// varied has what many changes fit, and some do not.
const varied = `name: varied
topology: {kind: fig1}
schemes: [pcn]
duration: 15ms
switch: {pfc: {xoff: 256KB}}
flows:
  - {name: F0, from: H0, to: R0}
  - {name: F1, from: H1, to: R1, start: 7ms}
bursts:
  - {name: burst, from: H2..H4, to: R1, size: 64KB, at: 3ms}
links:
  - {at: 9ms, link: S0->S1, rate: 5Gbps}
`

// place is where an error stands.
var place = regexp.MustCompile(`(?m)^[^ ]*?(:\d+:\d+)?: `)

// words returns an error without places.
func words(err error) string {
	if err == nil {
		return ""
	}
	return place.ReplaceAllString(err.Error(), "")
}

// TestChangesAsIfInTheFile: what a file may not say, no change may say either, in the same words.
func TestChangesAsIfInTheFile(t *testing.T) {
	const pfc = "switch: {pfc: {xoff: 256KB}}"
	lossy := strings.Replace(varied, pfc, "switch: {pfc: {off: true}}", 1)
	for _, c := range []struct {
		name, file string
		change     Changes
		key, value string // the same in the file
	}{
		{"TCD without PFC", lossy, Changes{Schemes: []string{"dcqcn+tcd"}},
			"schemes", "[dcqcn+tcd]"},
		{"detectors, PFC for others",
			strings.Replace(varied, pfc, "switch: {detectors: true, pfc: {schemes: [pcn]}}", 1),
			Changes{Schemes: []string{"pcn", "dcqcn"}}, "schemes", "[pcn, dcqcn]"},
		{"typing error", varied, Changes{Schemes: []string{"dcqnc"}}, "schemes", "[dcqnc]"},
		{"twice", varied, Changes{Schemes: []string{"pfc", "pfc"}}, "schemes", "[pfc, pfc]"},
		{"none", varied, Changes{Schemes: []string{}}, "schemes", "[]"},
		{"before all starts", varied, Changes{Duration: new(2 * Millisecond)}, "duration", "2ms"},
		{"no whole bin", varied, Changes{Duration: new(14333 * Microsecond)},
			"duration", "14.333ms"},
		{"no time", varied, Changes{Duration: new(Duration(0))}, "duration", "0ms"},
		{"hours", varied + "sample: 1ms\n", Changes{Duration: new(140 * Second)}, "duration",
			"140s"},
		{"dilation", varied, Changes{Dilation: new(uint(17))}, "dilation", "17"},
		{"start of a trace's flow", varied + "trace: {file: t.csv}\nfiles: {t.csv: " +
			"\"start_ns,src,dst,size_bytes,priority\\n12000000,H0,R0,1000,0\\n\"}\n",
			Changes{Duration: new(11 * Millisecond)}, "duration", "11ms"},
	} {
		t.Run(c.name, func(t *testing.T) {
			e, err := Parse("f", []byte(c.file))
			qt.Assert(t, qt.IsNil(err))
			line := regexp.MustCompile(`(?m)^` + c.key + `: .*\n`)
			said := line.ReplaceAllString(c.file, "") + c.key + ": " + c.value + "\n"
			_, want := Parse("f", []byte(said))
			qt.Assert(t, qt.IsNotNil(want))
			_, err = e.With(c.change)
			qt.Check(t, qt.ErrorMatches(err, `(?s)(--|f:|t.csv:).*`))
			qt.Check(t, qt.Equals(words(err), words(want)))
			// So it is for a case, and for what a sweep varies.
			e, err = Parse("f", []byte(c.file+"cases: [{name: a}]\n"))
			qt.Assert(t, qt.IsNil(err))
			_, err = e.With(c.change)
			without := strings.ReplaceAll(words(err), `case "a", line 13: `, "")
			without = regexp.MustCompile(`case "a", line \d+: `).ReplaceAllString(without, "")
			qt.Check(t, qt.Equals(without, words(want)))
			c.change.Set, c.change.File = []*yaml.Node{{Kind: yaml.MappingNode}}, "sweep.yaml"
			_, err = getCase(t, e, "a").With(c.change)
			qt.Check(t, qt.Equals(words(err), words(want)))
		})
	}
}

// What a file names need not run: a command line may choose other schemes.
func TestChosenSchemesLeaveTheFileAsItIs(t *testing.T) {
	const more = `expect:
  - {what: pcn goes on, scheme: pcn, metric: mean_rate, flows: [F0], from: 10ms, min: 1Gbps}
compare:
  - {what: rate, schemes: [pcn], metric: mean_rate, flows: [F0], bounds: {pcn: {min: 1Gbps}}}
cases:
  - {name: a, schemes: [pcn]}
`
	e, err := Parse("f", []byte(strings.Replace(varied, "xoff: 256KB", "schemes: [pcn]", 1)+more))
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(Changes{Schemes: []string{"dcqcn", "cubic"}, Duration: new(12 * Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(Changes{Dilation: new(uint(11)), Duration: new(11 * Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.Schemes, []string{"dcqcn", "cubic"}))
	qt.Check(t, qt.HasLen(getCase(t, e, "a").Schemes, 0)) // it is for pcn alone
	qt.Check(t, qt.Equals(e.variants["a"].Duration, 11*Millisecond))
	qt.Check(t, qt.Equals(e.variants["a"].Dilation, Dilation{Shift: 11}))
}

// TestQuickWay: an experiment with another seed or fewer schemes is the same whether it is read
// again or not.
func TestQuickWay(t *testing.T) {
	files, err := filepath.Glob("../../netns-lab/experiments/*.yaml")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsTrue(len(files) > 20))
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			whole, err := Load(file)
			qt.Assert(t, qt.IsNil(err))
			names := whole.CaseNames()
			e, err := whole.Case(names[len(names)-1])
			qt.Assert(t, qt.IsNil(err))
			last := e.Schemes[len(e.Schemes)-1:]
			for _, c := range []Changes{
				{Seed: new(uint64(12))},
				{Schemes: last},
				{Seed: new(uint64(13)), Schemes: last, Dilation: new(uint(11))},
			} {
				quick, ok := e.redrawn(c)
				qt.Assert(t, qt.IsTrue(ok))
				long, err := e.chosenAgain(c)
				qt.Assert(t, qt.IsNil(err))
				same(t, quick, long)
			}
			qt.Check(t, qt.IsTrue(slices.Equal(e.Source(), whole.Source())))
		})
	}
}

// same fails if two experiments differ in what a run depends on.
func same(t *testing.T, a, b *Experiment) {
	t.Helper()
	qt.Assert(t, qt.DeepEquals(a.Flows, b.Flows))
	x, y := *a, *b
	x.Flows, y.Flows, x.specs, y.specs = nil, nil, nil, nil
	x.variants, y.variants = nil, nil
	qt.Assert(t, qt.CmpEquals(x, y, allFields))
}
