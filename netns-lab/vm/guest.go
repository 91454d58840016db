// SPDX-License-Identifier: Apache-2.0

package vm

import (
	"encoding/json"
	"fmt"
	"os"
	"runtime/debug"

	"golang.org/x/sys/unix"
)

const (
	readyLine = "pcn guest is up"
	probeArg  = "pcn-probe"
	answerTTY = "/dev/ttyS1"
)

// InGuest says whether this process is the init of a microVM of ours.
func InGuest() bool {
	if os.Getpid() != 1 {
		return false
	}
	_, err := os.Stat(jobFile)
	return err == nil
}

// GuestMain sets the guest up, runs main with the arguments the host gave, sends its exit code and ResultDir to the
// host, and powers off. It does not return.
func GuestMain(main func(args []string) int) {
	code, err := guest(main)
	if err != nil {
		fmt.Println("pcn guest:", err)
	}
	if err == nil {
		err = answer(code)
	}
	if err != nil {
		fmt.Println("pcn guest:", err)
	}
	unix.Sync()
	_ = unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF) // nothing is left to be told
	select {}
}

func guest(main func(args []string) int) (int, error) {
	j, err := prepare()
	if err != nil {
		return 0, err
	}
	fmt.Println(readyLine)
	if len(j.Args) == 1 && j.Args[0] == probeArg {
		return 0, nil
	}
	os.Args = append([]string{"/init"}, j.Args...)
	return main(j.Args), nil
}

// mounts are the guest's file systems, beside the initramfs.
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"devtmpfs", "/dev"},
	{"tmpfs", "/tmp"},
	{"tmpfs", "/run"},
	{"bpf", "/sys/fs/bpf"},
	{"tracefs", "/sys/kernel/tracing"},
}

func prepare() (*job, error) {
	text, err := os.ReadFile(jobFile)
	if err != nil {
		return nil, fmt.Errorf("read the job: %w", err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return nil, fmt.Errorf("decode the job: %w", err)
	}
	for _, m := range mounts {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
			return nil, fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	for _, m := range j.Modules {
		if err := loadModule(m); err != nil {
			return nil, err
		}
	}
	for _, kv := range append([]string{"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/tmp"}, j.Env...) {
		if err := setenv(kv); err != nil {
			return nil, err
		}
	}
	if j.Dir != "" {
		if err := os.Chdir(j.Dir); err != nil {
			return nil, fmt.Errorf("enter the working directory: %w", err)
		}
	}
	debug.SetGCPercent(400) // memory is there, instructions are dear
	return &j, nil
}

func loadModule(path string) error {
	f, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("open kernel module: %w", err)
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil {
		return fmt.Errorf("load kernel module %s: %w", path, err)
	}
	return nil
}

// answer sends the result out of the second serial port.
func answer(code int) error {
	tty, err := os.OpenFile(answerTTY, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open the answer's serial port: %w", err)
	}
	if err := makeRaw(int(tty.Fd())); err != nil {
		return fmt.Errorf("set up the answer's serial port: %w", err)
	}
	if err := writeAnswer(tty, code, ResultDir); err != nil {
		return err
	}
	if err := unix.IoctlSetInt(int(tty.Fd()), unix.TCSBRK, 1); err != nil { // wait until it is out
		return fmt.Errorf("drain the answer's serial port: %w", err)
	}
	return tty.Close()
}

// makeRaw turns the translation of line ends off.
func makeRaw(fd int) error {
	t, err := unix.IoctlGetTermios(fd, unix.TCGETS)
	if err != nil {
		return err
	}
	t.Oflag &^= unix.OPOST
	t.Lflag &^= unix.ECHO | unix.ICANON
	return unix.IoctlSetTermios(fd, unix.TCSETS, t)
}
