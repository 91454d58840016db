// SPDX-License-Identifier: Apache-2.0

package doctor_test

import (
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host/doctor"
)

func TestDoctorJudgesClock(t *testing.T) {
	const window = 500 * time.Millisecond
	for _, test := range []struct {
		isSynchronised bool
		mayBeOff       time.Duration
		window         time.Duration
		level          doctor.Level
		is             string
	}{
		{true, time.Millisecond, 0, doctor.OK, "synchronised, at most 1ms off"},
		{true, time.Hour, 0, doctor.OK, "synchronised, at most 1h0m0s off"},
		{false, 0, 0, doctor.OK,
			"not synchronised, as far as the kernel knows; only signed CNPs need it"},
		{true, window / 2, window, doctor.OK, "synchronised, at most 250ms off"},
		{true, window/2 + 1, window, doctor.Warn, "synchronised, at most 250.000001ms off"},
		{false, 0, window, doctor.Warn, "not synchronised, as far as the kernel knows"},
	} {
		found := doctor.CheckWallClock(test.isSynchronised, test.mayBeOff, test.window)
		qt.Assert(t, qt.HasLen(found, 1))
		qt.Check(t, qt.Equals(found[0].Level, test.level), qt.Commentf("%+v", test))
		qt.Check(t, qt.Equals(found[0].Is, test.is))
		qt.Check(t, qt.Equals(found[0].Level == doctor.OK, found[0].Want == ""))
	}
}
