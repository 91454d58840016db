// SPDX-License-Identifier: Apache-2.0

package sim

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// A switch's own feedback works: RCP is stable in a short loop and not in a long one, and averaging
// makes that one stable. docs/findings.md has the limits.
func TestRCP(t *testing.T) {
	e := loadFile(t, "../../netns-lab/experiments/rcp/rcp.yaml")
	const unstable = 0.05 * 2.4e9 // of a fair share
	for name, isStable := range map[string]bool{
		"rcp-500us": true, "rcp-550us": false, "ap-1400us": true,
		"ap-1500us": false,
	} {
		c, err := e.Case(name)
		qt.Assert(t, qt.IsNil(err))
		swing, err := simulate(t, c, "rcp").MeasureOne(experiment.Measure{
			Metric: experiment.MaxRateSwing, Flows: []string{"F-H0-0"},
			From: 90 * experiment.Millisecond,
		}, experiment.OverMax)
		qt.Assert(t, qt.IsNil(err))
		t.Logf("%s: a rate swings by %s", name, swing)
		qt.Check(t, qt.Equals(swing.Value < unstable, isStable), qt.Commentf("%s", name))
	}
}
