// SPDX-License-Identifier: Apache-2.0

// Package bisect finds the first of several commits that is bad, where a test may not be able to
// tell.
package bisect

import (
	"errors"

	"github.com/pcn-linux/pcn/internal/result"
)

// Verdict is what a test says of a commit.
type Verdict int

// The verdicts.
const (
	CantTell Verdict = iota
	Good
	Bad
)

func (v Verdict) String() string {
	return [...]string{"can't tell", "good", "bad"}[v]
}

// Found is where the first bad commit is: at First if that is Last, else somewhere in First to
// Last, as those before Last can't be told.
type Found struct{ First, Last int }

// Search returns where the first bad of n commits is: 0 is known to be good, and n-1 to be bad. It
// tests the commit in the middle of those that it may be, and where that can't be told, the nearest
// that can.
func Search(n int, test func(commit int) (Verdict, error)) (Found, error) {
	if n < 2 {
		return Found{}, errors.New("want a good commit and a bad one after it")
	}
	good, bad := 0, n-1
	for bad-good > 1 {
		commit, verdict, err := nearestMiddle(good, bad, test)
		if err != nil {
			return Found{}, err
		}
		switch verdict {
		case Good:
			good = commit
		case Bad:
			bad = commit
		case CantTell:
			return Found{good + 1, bad}, nil
		}
	}
	return Found{bad, bad}, nil
}

// nearestMiddle tests commits between good and bad, from the middle on, until one can be told.
func nearestMiddle(good, bad int, test func(int) (Verdict, error)) (int, Verdict, error) {
	middle := (good + bad) / 2
	for away := 0; middle-away > good || middle+away < bad; away++ {
		for _, commit := range []int{middle - away, middle + away} {
			if commit <= good || commit >= bad || away == 0 && commit != middle {
				continue
			}
			verdict, err := test(commit)
			if err != nil || verdict != CantTell {
				return commit, verdict, err
			}
			if away == 0 {
				break
			}
		}
	}
	return middle, CantTell, nil
}

// LeastSeeds is how many seeds a verdict needs at least: six values of six lie on one side of their
// median with a probability below 5%.
const LeastSeeds = 6

// Judge says what the expectations of several seeds tell. A commit is good if the whole 95%
// interval of each median is within its bounds, and bad if that of one is outside. Else more seeds
// are needed.
func Judge(outcomes []result.SeedsOutcome) Verdict {
	verdict := Good
	for _, o := range outcomes {
		switch judgeOne(o) {
		case Bad:
			return Bad
		case CantTell:
			verdict = CantTell
		}
	}
	if len(outcomes) == 0 {
		return CantTell
	}
	return verdict
}

func judgeOne(o result.SeedsOutcome) Verdict {
	if len(o.Spreads) == 0 && o.Missing >= LeastSeeds {
		return Bad // such as a time that no seed reaches
	}
	if len(o.Spreads) == 0 || o.Missing > 0 {
		return CantTell
	}
	verdict := Good
	for _, s := range o.Spreads {
		if s.Seeds < LeastSeeds {
			return CantTell
		}
		low, high := o.Expect.Min, o.Expect.Max
		if low != nil && s.High.Value < low.Value || high != nil && s.Low.Value > high.Value {
			return Bad
		}
		if low != nil && s.Low.Value < low.Value || high != nil && s.High.Value > high.Value {
			verdict = CantTell
		}
	}
	return verdict
}
