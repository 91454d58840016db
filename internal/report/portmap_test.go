// SPDX-License-Identifier: Apache-2.0

package report

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

// A network of hundreds of nodes has a map of its ports: those that lead up before those that lead
// down, and of too many those with the longest times.
func TestMapRows(t *testing.T) {
	n := networkOf(t, "{kind: clos, pods: 2, tors: 2, leaves: 2, spines: 2, hosts: 2}")
	ports := n.Ports()
	s := netStates{frames: 4, stepNs: 1e6, used: make([]bool, len(ports)),
		states: [][][]portState{make([][]portState, len(ports))}}
	for p := range ports {
		s.states[0][p] = []portState("0000")
	}
	set := func(port string, states string) {
		p := slices.Index(ports, port)
		qt.Assert(t, qt.IsTrue(p >= 0), qt.Commentf("%s of %s", port, ports))
		s.used[p], s.states[0][p] = true, []portState(states)
	}
	qt.Check(t, qt.HasLen(first(mapRows(s, n)), 0))
	tiers := n.Tiers()
	var up, down []string
	for _, port := range ports {
		if strings.HasPrefix(port, tiers[0].Nodes[0]+"->") {
			up = append(up, port)
		}
		if strings.HasSuffix(port, "->"+tiers[0].Nodes[0]) {
			down = append(down, port)
		}
	}
	set(down[0], "0110")
	set(up[0], "3001")
	rows, more := mapRows(s, n)
	qt.Check(t, qt.Equals(more, 0))
	qt.Assert(t, qt.HasLen(rows, 2))
	qt.Check(t, qt.Equals(rows[0].name, up[0]))
	qt.Check(t, qt.Equals(rows[1].name, down[0]))
	qt.Check(t, qt.Equals(rows[1].states, 2))
	svg := string(s.mapSVG("PFC", rows, s.states[0]))
	qt.Check(t, qt.Equals(strings.Count(svg, `fill="`+viewStates[2].Color), 1)) // paused
	qt.Check(t, qt.StringContains(svg, strings.ReplaceAll(up[0], ">", "&gt;")))
}

func first[A, B any](a A, _ B) A { return a }

func TestRunsOf(t *testing.T) {
	for states, want := range map[string]string{
		"": "[]", "000": "[]", "3": "[[0 1]]", "330033": "[[0 2] [4 2]]", "0313": "[[1 1] [3 1]]",
	} {
		qt.Check(t, qt.Equals(fmt.Sprint(runsOf([]portState(states), portPaused)), want),
			qt.Commentf("%s", states))
	}
}

func TestTickStep(t *testing.T) {
	for least, want := range map[float64]string{
		0.9: "1", 1.1: "2", 3: "5", 14: "20", 0.03: "0.05",
	} {
		qt.Check(t, qt.Equals(fmt.Sprintf("%.3g", tickStep(least)), want))
	}
}

// The map has the runs of all cases that are of the same network and the same times.
func TestAlike(t *testing.T) {
	e := load(t)
	n := e.Topology.Network()
	run := func(durationNs int64) caseView {
		r := &result.Run{Manifest: result.Manifest{DurationNs: durationNs}}
		return caseView{Experiment: e, Runs: []runView{{Run: r}}}
	}
	qt.Check(t, qt.HasLen(alike([]caseView{run(5), run(5), run(6), run(5)}, n).Runs, 3))
	qt.Check(t, qt.HasLen(alike(slices.Repeat([]caseView{run(5)}, 9), n).Runs, maxMaps))
	qt.Check(t, qt.HasLen(alike([]caseView{run(5)}, n).Runs, 1))
}
