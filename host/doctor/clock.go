// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/host"
)

// signedWindow returns the smallest window of signed CNPs, 0 if none are configured or run.
func signedWindow(c *host.Config, s *host.Status) (window time.Duration) {
	if c != nil && c.RP != nil && c.RP.RequireTag {
		window = time.Duration(c.RP.TagWindow)
	}
	for _, one := range s.Components {
		requires := one.Setting("require_tag") == "true"
		if !one.IsOthers && (one.Signs || requires) {
			window = min(cmp.Or(window, one.TagWindow()), one.TagWindow())
		}
	}
	return window
}

// wallClock is what the kernel knows of its wall clock (adjtimex).
type wallClock struct {
	isSynchronised bool
	error          time.Duration // at most, if it is
}

func readWallClock() (w wallClock, err error) {
	var t unix.Timex
	clockState, err := unix.Adjtimex(&t)
	if err != nil {
		return w, fmt.Errorf("ask for the state of the wall clock: %w", err)
	}
	w.isSynchronised = clockState != unix.TIME_ERROR && t.Status&unix.STA_UNSYNC == 0
	w.error = time.Duration(t.Maxerror) * time.Microsecond
	return w, nil
}

// check judges the wall clock. Only the times of signed CNPs depend on it; window is 0 without
// them. All else goes by the monotonic clock, which hosts need not agree on.
func (w wallClock) check(found *checks, window time.Duration) {
	const name = "wall clock"
	is := "not synchronised, as far as the kernel knows"
	if w.isSynchronised {
		is = fmt.Sprintf("synchronised, at most %v off", w.error)
	}
	switch {
	case window == 0 && !w.isSynchronised:
		found.ok(name, "%s; only signed CNPs need it", is)
	case window == 0 || w.isSynchronised && w.error <= window/2:
		found.ok(name, "%s", is)
	default:
		found.bad(Warn, name, is, fmt.Sprintf("at most %v off: RP refuses signed CNPs that are "+
			"more than %v off", window/2, window),
			"see chronyc tracking or timedatectl timesync-status; chrony tells the kernel only "+
				"with rtcsync in its configuration")
	}
}

func checkWallClock(found *checks, c *host.Config, s *host.Status) {
	w, err := readWallClock()
	if err != nil {
		found.bad(Warn, "wall clock", err.Error(), "a state that can be read", "timedatectl")
		return
	}
	w.check(found, signedWindow(c, s))
}
