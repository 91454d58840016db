// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"time"

	"golang.org/x/sys/unix"
)

// clock is the papers' time: the kernel's monotonic clock, 2^shift times slower.
type clock struct{ shift uint }

func (c clock) nowNs() uint64 { return kernelNs() >> c.shift }

// kernel is a point or length of the papers' time on the kernel's clock.
func (c clock) kernel(ns uint64) uint64 { return ns << c.shift }

// bytesPerS is a rate on the kernel's clock, as sockets want it.
func (c clock) bytesPerS(rateBps uint64) uint64 { return rateBps / 8 >> c.shift }

// ofWall is a point of the wall clock on the papers' clock.
func (c clock) ofWall(ns uint64) uint64 {
	var wall unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_REALTIME, &wall) // as in kernelNs
	return (kernelNs() - (uint64(wall.Nano()) - ns)) >> c.shift
}

// sleepUntil waits until a point of the papers' time, or until the context ends.
func (c clock) sleepUntil(ctx context.Context, ns uint64) error {
	timer := time.NewTimer(time.Duration(int64(c.kernel(ns)) - int64(kernelNs())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

func kernelNs() uint64 {
	var ts unix.Timespec
	// it cannot fail with a valid clock and pointer
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
