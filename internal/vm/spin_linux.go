// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// spinLimit is how much CPU time a program may take without a call of the kernel.
var spinLimit = time.Minute

// watchSpin ends User Mode Linux and returns errSpins when children of it, which run the guest's
// programs, take spinLimit of CPU time while the kernel takes none. It returns nil when the context
// ends. By the time of the wall, runs on a busy machine would end.
func watchSpin(ctx context.Context, pid int, kill func()) error {
	tick := time.NewTicker(spinLimit / 10)
	defer tick.Stop()
	var kernel, since time.Duration // CPU times, the second of all children
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		own, children, err := cpuTimes(pid)
		switch {
		case err != nil:
			return nil // it has ended
		case own != kernel:
			kernel, since = own, children
		case children-since >= spinLimit:
			endSpinning(pid, kill)
			return errSpins
		}
	}
}

// cpuTimes returns the CPU time of a process, and that of all its children.
func cpuTimes(pid int) (own, children time.Duration, err error) {
	if own, err = cpuTime(pid); err != nil {
		return 0, 0, err
	}
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return 0, 0, fmt.Errorf("list children: %w", err)
	}
	for child := range strings.FieldsSeq(string(list)) {
		id, err := strconv.Atoi(child)
		if err != nil {
			return 0, 0, fmt.Errorf("list children: %w", err)
		}
		if d, err := cpuTime(id); err == nil { // else it has ended
			children += d
		}
	}
	return own, children, nil
}

func cpuTime(pid int) (time.Duration, error) {
	p, err := procfs.NewProc(pid)
	if err != nil {
		return 0, err
	}
	stat, err := p.Stat()
	return time.Duration(stat.CPUTime() * float64(time.Second)), err
}

// endSpinning ends a machine whose program spins: it first names the program, on its stderr. The
// machine needs CPU time for that, which other processes may have.
func endSpinning(pid int, kill func()) {
	const patience = time.Minute
	_ = unix.Kill(pid, unix.SIGTERM) // it may have ended meanwhile
	time.AfterFunc(patience, kill)
}
