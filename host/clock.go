// SPDX-License-Identifier: Apache-2.0

package host

import (
	"fmt"
	"time"

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
	for _, name := range []string{RPName, NPName} {
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
	if s.Signs, err = ring.IsUsed(); err != nil || !s.Signs {
		return err
	}
	off, err := ring.ClockError()
	if err != nil {
		return err
	}
	if window := s.TagWindow(); off.Abs() > window/2 {
		s.Problems = append(s.Problems, fmt.Sprintf("the wall clock was set by %v after the keys "+
			"were: the times of signed CNPs are wrong by as much, and RPs refuse those that are "+
			"wrong by %v: run pcn host up", off.Round(time.Millisecond), window))
	}
	return nil
}

// tagWindow is the largest difference between the times of signed CNPs and of the host. An NP does
// not know that of its peers' RPs.
func (s *ComponentStatus) TagWindow() time.Duration {
	window, err := config.ParseDuration(s.Setting("tag_window"))
	if err != nil {
		return tc.DefaultWindow
	}
	return time.Duration(window)
}
