// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"syscall"
	"time"

	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/flock"
)

// First arguments by which this program starts itself again.
const (
	insideArg = "inside" // the run, process 1 of namespaces of its own
	enterArg  = "enter"  // a program on one of the hosts
)

// lockFile lets one run at a time use the machine's names of congestion controls.
const lockFile = "/run/lock/pcn-soak"

// supervise runs the soak in PID, mount and network namespaces of its own. The kernel ends all of
// its processes, and removes pins, links and namespaces, when this process ends, however it ends.
// Then it checks that no BPF object is left.
func supervise(ctx context.Context, args []string, w io.Writer) error {
	o, err := parseOptions(args)
	if err != nil {
		return err
	}
	if o.plan {
		o.printPlan(w)
		return nil
	}
	if os.Geteuid() != 0 {
		return errors.New("it makes namespaces and loads BPF programs: run it as root")
	}
	lock, err := flock.Try(lockFile)
	if err != nil {
		return fmt.Errorf("another soak runs: %w", err)
	}
	defer func() { _ = lock.Release() }()
	before, err := readObjects()
	if err != nil {
		return err
	}
	runErr := runSandbox(ctx, args, w)
	left, err := objectsLeft(before, "/proc", retries)
	if err == nil && len(left) > 0 {
		err = fmt.Errorf("left behind when all ended: %v", left)
	}
	return errors.Join(runErr, err)
}

func runSandbox(ctx context.Context, args []string, w io.Writer) error {
	// The signal at the parent's death is sent when the thread that started the child ends.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	c := exec.Command("/proc/self/exe", append([]string{insideArg}, args...)...)
	c.Env = append(os.Environ(), selfEnv+"=1")
	c.Stdout, c.Stderr = w, w
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags: unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET,
		Pdeathsig:  syscall.SIGKILL,
		Setpgid:    true, // ctrl-c reaches it through this process alone
	}
	if err := c.Start(); err != nil {
		return fmt.Errorf("start in namespaces of its own: %w", err)
	}
	stop := context.AfterFunc(ctx, func() {
		_ = c.Process.Signal(syscall.SIGTERM)
		time.AfterFunc(30*time.Second, func() { _ = c.Process.Kill() })
	})
	defer stop()
	return c.Wait()
}

// selfEnv lets a test's program know that it is to be this one.
const selfEnv = "PCN_SOAK_SELF"

// bpffs is where the hosts' BPF file systems are mounted, in this mount namespace only.
const bpffs = "/sys/fs/bpf"

// root returns the folder of a host's pins, as seen from here.
func root(host string) string { return filepath.Join(bpffs, host, "pcn") }

// machineProc is the machine's /proc, in which processes that hold BPF objects can be found.
const machineProc = bpffs + "/proc"

// scratch is a folder of this mount namespace for files that the hosts share.
const scratch = "/dev/shm"

// mountAll prepares this process's mount namespace.
func mountAll(hosts ...string) error {
	if err := unix.Mount("", "/", "", unix.MS_PRIVATE|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("make mounts private: %w", err)
	}
	if err := unix.Mount("tmpfs", bpffs, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount tmpfs at %s: %w", bpffs, err)
	}
	if err := os.MkdirAll(scratch, 0o755); err != nil {
		return err
	}
	if err := unix.Mount("tmpfs", scratch, "tmpfs", 0, ""); err != nil {
		return fmt.Errorf("mount tmpfs at %s: %w", scratch, err)
	}
	if err := os.Mkdir(machineProc, 0o700); err != nil {
		return err
	}
	if err := unix.Mount("/proc", machineProc, "", unix.MS_BIND|unix.MS_REC, ""); err != nil {
		return fmt.Errorf("mount the machine's /proc at %s: %w", machineProc, err)
	}
	if err := unix.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	for _, host := range hosts {
		dir := filepath.Join(bpffs, host)
		if err := os.Mkdir(dir, 0o700); err != nil {
			return err
		}
		if err := unix.Mount("bpf", dir, "bpf", 0, "mode=0700"); err != nil {
			return fmt.Errorf("mount a BPF file system at %s: %w", dir, err)
		}
	}
	return nil
}

// command returns a program that will run on a host: in its network namespace, with its BPF file
// system and a sysfs that shows its devices.
func command(ctx context.Context, host string, h netns.NsHandle, args ...string) *exec.Cmd {
	ns := os.NewFile(uintptr(dup(int(h))), host)
	c := exec.CommandContext(ctx, "/proc/self/exe",
		append([]string{enterArg, filepath.Join(bpffs, host)}, args...)...)
	c.Env = append(os.Environ(), selfEnv+"=1")
	c.ExtraFiles = []*os.File{ns}
	c.WaitDelay = time.Second
	return c
}

func dup(fd int) int {
	n, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return -1
	}
	return n
}

// enter becomes the program args[1:] on the host whose network namespace is file 3 and whose BPF
// file system is args[0].
func enter(args []string) error {
	runtime.LockOSThread()
	const nsFD = 3
	if err := unix.Setns(nsFD, unix.CLONE_NEWNET); err != nil {
		return fmt.Errorf("enter the network namespace: %w", err)
	}
	unix.CloseOnExec(nsFD)
	if err := unix.Unshare(unix.CLONE_NEWNS); err != nil {
		return fmt.Errorf("make a mount namespace: %w", err)
	}
	pins, err := unix.Open(args[0], unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return fmt.Errorf("open %s: %w", args[0], err)
	}
	if err := unix.Mount("sysfs", "/sys", "sysfs", 0, ""); err != nil {
		return fmt.Errorf("mount sysfs: %w", err)
	}
	if err := unix.Mount("/proc/thread-self/fd/"+strconv.Itoa(pins), bpffs, "", unix.MS_BIND,
		""); err != nil {
		return fmt.Errorf("mount the host's BPF file system: %w", err)
	}
	// pcn host refuses a BPF file system that process 1 does not have, since it would be gone with
	// this process. Here another process holds it: what process 1 has is not to be seen.
	if err := unix.Mount("tmpfs", "/proc/1", "tmpfs", unix.MS_RDONLY, ""); err != nil {
		return fmt.Errorf("hide process 1: %w", err)
	}
	path, err := exec.LookPath(args[1])
	if err != nil {
		return err
	}
	return unix.Exec(path, args[1:], os.Environ())
}
