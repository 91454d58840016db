// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"context"
	"fmt"
	"os"
	"sync"
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
//
// It is woken by Go's timer, which is looked at whenever a goroutine yields. If none runs, the
// program waits in epoll, and Linux lets that take longer for programs of low priority: by 0.5% of
// the wait, 7 ms after 1.4 s (fs/select.c, __estimate_accuracy). With dilation 10 flows then
// started 7 us late. So a timer of the kernel's ends that wait, to the microsecond.
func (c clock) sleepUntil(ctx context.Context, ns uint64) error {
	atNs := c.toKernelNs(ns)
	alarm, err := setAlarm(atNs)
	if err != nil {
		return err
	}
	defer alarms.Put(alarm)
	timer := time.NewTimer(time.Duration(int64(atNs) - int64(monotonicNs())))
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-timer.C:
		return nil
	}
}

// alarm is a timer of the kernel's that Go's poller watches. Nobody reads it.
type alarm struct {
	fd   int
	file *os.File // closes the descriptor when the alarm is garbage
}

// alarms are those that no one waits for: to make one takes five system calls more than to set it.
var alarms sync.Pool

// setAlarm returns an alarm that is due at a point of the monotonic clock.
func setAlarm(atNs uint64) (*alarm, error) {
	a, _ := alarms.Get().(*alarm)
	if a == nil {
		fd, err := unix.TimerfdCreate(unix.CLOCK_MONOTONIC, unix.TFD_NONBLOCK|unix.TFD_CLOEXEC)
		if err != nil {
			return nil, fmt.Errorf("make a timer: %w", err)
		}
		a = &alarm{fd, os.NewFile(uintptr(fd), "alarm")}
	}
	at := unix.ItimerSpec{Value: unix.NsecToTimespec(int64(max(atNs, 1)))} // 0 would be no timer
	if err := unix.TimerfdSettime(a.fd, unix.TFD_TIMER_ABSTIME, &at, nil); err != nil {
		return nil, fmt.Errorf("set a timer: %w", err)
	}
	return a, nil
}

func monotonicNs() uint64 {
	var ts unix.Timespec
	// it cannot fail with a valid clock and pointer
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &ts)
	return uint64(ts.Nano())
}
