// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"syscall"

	"golang.org/x/sys/unix"
)

// runWithUs runs the command on a CPU; -1 does not pin it. The child dies with this process. Its
// thread lives as long as the child does, since Pdeathsig follows the thread and not the process.
// started is called with the child's process ID.
func runWithUs(cmd *exec.Cmd, cpu int, started func(pid int)) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	done := make(chan error, 1)
	go func() {
		// never unlock: the thread's scheduling is changed, so it must end here
		runtime.LockOSThread()
		if err := setScheduling(cpu); err != nil {
			done <- err
			return
		}
		if err := cmd.Start(); err != nil {
			done <- err
			return
		}
		started(cmd.Process.Pid)
		done <- cmd.Wait()
	}()
	return <-done
}

// setScheduling sets this thread's policy and CPU, which a child inherits. Under SCHED_BATCH a
// thread that is woken does not preempt the one that woke it, so QEMU's two threads hand over where
// they wait: a third less per wake-up.
func setScheduling(cpu int) error {
	attr, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return fmt.Errorf("get the scheduling policy: %w", err)
	}
	attr.Policy, attr.Priority = unix.SCHED_BATCH, 0
	if err := unix.SchedSetAttr(0, attr, 0); err != nil {
		return fmt.Errorf("set the scheduling policy: %w", err)
	}
	if cpu < 0 {
		return nil
	}
	var set unix.CPUSet
	set.Set(cpu)
	if err := unix.SchedSetaffinity(0, &set); err != nil {
		return fmt.Errorf("pin QEMU to CPU %d: %w", cpu, err)
	}
	return nil
}

// Hold stops a machine's process, or lets it go on.
func Hold(pid int, stop bool) error {
	signal := unix.SIGCONT
	if stop {
		signal = unix.SIGSTOP
	}
	if err := unix.Kill(pid, signal); err != nil {
		return fmt.Errorf("send %s to the microVM: %w", signal, err)
	}
	return nil
}

// newSharedFiles returns files in memory without names, so that nothing is left behind. write
// writes the initramfs.
func newSharedFiles(write func(io.Writer) error) (*sharedFiles, error) {
	s := &sharedFiles{}
	nothing := func(io.Writer) error { return nil }
	for _, write := range []func(io.Writer) error{write, nothing, nothing} {
		f, err := memoryFile(write)
		if err != nil {
			s.close()
			return nil, err
		}
		s.inherited = append(s.inherited, f)
	}
	s.console, s.answer = s.inherited[1], s.inherited[2]
	for i, name := range []*string{&s.paths.initramfs, &s.paths.console, &s.paths.answer} {
		*name = inheritedName(s.inherited[i], firstInherited+i)
	}
	return s, nil
}

// inheritedName returns the name of a file that a child has as a descriptor. It opens it anew, also
// if it has no name any more.
func inheritedName(_ *os.File, fd int) string { return fmt.Sprintf("/proc/self/fd/%d", fd) }

// memoryFile returns a file in memory without a name, so that nothing is left behind.
func memoryFile(write func(io.Writer) error) (*os.File, error) {
	fd, err := unix.MemfdCreate("pcn-vm", unix.MFD_CLOEXEC)
	if err != nil {
		return nil, fmt.Errorf("make a memory file for the microVM: %w", err)
	}
	f := os.NewFile(uintptr(fd), "pcn-vm")
	if err := writeBuffered(f, write); err != nil {
		f.Close()
		return nil, fmt.Errorf("fill a memory file for the microVM: %w", err)
	}
	return f, nil
}
