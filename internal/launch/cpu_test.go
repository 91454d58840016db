// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"testing"

	"github.com/go-quicktest/qt"
)

// Every CPU is given to one microVM at a time, also of different runs, and a run that waits says so
// once.
func TestCPUsAreShared(t *testing.T) {
	dir := t.TempDir()
	said := 0
	mine := &cpus{ids: []int{1, 3}, locks: dir, waiting: func() { said++ }}
	theirs := &cpus{ids: []int{3, 1}, locks: dir, waiting: func() { t.Error("they waited") }}
	ctx := context.Background()

	id, _, err := theirs.take(ctx)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(id, 3))
	id, lock, err := mine.take(ctx)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(id, 1))
	qt.Check(t, qt.Equals(said, 0))

	for range 2 {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		_, _, err = mine.take(ended)
		qt.Check(t, qt.ErrorIs(err, context.Canceled))
	}
	qt.Check(t, qt.Equals(said, 1))

	got := make(chan int)
	go func() {
		id, _, err := mine.take(ctx)
		qt.Check(t, qt.IsNil(err))
		got <- id
	}()
	qt.Check(t, qt.IsNil(lock.Release()))
	qt.Check(t, qt.Equals(<-got, 1))
}

func TestNoFolderForLocks(t *testing.T) {
	c := &cpus{ids: []int{0}, locks: t.TempDir() + "/none",
		waiting: func() { t.Error("waits for ever") }}
	_, _, err := c.take(context.Background())
	qt.Check(t, qt.ErrorMatches(err, "lock: open .*none/pcn-cpu-0.lock: no such file or directory"))
}
