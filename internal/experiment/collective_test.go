// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"
)

// In step k of an all-to-all, rank r sends to rank r + k, when what it sent and what it got in step
// k - 1 has arrived. Only messages of step 1 wait for the rank's own computation.
func TestAllToAllWaits(t *testing.T) {
	const ranks = 5
	e, err := Parse("c.yaml", []byte(`name: c
engine: sim
topology: {kind: dumbbell, senders: 5, rate: 10Gbps}
schemes: [pfc]
warmup: 0ms
duration: 1s
collective: {kind: all-to-all, ranks: A0..A4, size: 5MB, compute: 30us}
`))
	qt.Assert(t, qt.IsNil(err))
	name := func(from, to int) string {
		return fmt.Sprintf("c-A%d-A%d", (from+ranks)%ranks, (to+ranks)%ranks)
	}
	waits := map[string][]string{}
	for _, w := range e.within {
		for _, p := range w.Then {
			for _, f := range w.For {
				then := e.Flows[p.Flow].Name
				waits[then] = append(waits[then], e.Flows[f.Flow].Name)
			}
		}
	}
	for r := range ranks {
		for k := 1; k < ranks; k++ {
			var want []string
			if k > 1 {
				want = []string{name(r, r+k-1), name(r-k+1, r)}
			}
			what := name(r, r+k)
			qt.Check(t, qt.ContentEquals(waits[what], want), qt.Commentf("%s", what))
			i := slices.IndexFunc(e.Flows, func(f Flow) bool { return f.Name == what })
			qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("%s", what))
			f, start := e.Flows[i], Duration(0)
			if k == 1 {
				start = 30 * Microsecond
			}
			qt.Check(t, qt.Equals(f.Begins, k == 1), qt.Commentf("%s", what))
			qt.Check(t, qt.Equals(f.Start, start), qt.Commentf("%s", what))
			qt.Check(t, qt.Equals(f.Size, 1_000_000), qt.Commentf("%s", what))
		}
	}
}

// A range counts up by names that are written in one way only.
func TestNodeLists(t *testing.T) {
	for text, want := range map[string]NodeList{
		"H2": {"H2"}, "H9..H11": {"H9", "H10", "H11"}, "H0..H0": {"H0"},
		"T1x2..T1x3": {"T1x2", "T1x3"},
		"H01..H3":    nil, "H1..H03": nil, "H3..H1": nil, "H1..R2": nil, "H..H2": nil, "H1..": nil,
		"H1..H99999999999999999999": nil, "..": nil, "H 1": nil,
	} {
		got, err := ParseNodeList(text)
		qt.Check(t, qt.DeepEquals(got, want), qt.Commentf("%s", text))
		qt.Check(t, qt.Equals(err != nil, want == nil), qt.Commentf("%s: %v", text, err))
	}
}
