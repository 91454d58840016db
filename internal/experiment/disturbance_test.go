// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// A trace is read with the experiment, and mistakes are told with its line.
func TestLinkTraces(t *testing.T) {
	const file = `name: mine
topology: {kind: dumbbell, senders: 1}
schemes: [cubic]
switch: {pfc: {off: true}}
duration: 5ms
flows: [{name: F0, from: A0, to: B0}]
links: [{link: S0->S1, trace: lte.trace}]
files: {lte.trace: "1\n1\n7\n"}
`
	e, err := Parse("f", []byte(file))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(e.LinkTrace("S0->S1"), []uint32{1, 1, 7}))
	qt.Check(t, qt.HasLen(e.LinkTrace("S1->S0"), 0))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineSim), `engine sim has no links\[0\].trace: `+
		"run it with `--engine kernel`, or remove it from experiment mine"))
	for _, c := range []struct{ old, new, want string }{
		{`"1\n1\n7\n"`, `"1\n\n7\n"`,
			`lte.trace:2: "" is no time in ms \(hint: a line of a trace is a whole number\)`},
		{`"1\n1\n7\n"`, `"9\n1\n"`,
			`lte.trace:2: 1 ms is before the line above, 9 \(hint: sort the trace by time\)`},
		{`"1\n1\n7\n"`, `"0\n"`,
			`lte.trace:1: the trace ends at 0 ms \(hint: a trace lasts for 1 ms at least\)`},
		{"trace: lte.trace", "trace: lte.trace, rate: 1Gbps", "f:7:48: a port follows its trace " +
			`for the whole run \(hint: remove "rate"\)`},
		{"S0->S1", "S0->S2", `f:7:16: unknown port "S0->S2" .*`},
		{"trace: lte.trace", "trace: umts.trace",
			`f:7:31: "umts.trace" is not among "files" .*`},
	} {
		_, err := Parse("f", []byte(strings.Replace(file, c.old, c.new, 1)))
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
}
