// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
)

// KeyState says what a key of a [KeyRing] is for.
type KeyState uint32

// The values of enum key_state in bpf/include/cnp_tag.h.
const (
	KeyNone     KeyState = iota
	KeyAccepted          // the reaction point takes CNPs that it signed
	KeySigns             // and the notification point signs with it
)

// KeyRing is where an NP or an RP of a host has the keys of signed CNPs. It can be changed while
// packets flow; docs/security.md has the order in which no CNP is lost.
type KeyRing struct{ keys, clock *ebpf.Map }

// The maps of a ring, in either program's object.
const (
	KeysMap  = "cnp_keys"
	ClockMap = "cnp_clock"
)

// NewKeyRing is the ring of a program whose maps KeysMap and ClockMap these are, for instance from
// where they are pinned.
func NewKeyRing(keys, clock *ebpf.Map) *KeyRing { return &KeyRing{keys, clock} }

// Set puts the key into a slot, 0 or 1: hosts agree on what is where.
func (r *KeyRing) Set(slot int, key cnp.Key, state KeyState) error {
	if slot < 0 || slot >= cnp.Keys || state > KeySigns {
		return fmt.Errorf("set key %d to state %d: want slot 0 or 1, and a state up to %d",
			slot, state, KeySigns)
	}
	if state != KeyNone {
		if err := r.SyncClock(); err != nil {
			return err
		}
	}
	v := npCnpKey{State: uint32(state)}
	v.Key.K0, v.Key.K1 = binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	if state == KeyNone {
		v = npCnpKey{} // nothing of it stays
	}
	if err := r.keys.Put(uint32(slot), &v); err != nil {
		return fmt.Errorf("set key %d: %w", slot, err)
	}
	return nil
}

// State reads a slot's state.
func (r *KeyRing) State(slot int) (KeyState, error) {
	var v npCnpKey
	if err := r.keys.Lookup(uint32(slot), &v); err != nil {
		return KeyNone, fmt.Errorf("read key %d: %w", slot, err)
	}
	return KeyState(v.State), nil
}

// SyncClock tells the programs the wall clock, by which signed CNPs are dated. Set does so; it is
// needed again when the wall clock was set, but not when it was slewed.
func (r *KeyRing) SyncClock() error {
	ahead, err := wallAhead()
	if err != nil {
		return err
	}
	if err := r.clock.Put(uint32(0), ahead.Nanoseconds()); err != nil {
		return fmt.Errorf("set the clock of signed CNPs: %w", err)
	}
	return nil
}

// wallAhead is what the wall clock is ahead of the kernel's.
func wallAhead() (time.Duration, error) {
	var wall, kernel unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_REALTIME, &wall); err != nil {
		return 0, fmt.Errorf("read the wall clock: %w", err)
	}
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &kernel); err != nil {
		return 0, fmt.Errorf("read the kernel's clock: %w", err)
	}
	return time.Duration(wall.Nano() - kernel.Nano()), nil
}
