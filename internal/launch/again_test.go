// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// TestAgain: the job of a run has all that the command line and a choice of the dilation changed.
func TestAgain(t *testing.T) {
	e, err := parse(t, small+cases).With(experiment.Changes{
		Seed: new(uint64(7)), Dilation: new(uint(12)),
	})
	qt.Assert(t, qt.IsNil(err))
	e, err = e.Case("short")
	qt.Assert(t, qt.IsNil(err))
	run := resulttest.Fig2(e, "pfc")
	run.Experiment = e.Source()
	run.Manifest.DilationsTried = []uint{10}
	j, err := Again(run)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(j.Label(), "short/pfc"))
	qt.Check(t, qt.Equals(j.Experiment.Seed, 7))
	qt.Check(t, qt.Equals(j.Experiment.Duration, e.Duration))
	qt.Check(t, qt.Equals(j.Experiment.Dilation, experiment.Dilation{Shift: 12}))
	qt.Check(t, qt.Equals(j.Experiment.Hash(), e.Hash()))
}
