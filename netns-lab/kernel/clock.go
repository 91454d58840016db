// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the papers' time: the kernel's monotonic clock, 2^shift times slower.
type clock struct{ shift uint }

func (c clock) nowNs() uint64 { return monotonicNs() >> c.shift }

// toKernelNs converts a point or a length of the papers' time to the kernel's clock.
func (c clock) toKernelNs(ns uint64) uint64 { return ns << c.shift }

// toKernelBytesPerS converts a rate to a socket's pacing rate.
func (c clock) toKernelBytesPerS(rateBps uint64) uint64 { return rateBps / 8 >> c.shift }

// fromWallNs converts a point of the wall clock to the papers' clock.
func (c clock) fromWallNs(ns uint64) uint64 {
	var wall unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall) // as in monotonicNs
	return (monotonicNs() - (uint64(wall.Nano()) - ns)) >> c.shift
}

// sleepUntil waits until a point of the papers' time, or until the context ends.
func (c clock) sleepUntil(ctx context.Context, ns uint64) error {
	timer := time.NewTimer(time.Duration(int64(c.toKernelNs(ns)) - int64(monotonicNs())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func monotonicNs() uint64 {
	var ts unix.Timespec
	// it cannot fail with a valid clock and pointer
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
