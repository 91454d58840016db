// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host/doctor"
)

// A machine without an idle CPU can't tell whether the control is at fault.
func TestJudgeShares(t *testing.T) {
	for _, c := range []struct {
		isBusy   bool
		one, two float64
		name     string
		level    doctor.Level
	}{
		{false, 95e6, 95e6, "fair share", doctor.OK},
		{true, 95e6, 95e6, "fair share", doctor.OK},
		{false, 29e6, 52e6, "use", doctor.Fail},
		{true, 29e6, 52e6, "use", doctor.Warn},
		{false, 180e6, 10e6, "fair share", doctor.Fail}, // Jain's index 0.56
		{true, 180e6, 10e6, "fair share", doctor.Warn},
	} {
		found := doctor.JudgeShares(c.isBusy, c.one, c.two)
		qt.Assert(t, qt.HasLen(found, 1))
		qt.Check(t, qt.Equals(found[0].Name, c.name), qt.Commentf("%+v", c))
		qt.Check(t, qt.Equals(found[0].Level, c.level), qt.Commentf("%+v", c))
	}
}
