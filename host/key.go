// SPDX-License-Identifier: Apache-2.0

package host

import (
	"errors"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/host/internal/bpffs"
	"github.com/pcn-linux/pcn/tc"
)

// SetKey stores a key for signed CNPs in slot 0 or 1 of those of NP and RP that run, and returns
// their names. It takes effect at once and lasts until Down. docs/security.md has the order in
// which keys rotate without losing a CNP.
func (h *Host) SetKey(slot int, key cnp.Key, keyState tc.KeyState) (done []string, err error) {
	err = h.eachKeyRing(func(name string, ring *tc.KeyRing) error {
		err := ring.Set(slot, key, keyState)
		if err == nil {
			done = append(done, name)
		}
		return err
	})
	if err == nil && len(done) == 0 {
		err = bpffs.CheckMount(h.root)
	}
	if err == nil && len(done) == 0 {
		err = errors.New("neither NP nor RP runs on this host: pcn host up")
	}
	return done, err
}
