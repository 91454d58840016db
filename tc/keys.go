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

// KeyState is the use of a key in a [KeyRing].
type KeyState uint32

// The values of enum key_state in bpf/include/cnp_tag.h.
const (
	KeyNone     KeyState = iota
	KeyAccepted          // the reaction point takes CNPs that it signed
	KeySigns             // and the notification point signs with it
)

// KeyRing holds the keys for signed CNPs of a host's NP or RP. It can change while packets flow;
// docs/security.md has the order of changes that loses no CNP.
type KeyRing struct{ keys, clock *ebpf.Map }

// Names of a ring's maps, in both programs' objects.
const (
	KeysMap  = "cnp_keys"
	ClockMap = "cnp_clock"
)

// NewKeyRing returns the ring that consists of a program's maps KeysMap and ClockMap, which may
// come from pins.
func NewKeyRing(keys, clock *ebpf.Map) *KeyRing { return &KeyRing{keys, clock} }

// Set stores a key in slot 0 or 1, and updates the clock. All hosts must have the same key in a
// slot.
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
		v = npCnpKey{} // forget the key
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

// IsUsed reports whether a slot has a key.
func (r *KeyRing) IsUsed() (bool, error) {
	for slot := range cnp.Keys {
		state, err := r.State(slot)
		if err != nil || state != KeyNone {
			return err == nil, err
		}
	}
	return false, nil
}

// SyncClock tells the programs the wall clock, by which signed CNPs are dated. Set does it too.
// Call it again when the wall clock was set, not when it was slewed.
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

// ClockError returns how far the wall clock was set since the programs learned it.
func (r *KeyRing) ClockError() (time.Duration, error) {
	var known int64
	if err := r.clock.Lookup(uint32(0), &known); err != nil {
		return 0, fmt.Errorf("read the clock of signed CNPs: %w", err)
	}
	ahead, err := wallAhead()
	return ahead - time.Duration(known), err
}

// wallAhead returns how far the wall clock is ahead of the kernel's.
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
