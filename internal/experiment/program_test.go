// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"testing"

	"github.com/go-quicktest/qt"
)

const programsHead = `name: p
topology: {kind: dumbbell, senders: 1, receivers: 1, rate: 100Mbps, delay: 1ms}
schemes: [cubic]
duration: 1s
programs:
`

func TestProgramsAreRead(t *testing.T) {
	e, err := Parse("p.yaml", []byte(programsHead+`
  - {name: a, host: A0, command: [true], server: true}
  - {name: b, host: B0, command: [cat, x], after: {program: a, says: "^ok"}, at: 2ms}
  - {name: c, host: B0, command: [cat, x], after: b}
expect:
  - {what: ends, program: c, exit: 3}
  - {what: says, program: b, says: yes}
`))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(e.OnlyPrograms()))
	qt.Check(t, qt.Equals(e.Programs[1].After, AfterProgram{Program: "a", Says: "^ok"}))
	qt.Check(t, qt.Equals(e.Programs[2].After, AfterProgram{Program: "b"}))
	qt.Check(t, qt.Equals(e.Expect[0].Metric, ProgramExit))
	qt.Check(t, qt.Equals(e.Expect[0].Min.Value, 3))
	qt.Check(t, qt.Equals(e.Expect[0].Max.Value, 3))
	qt.Check(t, qt.Equals(e.Expect[1].Metric, ProgramSays))
	qt.Check(t, qt.Equals(e.Expect[1].Min.Value, 1))
	qt.Check(t, qt.ErrorMatches(e.CheckEngine(EngineSim), "engine sim runs no programs: .*"))
}

func TestWrongPrograms(t *testing.T) {
	for _, c := range []struct{ name, text, want string }{
		{"host", `[{name: a, host: X, command: [x]}]`, `p.yaml:6:.*unknown host "X".*`},
		{"command", `[{name: a, host: A0}]`, `p.yaml:6:.*"command" is missing.*`},
		{"after", `[{name: a, host: A0, command: [x], after: b}]`,
			`p.yaml:6:.*unknown program above this one "b".*`},
		{"says", `[{name: a, host: A0, command: [x]},
 {name: b, host: A0, command: [x], after: {program: a, says: "("}}]`,
			`p.yaml:7:.*is no regular expression.*`},
		{"twice", `[{name: a, host: A0, command: [x]}, {name: a, host: A0, command: [x]}]`,
			`p.yaml:6:.*duplicate program "a".*`},
		{"files", `[{name: a, host: A0, command: [x], files: [/etc/passwd]}]`,
			`p.yaml:6:.*is no pattern of files.*`},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := Parse("p.yaml", []byte(programsHead+" "+c.text+"\n"))
			qt.Assert(t, qt.ErrorMatches(err, "(?s)"+c.want))
		})
	}
}
