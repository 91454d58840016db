// SPDX-License-Identifier: Apache-2.0

package ns_test

import (
	"errors"
	"os"
	"strconv"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader/ns"
)

// current names the namespace of the calling thread.
func current() (string, error) { return os.Readlink("/proc/thread-self/ns/net") }

func name(t *testing.T, h netns.NsHandle) string {
	t.Helper()
	s, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(h)))
	qt.Assert(t, qt.IsNil(err))
	return s
}

// A kernel for one CPU has no rps_cpus, but a device that is not there is a mistake.
func TestReceiveOnOneCPU(t *testing.T) {
	qt.Assert(t, qt.IsNil(ns.Do(nstest.New(t), func() error {
		qt.Check(t, qt.IsNil(ns.ReceiveOnOneCPU("lo")))
		qt.Check(t, qt.ErrorMatches(ns.ReceiveOnOneCPU("none0"),
			"open /sys/class/net/none0/queues/rx-0/rps_cpus: no such file or directory"))
		return nil
	})))
}

func TestDoEnters(t *testing.T) {
	home, err := current()
	qt.Assert(t, qt.IsNil(err))
	for range 10 {
		h := nstest.New(t)
		var inside string
		qt.Assert(t, qt.IsNil(ns.Do(h, func() (err error) {
			inside, err = current()
			return err
		})))
		qt.Check(t, qt.Equals(inside, name(t, h)))
		qt.Check(t, qt.Not(qt.Equals(inside, home)))
		outside, err := current()
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(outside, home))
	}
}

func TestDoWithoutNamespace(t *testing.T) {
	home, err := current()
	qt.Assert(t, qt.IsNil(err))
	var inside string
	qt.Assert(t, qt.IsNil(ns.Do(netns.None(), func() (err error) {
		inside, err = current()
		return err
	})))
	qt.Assert(t, qt.Equals(inside, home))
}

func TestDoReturnsError(t *testing.T) {
	h := nstest.New(t)
	want := errors.New("some error")
	qt.Assert(t, qt.ErrorIs(ns.Do(h, func() error { return want }), want))
}

// fn does not run in a namespace that can't be entered.
func TestDoRefuses(t *testing.T) {
	const high = 1000 // that no other file takes
	fd, err := unix.FcntlInt(uintptr(nstest.New(t)), unix.F_DUPFD_CLOEXEC, high)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(unix.Close(fd)))
	null, err := os.Open(os.DevNull)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { null.Close() })
	for _, c := range []struct {
		what string
		fd   int
		want error
	}{
		{"closed", fd, unix.EBADF},
		{"no namespace", int(null.Fd()), unix.EINVAL},
	} {
		t.Run(c.what, func(t *testing.T) {
			err := ns.Do(netns.NsHandle(c.fd), func() error { panic("ran") })
			qt.Assert(t, qt.ErrorMatches(err, "enter network namespace .*"))
			qt.Assert(t, qt.ErrorIs(err, c.want))
		})
	}
}

// Threads that entered a namespace are gone after, and no thread that stays is left in one: not
// even the main thread, by which /proc/self tells the namespace of the process.
func TestDoLeavesNothing(t *testing.T) {
	const calls = 200
	h := nstest.New(t)
	home, err := os.Readlink("/proc/self/ns/net")
	qt.Assert(t, qt.IsNil(err))
	before := threads(t)
	for range calls / 2 {
		qt.Assert(t, qt.IsNil(ns.Do(h, func() error { return nil })))
	}
	var wg sync.WaitGroup
	for range calls / 2 {
		wg.Go(func() { qt.Check(t, qt.IsNil(ns.Do(h, func() error { return nil }))) })
	}
	wg.Wait()
	const spare = 5 // that the runtime keeps
	nstest.Eventually(t, "the threads are gone", func() bool { return threads(t) <= before+spare })
	checkThreads(t, home)
}

// checkThreads fails unless all threads are in this namespace.
func checkThreads(t *testing.T, home string) {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	qt.Assert(t, qt.IsNil(err))
	for _, task := range tasks {
		in, err := os.Readlink("/proc/self/task/" + task.Name() + "/ns/net")
		if errors.Is(err, os.ErrNotExist) {
			continue // gone meanwhile
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(in, home), qt.Commentf("thread %s of process %d", task.Name(),
			os.Getpid()))
	}
}

// Visits leave no thread in the namespace.
func TestVisit(t *testing.T) {
	h := nstest.New(t)
	home, err := os.Readlink("/proc/self/ns/net")
	qt.Assert(t, qt.IsNil(err))
	want := errors.New("some error")
	var wg sync.WaitGroup
	for range 50 {
		wg.Go(func() {
			qt.Check(t, qt.ErrorIs(ns.Visit(h, func() error {
				inside, err := current()
				qt.Check(t, qt.IsNil(err))
				qt.Check(t, qt.Equals(inside, name(t, h)))
				return want
			}), want))
		})
	}
	wg.Wait()
	checkThreads(t, home)
}

func threads(t *testing.T) int {
	t.Helper()
	tasks, err := os.ReadDir("/proc/self/task")
	qt.Assert(t, qt.IsNil(err))
	return len(tasks)
}
