// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"errors"
	"fmt"
	"math"
	"os"
	"strings"

	"github.com/prometheus/procfs"
	"golang.org/x/sys/unix"
)

// machineSettings are settings of the whole machine, by file. The backlog has room for all packets
// of a run, as its drops are silent. The TCP memory, in pages, is no limit: receivers with the data
// of many flows would drop.
var machineSettings = [][2]string{
	{"/proc/sys/net/core/netdev_max_backlog", "1000000"},
	{"/proc/sys/net/ipv4/tcp_mem", "16777216 16777216 16777216"},
}

// rcuExpedited makes the kernel interrupt all CPUs to end an RCU grace period, in place of waiting
// for them: tens of ms each time that a program is attached or removed, with the RTNL lock held.
const rcuExpedited = "/sys/kernel/rcu_expedited"

func (r *registry) configureMachine() error {
	for _, s := range machineSettings {
		if err := r.change(s[0], s[1]); err != nil {
			return err
		}
	}
	return nil
}

// allowControls lets namespaces have any congestion control as their default, DCTCP too.
func (r *registry) allowControls() error {
	const sysctls = "/proc/sys/net/ipv4/"
	all, err := os.ReadFile(sysctls + "tcp_available_congestion_control")
	if err != nil {
		return err
	}
	return r.change(sysctls+"tcp_allowed_congestion_control", strings.TrimSpace(string(all)))
}

// expedite calls fn with short RCU grace periods.
func (r *registry) expedite(fn func() error) error {
	if err := r.change(rcuExpedited, "1"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return fmt.Errorf("change the machine's settings: %w", err)
	}
	err := fn()
	return errors.Join(err, r.restore(rcuExpedited))
}

// cpuTimes holds the ticks of all CPUs since boot.
type cpuTimes struct{ busy, total uint64 }

func readCPUTimes() (cpuTimes, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return cpuTimes{}, err
	}
	stat, err := proc.Stat()
	if err != nil {
		return cpuTimes{}, fmt.Errorf("read CPU times: %w", err)
	}
	const ticksPerS = 100 // USER_HZ
	ticks := func(seconds float64) uint64 { return uint64(math.Round(seconds * ticksPerS)) }
	c := stat.CPUTotal
	busy := ticks(c.User) + ticks(c.Nice) + ticks(c.System) +
		ticks(c.IRQ) + ticks(c.SoftIRQ) + ticks(c.Steal)
	return cpuTimes{busy, busy + ticks(c.Idle) + ticks(c.Iowait)}, nil
}

// busySince returns the busy share of the time since then; 0 if no tick has passed.
func (c cpuTimes) busySince(before cpuTimes) float64 {
	if c.total <= before.total {
		return 0
	}
	return float64(c.busy-before.busy) / float64(c.total-before.total)
}

// availableBytes returns the memory that is available without swapping.
func availableBytes() (int64, error) {
	proc, err := procfs.NewDefaultFS()
	if err != nil {
		return 0, err
	}
	m, err := proc.Meminfo()
	if err != nil {
		return 0, fmt.Errorf("read the machine's memory: %w", err)
	}
	if m.MemAvailableBytes == nil {
		return 0, errors.New("/proc/meminfo has no MemAvailable")
	}
	return int64(*m.MemAvailableBytes), nil
}

// inVirtualTime reports whether this kernel is User Mode Linux in a time of its own, in which CPUs
// take none.
func inVirtualTime() (bool, error) {
	const source = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	name, err := os.ReadFile(source)
	if err != nil {
		return false, fmt.Errorf("read the clock source: %w", err)
	}
	return strings.TrimSpace(string(name)) == "time-travel-clock", nil
}

// kernelRelease returns the release, as uname -r prints it.
func kernelRelease() (string, error) {
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		return "", fmt.Errorf("read the kernel's release: %w", err)
	}
	return unix.ByteSliceToString(name.Release[:]), nil
}
