// SPDX-License-Identifier: Apache-2.0

package host

import (
	"cmp"
	"fmt"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config"
	"github.com/pcn-linux/pcn/tc"
)

// eachKeyRing calls do with the keys of NP and RP that run in this namespace.
func (h *Host) eachKeyRing(do func(name string, ring *tc.KeyRing) error) error {
	if err := checkOwner(h.root); err != nil {
		return err
	}
	here, err := currentNamespace()
	if err != nil {
		return err
	}
	for _, name := range []string{rpName, npName} {
		p, err := h.folder(here.folderOf(name)).open()
		if err != nil {
			return err
		}
		if ring := p.keyRing(); ring != nil {
			err = do(name, ring)
		}
		p.close()
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
	}
	return nil
}

// keyRing returns the keys of a component, nil if it has none.
func (p *pinned) keyRing() *tc.KeyRing {
	keys, clock := p.maps[tc.KeysMap], p.maps[tc.ClockMap]
	if keys == nil || clock == nil {
		return nil
	}
	return tc.NewKeyRing(keys, clock)
}

// syncClocks tells NP and RP the wall clock, where they have keys: it may have been set since.
func (h *Host) syncClocks() error {
	return h.eachKeyRing(func(_ string, ring *tc.KeyRing) error {
		isUsed, err := ring.IsUsed()
		if err != nil || !isUsed {
			return err
		}
		return ring.SyncClock()
	})
}

// addClock says if signed CNPs are dated by a wall clock that has been set since.
func (s *ComponentStatus) addClock(p *pinned) error {
	ring := p.keyRing()
	if ring == nil {
		return nil
	}
	var err error
	if s.signs, err = ring.IsUsed(); err != nil || !s.signs {
		return err
	}
	off, err := ring.ClockError()
	if err != nil {
		return err
	}
	if window := s.tagWindow(); off.Abs() > window/2 {
		s.Problems = append(s.Problems, fmt.Sprintf("the wall clock was set by %v after the keys "+
			"were: the times of signed CNPs are wrong by as much, and RPs refuse those that are "+
			"wrong by %v: run pcn host up", off.Round(time.Millisecond), window))
	}
	return nil
}

// tagWindow is the largest difference between the times of signed CNPs and of the host. An NP does
// not know that of its peers' RPs.
func (s *ComponentStatus) tagWindow() time.Duration {
	window, err := config.ParseDuration(settingIn(s.Settings, "tag_window"))
	if err != nil {
		return tc.DefaultWindow
	}
	return time.Duration(window)
}

// signedWindow returns the smallest window of signed CNPs, 0 if none are configured or run.
func signedWindow(c *Config, s *Status) (window time.Duration) {
	if c != nil && c.RP != nil && c.RP.RequireTag {
		window = time.Duration(c.RP.TagWindow)
	}
	for _, one := range s.Components {
		requires := settingIn(one.Settings, "require_tag") == "true"
		if !one.isOthers && (one.signs || requires) {
			window = min(cmp.Or(window, one.tagWindow()), one.tagWindow())
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

func checkWallClock(found *checks, c *Config, s *Status) {
	w, err := readWallClock()
	if err != nil {
		found.bad(Warn, "wall clock", err.Error(), "a state that can be read", "timedatectl")
		return
	}
	w.check(found, signedWindow(c, s))
}
