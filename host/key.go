// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"
	"fmt"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/tc"
)

// SetKey stores a key for signed CNPs in slot 0 or 1 of those of NP and RP that run, and returns
// their names. It takes effect at once and lasts until Down. docs/security.md has the order in
// which keys rotate without losing a CNP.
func (h *Host) SetKey(slot int, key cnp.Key, keyState tc.KeyState) ([]string, error) {
	here, err := currentNamespace()
	if err != nil {
		return nil, err
	}
	var done []string
	for _, name := range []string{rpName, npName} {
		p, err := h.folder(here.folderOf(name)).open()
		if err != nil {
			return done, err
		}
		keys, clock := p.maps[tc.KeysMap], p.maps[tc.ClockMap]
		if keys != nil && clock != nil {
			err = tc.NewKeyRing(keys, clock).Set(slot, key, keyState)
			done = append(done, name)
		}
		p.close()
		if err != nil {
			return done, fmt.Errorf("%s: %w", name, err)
		}
	}
	if len(done) == 0 {
		return nil, errors.New("neither NP nor RP runs on this host: pcn host up")
	}
	return done, nil
}
