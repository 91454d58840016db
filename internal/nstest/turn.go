// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"context"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/pcn-linux/pcn/internal/flock"
)

// turn is what the tests of this process share.
var turn struct {
	sync.Mutex
	tests int // that have it
	lock  *flock.Lock
}

// Turn gives the test its turn to register congestion controls, and keeps it until the test ends.
// A machine has each name of a control once, in all its namespaces: the tests of other processes,
// such as packages that are tested at the same time, wait meanwhile. Tests of one process share a
// turn.
func Turn(t testing.TB) {
	t.Helper()
	turn.Lock()
	defer turn.Unlock()
	if turn.tests == 0 {
		lock, err := waitForTurn(t.Context())
		if err != nil {
			t.Fatal("wait for the other tests that register congestion controls:", err)
		}
		turn.lock = lock
	}
	turn.tests++
	t.Cleanup(func() {
		turn.Lock()
		defer turn.Unlock()
		if turn.tests--; turn.tests > 0 {
			return
		}
		if err := turn.lock.Release(); err != nil {
			t.Error(err)
		}
	})
}

// waitForTurn takes the lock by way of a second one, which only who waits holds: so a process whose
// tests follow each other leaves a turn to the others.
func waitForTurn(ctx context.Context) (lock *flock.Lock, err error) {
	const patience = 10 * time.Minute // others may have long tests, and several before this one
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	dir := flock.MachineDir()
	next, err := flock.Wait(ctx, filepath.Join(dir, "pcn-test-controls-next.lock"))
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, next.Release()) }()
	return flock.Wait(ctx, filepath.Join(dir, "pcn-test-controls.lock"))
}
