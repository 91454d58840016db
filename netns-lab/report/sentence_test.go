// SPDX-License-Identifier: Apache-2.0

package report

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/result"
)

func TestSentence(t *testing.T) {
	run := func(v result.Verdict) runView {
		return runView{Run: &result.Run{Manifest: result.Manifest{Verdict: v}}}
	}
	compared := []result.CompareOutcome{{
		Values: []result.CompareValue{{Judged: true, Pass: true}, {Judged: false}},
		Order:  &result.Relation{Holds: false},
	}}
	for _, c := range []struct {
		runs       []runView
		met, total int
		compared   []result.CompareOutcome
		want       string
	}{
		{[]runView{run(result.Valid)}, 0, 0, nil,
			"The run is valid. Nothing was held against a paper."},
		{[]runView{run(result.Invalid)}, 2, 3, nil, "The run is not valid: do not use its " +
			"numbers. 2 of 3 results are within their bounds."},
		{[]runView{run(result.Valid), run(result.Invalid)}, 3, 3, nil, "1 of 2 runs are not " +
			"valid: do not use their numbers. 3 of 3 results are within their bounds."},
		{[]runView{run(result.Valid), run(result.Valid)}, 3, 3, compared,
			"All 2 runs are valid. 4 of 5 results are within their bounds."},
	} {
		g := groupView{Met: c.met, Total: c.total, Compared: c.compared,
			Cases: []caseView{{Runs: c.runs}}}
		qt.Check(t, qt.Equals(g.Sentence(), c.want))
	}
}
