// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const scheduleFile = `name: mine
engine: sim
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 1us}
schemes: [pfc]
duration: 5ms
trace: {file: job.goal, ranks: [H2, H0, H1]}
files:
  job.goal: |
    num_ranks 2
    rank 0 {
    a: calc 3000
    b: send 1000b to 1
    b requires a
    c: recv 0b from 1
    }
    rank 1 {
    a: recv 1000b from 0
    b: calc 500
    b requires a
    c: send 0b to 0
    c requires b
    }
`

func TestSchedule(t *testing.T) {
	e, err := Parse("f", []byte(scheduleFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(e.Flows, 2))
	there, back := e.Flows[0], e.Flows[1]
	qt.Check(t, qt.DeepEquals([]string{there.From, there.To, back.From, back.To},
		[]string{"H2", "H0", "H0", "H2"}))
	qt.Check(t, qt.Equals(there.Start, 3*Microsecond))
	qt.Check(t, qt.Equals(there.Size, 1000))
	qt.Check(t, qt.Equals(back.Size, 1)) // a message takes a packet
	qt.Check(t, qt.DeepEquals(e.Waits, []Wait{
		{For: []Part{{0, 1}}, Delay: 500, Then: []Part{{1, 1}}},
	}))
	for _, c := range []struct{ old, new, want string }{
		{"calc 500", "calc fast", `job.goal:10: calc "fast": want a number`},
		{", ranks: [H2, H0, H1]", ", ranks: H2",
			`f:6:15: the schedule has 2 ranks, and there are 1 hosts for them (.|\n)*`},
		{"ranks: [H2, H0, H1]", "ranks: [H2, H9]", `f:6:32: unknown host "H9" (.|\n)*`},
		{"ranks: [H2, H0, H1]", "ranks: [H2, H2]", `f:6:32: duplicate host "H2" (.|\n)*`},
		{"ranks: [H2", "format: hpcc, ranks: [H2", `f:6:8: the file is a GOAL schedule, (.|\n)*`},
		{"calc 3000", "calc 5000000", `job.goal:4: rank 0 computes until 5ms, (.|\n)*`},
		{"to 1", "to 0", `job.goal:(.|\n)*`},
	} {
		text := strings.Replace(scheduleFile, c.old, c.new, 1)
		qt.Assert(t, qt.Not(qt.Equals(text, scheduleFile)))
		_, err := Parse("f", []byte(text))
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}
