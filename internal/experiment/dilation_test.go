// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// dilationYAML is an experiment of 38 hosts, with flows and further keys to come.
const dilationYAML = `
name: dilation
topology: {kind: star, hosts: 38, rate: 40Gbps, delay: %s}
schemes: [pfc]
duration: 2ms
%s
flows:
%s
`

func TestDilationIsChosen(t *testing.T) {
	var at19, inTurn strings.Builder
	for i := range 19 {
		fmt.Fprintf(&at19, "  - {name: f%d, from: H%d, to: H%d, start: 0ms, size: 64KB}\n", i, i,
			i+19)
		fmt.Fprintf(&inTurn, "  - {name: f%d, from: H%d, to: H%d, start: %dus, size: 64KB}\n", i, i,
			i+19, 50*i)
	}
	one := "  - {name: f, from: H0, to: H1}\n"
	for _, test := range []struct {
		name, delay, keys, flows string
		want                     Dilation
	}{
		{"one flow", "5us", "", one, Dilation{10, true}},
		{"auto", "5us", "dilation: auto", one, Dilation{10, true}},
		{"the file's", "5us", "dilation: 7", one, Dilation{7, false}},
		{"19 at once", "6us", "", at19.String(), Dilation{13, true}},
		{"19, but one after the other", "6us", "", inTurn.String(), Dilation{10, true}},
		{"19 flows of one host", "6us", "",
			"  - {name: f, from: H0, to: H1, count: 19}\n", Dilation{10, true}},
		{"slow ones", "6us", "",
			strings.ReplaceAll(at19.String(), "64KB", "64KB, limit_rate: 1Gbps"),
			Dilation{10, true}},
		// round trips of 20 ms: TCP bears no more
		{"long", "5ms", "", at19.String(), Dilation{5, true}},
	} {
		t.Run(test.name, func(t *testing.T) {
			e, err := Parse("test.yaml",
				fmt.Appendf(nil, dilationYAML, test.delay, test.keys, test.flows))
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(e.Dilation, test.want))
		})
	}
	_, err := Parse("test.yaml", fmt.Appendf(nil, dilationYAML, "5us", "dilation: fast", one))
	qt.Check(t, qt.ErrorMatches(err, `.*invalid dilation "fast": want auto, or 0 to 16`))
}

func TestSlower(t *testing.T) {
	one := "  - {name: f, from: H0, to: H1}\n"
	parse := func(delay, keys string) *Experiment {
		e, err := Parse("test.yaml", fmt.Appendf(nil, dilationYAML, delay, keys, one))
		qt.Assert(t, qt.IsNil(err))
		return e
	}
	e := parse("5us", "")
	qt.Check(t, qt.Equals(e.Slower(2).Dilation, Dilation{12, true}))
	qt.Check(t, qt.Equals(e.Dilation, Dilation{10, true}))
	qt.Check(t, qt.Equals(e.Slower(9).Dilation, Dilation{15, true})) // TCP bears no more
	qt.Check(t, qt.IsNil(e.Slower(9).Slower(1)))
	qt.Check(t, qt.IsNil(parse("5us", "dilation: 8").Slower(1)))
}
