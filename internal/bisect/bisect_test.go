// SPDX-License-Identifier: Apache-2.0

package bisect

import (
	"errors"
	"fmt"
	"math/bits"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// The first bad commit is found wherever it is, in as many tests as halving takes.
func TestSearch(t *testing.T) {
	for _, n := range []int{2, 3, 10, 65} {
		for first := 1; first < n; first++ {
			tests := 0
			found, err := Search(n, func(commit int) (Verdict, error) {
				tests++
				if commit >= first {
					return Bad, nil
				}
				return Good, nil
			})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(found, Found{first, first}))
			qt.Check(t, qt.IsTrue(tests <= bits.Len(uint(n))), qt.Commentf("%d of %d", tests, n))
		}
	}
	_, err := Search(1, nil)
	qt.Check(t, qt.ErrorMatches(err, `want a good commit and a bad one after it`))
}

// Commits that can't be told are stepped over. Where the first bad one may be one of them, the
// answer names them all, and it is never wrong.
func TestSearchWhereSomeCantBeTold(t *testing.T) {
	const n = 12
	for unknown := range 1 << (n - 2) { // every set of commits but the ends
		first := 1 + unknown%(n-1)
		isUnknown := func(c int) bool { return c > 0 && c < n-1 && unknown>>(c-1)&1 == 1 }
		found, err := Search(n, func(c int) (Verdict, error) {
			switch {
			case isUnknown(c):
				return CantTell, nil
			case c >= first:
				return Bad, nil
			}
			return Good, nil
		})
		what := fmt.Sprintf("unknown %b, first %d, found %v", unknown, first, found)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsTrue(found.First <= first && first <= found.Last), qt.Commentf(what))
		for c := found.First; c < found.Last; c++ { // no wider than needed
			qt.Assert(t, qt.IsTrue(isUnknown(c)), qt.Commentf(what))
		}
	}
}

func TestSearchEndsWithTheTest(t *testing.T) {
	wrong := errors.New("wrong")
	_, err := Search(9, func(int) (Verdict, error) { return CantTell, wrong })
	qt.Check(t, qt.ErrorIs(err, wrong))
}

// outcome is one of a metric at most 10, with these values.
func outcome(missing int, values ...float64) result.SeedsOutcome {
	o := result.SeedsOutcome{
		Expect:  experiment.Expect{Max: &experiment.Quantity{Value: 10}},
		Missing: missing,
	}
	var all []experiment.Quantity
	for _, v := range values {
		all = append(all, experiment.Quantity{Value: v})
	}
	if len(all) > 0 {
		o.Spreads = []result.Spread{result.SpreadOf(all)}
	}
	return o
}

func TestJudge(t *testing.T) {
	good, bad := outcome(0, 1, 2, 3, 4, 5, 6), outcome(0, 11, 12, 13, 14, 15, 16)
	mixed := outcome(0, 8, 9, 10, 11, 12, 13)
	for _, test := range []struct {
		of   []result.SeedsOutcome
		want Verdict
	}{
		{nil, CantTell},
		{[]result.SeedsOutcome{good}, Good},
		{[]result.SeedsOutcome{bad}, Bad},
		{[]result.SeedsOutcome{mixed}, CantTell},
		{[]result.SeedsOutcome{good, mixed}, CantTell},
		{[]result.SeedsOutcome{mixed, bad}, Bad},
		{[]result.SeedsOutcome{outcome(0, 1, 2, 3, 4, 5)}, CantTell},      // few seeds
		{[]result.SeedsOutcome{outcome(1, 1, 2, 3, 4, 5, 6)}, CantTell},   // one has no value
		{[]result.SeedsOutcome{outcome(6)}, Bad},                          // none has one
		{[]result.SeedsOutcome{outcome(0, 11, 12, 13, 14, 15)}, CantTell}, // few seeds
	} {
		qt.Check(t, qt.Equals(Judge(test.of), test.want))
	}
}
