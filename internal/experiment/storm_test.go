// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const stormFile = `name: mine
engine: sim
topology: {kind: star, hosts: 3, rate: 10Gbps, delay: 1us}
schemes: [pfc]
duration: 5ms
switch: {pfc: {watchdog: {detection: 1ms}}}
flows: [{name: F0, from: H0, to: H1}]
storms: [{hosts: H2, at: 1ms, until: 2ms}]
`

// Storms of a host that overlap are one: the first end ends both.
func TestStormChanges(t *testing.T) {
	text := strings.Replace(stormFile, "storms: [", `storms:
  - {hosts: H0..H2, at: 3ms}
  - {hosts: H2, at: 1.5ms, until: 2.5ms, priority: 0}
  - `, 1)
	text = strings.Replace(text, "2ms}]", "2ms}", 1)
	e, err := Parse("f", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	for host, want := range map[string][]StormChange{
		"H0": {{3 * Millisecond, true}, {5 * Millisecond, false}},
		"H2": {{Millisecond, true}, {2 * Millisecond, false}, {3 * Millisecond, true},
			{5 * Millisecond, false}},
		"H3": {},
	} {
		qt.Check(t, qt.DeepEquals(append([]StormChange{}, e.StormChanges(host, DataClass(0))...),
			want), qt.Commentf("%s", host))
		qt.Check(t, qt.HasLen(e.StormChanges(host, DataClass(1)), 0))
	}
}

// Ports on Linux have room for 32 storms of a host.
func TestManyStorms(t *testing.T) {
	many := strings.Repeat("{hosts: H2, at: 1ms, until: 2ms}, ", maxStorms)
	text := strings.Replace(stormFile, "storms: [", "storms: ["+many, 1)
	_, err := Parse("f", []byte(text))
	qt.Check(t, qt.IsNil(err))
	_, err = Parse("f", []byte(strings.Replace(text, "engine: sim\n", "", 1)))
	qt.Check(t, qt.ErrorMatches(err,
		`f:7:9: ports on Linux can be told of 32 storms, not of 33 .*`))
}

func TestStorms(t *testing.T) {
	e, err := Parse("f", []byte(stormFile))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(*e.Switch.PFC.Watchdog, Watchdog{Detection: Millisecond,
		Restoration: 2 * Millisecond, Poll: Millisecond, Action: WatchdogDrop}))
	e, err = Parse("f", []byte(strings.Replace(stormFile, "{detection: 1ms}", "{}", 1)))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(*e.Switch.PFC.Watchdog, Watchdog{Detection: 200 * Millisecond,
		Restoration: 400 * Millisecond, Poll: 200 * Millisecond, Action: WatchdogDrop}))
	for _, c := range []struct{ old, new, want string }{
		{"engine: sim\n", "", ""},
		{"hosts: H2, ", "", `f:8:10: "hosts" is missing \(hint: add hosts:\)`},
		{"hosts: H2", "hosts: H9", `f:8:18: unknown host "H9" (.|\n)*`},
		{"until: 2ms", "until: 1ms", `f:8:38: 1ms is out of range \(hint: 1.000001ms to 5ms\)`},
		{"at: 1ms", "at: 7ms", `f:8:26: 7ms is out of range (.|\n)*`},
		{"at: 1ms", "priority: 1", `f:8:32: no flow has priority 1 (.|\n)*`},
		{"at: 1ms", "priority: -1", `f:8:32: no flow has priority -1 (.|\n)*`},
		{"1ms}}}", "1ms, poll: 2ms}}}", `f:6:49: 2ms is out of range \(hint: 1us to 1ms\)`},
		{"1ms}}}", "1ms, action: kill}}}", `f:6:51: unknown action "kill" (.|\n)*`},
		{"1ms}}}", "1ms, at: H0}}}", `f:6:47: unknown switch "H0" (.|\n)*`},
		{"{watchdog: {detection: 1ms}}", "{off: true}",
			`f:8:10: PAUSE is of PFC, and no scheme has it (.|\n)*`},
	} {
		text := strings.Replace(stormFile, c.old, c.new, 1)
		qt.Assert(t, qt.Not(qt.Equals(text, stormFile)))
		_, err := Parse("f", []byte(text))
		if c.want == "" {
			qt.Check(t, qt.IsNil(err))
			continue
		}
		qt.Check(t, qt.ErrorMatches(err, c.want), qt.Commentf("%s", c.new))
	}
}
