// SPDX-License-Identifier: Apache-2.0

package ns

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"unsafe"

	"golang.org/x/sys/unix"
)

// ReceiveOnOneCPU makes one CPU receive all frames of a veth of this thread's namespace. Otherwise
// the sending CPU receives them, and frames are reordered when the sender moves to another CPU.
func ReceiveOnOneCPU(device string) error {
	sysfs, err := mountSysfs()
	if err != nil {
		return fmt.Errorf("mount sysfs of the namespace: %w", err)
	}
	defer unix.Close(sysfs)
	link := "class/net/" + device
	file := link + "/queues/rx-0/rps_cpus"
	fd, err := unix.Openat(sysfs, file, unix.O_WRONLY|unix.O_CLOEXEC, 0)
	if errors.Is(err, unix.ENOENT) && unix.Faccessat(sysfs, link, unix.F_OK, 0) == nil {
		return nil // the kernel is built for one CPU
	}
	if err != nil {
		return &os.PathError{Op: "open", Path: "/sys/" + file, Err: err}
	}
	defer unix.Close(fd)
	if _, err := unix.Write(fd, []byte(maskOf(currentCPU()))); err != nil {
		return &os.PathError{Op: "write", Path: "/sys/" + file, Err: err}
	}
	return nil
}

// currentCPU returns the CPU of this thread, which has time for it.
func currentCPU() int {
	var cpu uint32
	unix.RawSyscall(unix.SYS_GETCPU, uintptr(unsafe.Pointer(&cpu)), 0, 0)
	return int(cpu)
}

// maskOf returns a set of one CPU as sysfs writes it: hexadecimal words of 32 bits.
func maskOf(cpu int) string {
	return fmt.Sprintf("%x", 1<<(cpu%32)) + strings.Repeat(",00000000", cpu/32)
}

// mountSysfs opens a detached mount of sysfs that shows this thread's network namespace.
func mountSysfs() (int, error) {
	fs, err := unix.Fsopen("sysfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return -1, err
	}
	defer unix.Close(fs)
	if err := unix.FsconfigCreate(fs); err != nil {
		return -1, err
	}
	return unix.Fsmount(fs, unix.FSMOUNT_CLOEXEC, 0)
}
