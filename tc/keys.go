// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/cilium/ebpf"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/cnp"
)

// KeyState says what a key of a [KeyRing] is for.
type KeyState uint32

// As bpf/include/host_cnp.h has them.
const (
	KeyNone     KeyState = iota
	KeyAccepted          // the reaction point takes CNPs that it signed
	KeySigns             // and the notification point signs with it
)

// KeyRing is where a HostNP or a HostRP has the keys of signed CNPs. It can be changed while packets flow; docs/security.md
// has the order in which no CNP is lost.
type KeyRing struct{ keys, clock *ebpf.Map }

// The maps of a ring, in either program's object.
const (
	KeysMap  = "cnp_keys"
	ClockMap = "cnp_clock"
)

// NewKeyRing is the ring of a program whose maps KeysMap and ClockMap these are, for instance from where they are pinned.
func NewKeyRing(keys, clock *ebpf.Map) *KeyRing { return &KeyRing{keys, clock} }

// Set puts the key into a slot, 0 or 1: hosts agree on what is where.
func (r *KeyRing) Set(slot int, key cnp.Key, state KeyState) error {
	if slot < 0 || slot >= cnp.Keys || state > KeySigns {
		return fmt.Errorf("set key %d to state %d: want slot 0 or 1, and a state up to %d", slot, state, KeySigns)
	}
	if state != KeyNone {
		if err := r.SyncClock(); err != nil {
			return err
		}
	}
	v := nphostCnpKey{State: uint32(state)}
	v.Key.K0, v.Key.K1 = binary.LittleEndian.Uint64(key[:]), binary.LittleEndian.Uint64(key[8:])
	if state == KeyNone {
		v = nphostCnpKey{} // nothing of it stays
	}
	if err := r.keys.Put(uint32(slot), &v); err != nil {
		return fmt.Errorf("set key %d: %w", slot, err)
	}
	return nil
}

// State reads a slot's state.
func (r *KeyRing) State(slot int) (KeyState, error) {
	var v nphostCnpKey
	if err := r.keys.Lookup(uint32(slot), &v); err != nil {
		return KeyNone, fmt.Errorf("read key %d: %w", slot, err)
	}
	return KeyState(v.State), nil
}

// SyncClock tells the programs the wall clock, by which signed CNPs are dated. Set does so; it is needed again when the
// wall clock was set, but not when it was slewed.
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

// crcSlices is crc32_slice of bpf/include/host_cnp.h: [n][b] is the register after byte b and then n zeros.
func crcSlices() (t [8][256]uint32) {
	for b := range t[0] {
		t[0][b] = crc32.IEEETable[b]
	}
	for n := 1; n < len(t); n++ {
		for b, before := range t[n-1] {
			t[n][b] = before>>8 ^ crc32.IEEETable[before&0xff]
		}
	}
	return t
}

// nativeWord is four bytes of a packet as a program reads them.
func nativeWord(b []byte) uint32 { return binary.NativeEndian.Uint32(b) }
