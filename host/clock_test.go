// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
	"github.com/pcn-linux/pcn/tc"
)

// setClockState tells the kernel how good its clock is, as NTP daemons do.
func setClockState(t *testing.T, status int32, mayBeOff time.Duration) {
	t.Helper()
	const adjStatus, adjMaxError = 0x10, 0x4
	_, err := unix.Adjtimex(&unix.Timex{Modes: adjStatus | adjMaxError, Status: status,
		Maxerror: mayBeOff.Microseconds()})
	qt.Assert(t, qt.IsNil(err))
}

// The state of the kernel's clock is a warning where signed CNPs are required, or a key is set.
func TestDoctorReadsClock(t *testing.T) {
	wire(t)
	clock := func(c *host.Config) doctor.Check {
		t.Helper()
		return checkOf(t, diagnose(t, c), "wall clock")
	}
	t.Cleanup(func() { setClockState(t, unix.STA_UNSYNC, time.Second) })
	setClockState(t, unix.STA_UNSYNC, time.Second)
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.OK))
	signed := parse(t, rpConfig(", require_tag: true, tag_window: 100ms"))
	qt.Check(t, qt.Equals(clock(signed).Level, doctor.Warn))
	setClockState(t, 0, 10*time.Millisecond)
	qt.Check(t, qt.Equals(clock(signed).Level, doctor.OK))
	qt.Check(t, qt.Matches(clock(signed).Is, `synchronised, at most 1.*ms off`))
	setClockState(t, 0, 60*time.Millisecond)
	qt.Check(t, qt.StringContains(clock(signed).Want, "at most 50ms off"))
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.OK))

	// NP signs for others, whose window it does not know.
	up(t, "np: {interfaces: [veth0], T: 1ms}\n")
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.OK))
	_, err := host.New().SetKey(1, cnp.Key{1}, tc.KeySigns)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.OK))
	setClockState(t, 0, 300*time.Millisecond)
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.Warn))
	_, err = host.New().SetKey(1, cnp.Key{}, tc.KeyNone)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(clock(nil).Level, doctor.OK))
}

// setClock sets the wall clock ahead by d.
func setClock(t *testing.T, d time.Duration) {
	t.Helper()
	now := unix.NsecToTimespec(time.Now().Add(d).UnixNano())
	qt.Assert(t, qt.IsNil(unix.ClockSettime(unix.CLOCK_REALTIME, &now)))
}

// After the wall clock was set, signed CNPs have the wrong time: status says so, up mends it.
func TestClockIsSet(t *testing.T) {
	wire(t)
	config := rpConfig(", require_tag: true") + "np: {interfaces: [veth0], T: 1ms}\n"
	up(t, config)
	problems := func() (all []string) {
		t.Helper()
		for _, c := range statusOf(t).Components {
			all = append(all, c.Problems...)
		}
		return all
	}
	setClock(t, time.Minute)
	t.Cleanup(func() { setClock(t, -time.Minute) })
	qt.Check(t, qt.HasLen(problems(), 0)) // no keys
	_, err := host.New().SetKey(0, cnp.Key{1}, tc.KeyAccepted)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(problems(), 0))
	setClock(t, 100*time.Millisecond) // within half of the window
	qt.Check(t, qt.HasLen(problems(), 0))
	setClock(t, time.Second)
	t.Cleanup(func() { setClock(t, -1100*time.Millisecond) })
	for _, p := range problems() {
		qt.Check(t, qt.Matches(p, `the wall clock was set by 1\.1\d*s after the keys were: .*`+
			`those that are wrong by 500ms: run pcn host up`))
	}
	qt.Check(t, qt.HasLen(problems(), 2)) // RP's and NP's
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), "rp").Level, doctor.Fail))
	up(t, config)
	qt.Check(t, qt.HasLen(problems(), 0))
}
