// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"errors"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/internal/experiment"
)

// shortError says that the run ended before there was a value.
type shortError struct {
	error
	needsNs int64 // the duration that the value needs; 0 if that is not known
}

// needed returns the duration that a run would need before a value can be judged, of which err says
// why there is none; 0 if the run was long enough. A time that was not reached fails its upper
// bound as soon as the run has been watched for longer than that.
func needed(
	e *experiment.Experiment, m experiment.Measure, most *experiment.Quantity, err error,
) experiment.Duration {
	var short shortError
	var longer *notReachedError
	needs := experiment.Duration(0)
	switch {
	case errors.As(err, &short):
		needs = cmp.Or(experiment.Duration(short.needsNs), max(e.FileDuration(), 2*e.Duration))
	case errors.As(err, &longer):
		if most == nil || most.Unit != config.UnitTime || float64(longer.observedNs) >= most.Value {
			return 0
		}
		needs = experiment.Duration(longer.untilNs-longer.observedNs) +
			experiment.Duration(most.Value) + m.Hold
	default:
		return 0
	}
	if over := needs % e.Sample; over != 0 {
		needs += e.Sample - over
	}
	return needs
}

// TooShort reports whether a comparison does not fail, but can't be judged: some of its runs were
// too short.
func (o CompareOutcome) TooShort() bool {
	short := false
	for _, v := range o.Values {
		if v.Judged && !v.Pass && v.Needs == 0 {
			return false
		}
		short = short || v.Needs != 0
	}
	return short && !o.Pass
}

// shortSeeds counts the seeds of which a value is missing as their runs were too short.
type shortSeeds struct {
	count int
	needs experiment.Duration // that all of them would need
}

func (s *shortSeeds) add(needs experiment.Duration) {
	if needs != 0 {
		s.count++
		s.needs = max(s.needs, needs)
	}
}

// needed returns the duration that all seeds would need to be judged, given their values of each
// object; 0 if longer runs of those that were too short could not change that the bounds are not
// met.
func (s shortSeeds) needed(
	seeds, missing int, lists [][]experiment.Quantity, least, most *experiment.Quantity,
) experiment.Duration {
	if !fewMissing(missing-s.count, seeds) {
		return 0
	}
	for _, values := range lists {
		below, above := 0, 0
		for _, v := range values {
			if least != nil && v.Value < least.Value {
				below++
			}
			if most != nil && v.Value > most.Value {
				above++
			}
		}
		if 2*max(below, above) > seeds {
			return 0
		}
	}
	return s.needs
}
