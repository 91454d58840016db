// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"time"

	"github.com/pcn-linux/pcn/internal/flock"
)

// cpus assigns microVMs to CPUs, one per CPU: two on one CPU take minutes to boot.
type cpus struct {
	ids     []int  // CPUs that this process may use
	locks   string // folder of the locks
	waiting func() // called once if other processes use all CPUs
	said    sync.Once
}

// cpuPoll is the interval of looking for a free CPU; a microVM runs for seconds.
const cpuPoll = 200 * time.Millisecond

func newCPUs(waiting func()) (*cpus, error) {
	ids, err := usableCPUs()
	if err != nil {
		return nil, fmt.Errorf("find the CPUs to run on: %w", err)
	}
	return &cpus{ids: ids, locks: flock.MachineDir(), waiting: waiting}, nil
}

// take waits for a CPU without a microVM and reserves it until the lock is released.
func (c *cpus) take(ctx context.Context) (int, *flock.Lock, error) {
	for {
		id, lock, err := c.try()
		if !errors.Is(err, flock.ErrHeld) {
			return id, lock, err
		}
		c.said.Do(c.waiting)
		select {
		case <-ctx.Done():
			return 0, nil, fmt.Errorf("wait for a CPU: %w", ctx.Err())
		case <-time.After(cpuPoll):
		}
	}
}

// try reserves the first free CPU.
func (c *cpus) try() (id int, lock *flock.Lock, err error) {
	for _, id = range c.ids {
		lock, err = flock.Try(filepath.Join(c.locks, fmt.Sprintf("pcn-cpu-%d.lock", id)))
		if !errors.Is(err, flock.ErrHeld) {
			return id, lock, err
		}
	}
	return 0, nil, err
}
