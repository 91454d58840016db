// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// Main never returns; a program must call it first if it is [Inside]. As the microVM's init it sets
// up the guest, runs this program again as a child, passes its exit code and [ResultDir] to the
// host, and powers off. In the child it tells init the result of main for the host's arguments.
// Thus a program that crashes has an exit code as well.
func Main(main func(args []string) int) {
	if os.Getpid() != 1 {
		runChild(main)
	}
	if err := runInit(); err != nil {
		fmt.Println("pcn guest:", err)
	}
	// wait until the console has sent all
	_ = unix.IoctlSetInt(int(os.Stdout.Fd()), unix.TCSBRK, 1)
	err := unix.Reboot(unix.LINUX_REBOOT_CMD_POWER_OFF)
	// the kernel panics when init ends, and the host reads that
	panic(fmt.Sprintf("power off: %v", err))
}

// runChild runs the program and tells init its exit code. It does not return.
func runChild(main func(args []string) int) {
	unix.CloseOnExec(codeFile)
	code := main(os.Args[1:])
	told := os.NewFile(codeFile, "code")
	if _, err := told.Write([]byte{byte(code)}); err != nil {
		panic(fmt.Sprintf("tell init the exit code: %v", err))
	}
	// Init powers off meanwhile. To exit would be to free all that the kernel has of us.
	for {
		_ = unix.Pause()
	}
}

func runInit() error {
	j, err := readJob()
	if err != nil {
		return err
	}
	if err := setUp(j); err != nil {
		return err
	}
	fmt.Println(ReadyLine)
	code := 0
	if len(j.Args) != 1 || j.Args[0] != ProbeArg {
		if code, err = runProgram(j); err != nil {
			return err
		}
	}
	if err := answer(j.Answer, code); err != nil {
		return err
	}
	fmt.Println(DoneLine)
	return nil
}

func readJob() (Job, error) {
	var j Job
	text, err := os.ReadFile(JobFile)
	if err != nil {
		return j, fmt.Errorf("read the job: %w", err)
	}
	if err := json.Unmarshal(text, &j); err != nil {
		return j, fmt.Errorf("decode the job: %w", err)
	}
	return j, nil
}

// mounts lists the guest's file systems besides the initramfs. /tmp stays in the initramfs, because
// the host may have put files there.
var mounts = []struct {
	kind, at string
	optional bool // not every kernel has it
}{
	{"proc", "/proc", false},
	{"sysfs", "/sys", false},
	{"devtmpfs", "/dev", false},
	{"tmpfs", "/run", false},
	{"bpf", "/sys/fs/bpf", false},
	{"cgroup2", "/sys/fs/cgroup", false},
	{"tracefs", "/sys/kernel/tracing", true},
}

func setUp(j Job) error {
	for _, m := range mounts {
		err := unix.Mount(m.kind, m.at, m.kind, 0, "")
		if m.optional && (errors.Is(err, unix.ENODEV) || errors.Is(err, unix.ENOENT)) {
			continue
		}
		if err != nil {
			return fmt.Errorf("mount %s: %w", m.at, err)
		}
	}
	if err := declareEntropy(); err != nil {
		return err
	}
	for _, m := range j.Modules {
		if err := loadModule(m); err != nil {
			return err
		}
	}
	lo, err := netlink.LinkByName("lo")
	if err != nil {
		return fmt.Errorf("find the loopback link: %w", err)
	}
	if err := netlink.LinkSetUp(lo); err != nil {
		return fmt.Errorf("set the loopback link up: %w", err)
	}
	return settleClock()
}

// declareEntropy tells the kernel that its random numbers are random enough. They depend on the
// seed, which its command line has, and on nothing else. Until then it hashes its whole pool for
// each number.
func declareEntropy() error {
	const enough = 256 // bits
	f, err := os.OpenFile("/dev/random", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the kernel's random numbers: %w", err)
	}
	defer f.Close()
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.RNDADDTOENTCNT, enough); err != nil {
		return fmt.Errorf("declare entropy: %w", err)
	}
	return nil
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

// settleClock waits, at most 5 s of the guest's time, until the kernel has chosen its final clock
// source. A later change would be a step in an experiment's time.
func settleClock() error {
	const current = "/sys/devices/system/clocksource/clocksource0/current_clocksource"
	for range 500 {
		name, err := os.ReadFile(current)
		if err != nil {
			return fmt.Errorf("read the clock source: %w", err)
		}
		if strings.TrimSpace(string(name)) != "tsc-early" {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return errors.New("the kernel's clock source did not settle")
}

// codeFile is the file descriptor to which the program writes its exit code, in a byte.
const codeFile = 3

// runProgram runs the program and returns its exit code: as in a shell, 128 plus the signal that
// ended it.
func runProgram(j Job) (int, error) {
	cmd := exec.Command("/proc/self/exe", j.Args...)
	cmd.Args[0] = "/init"
	cmd.Dir = j.Dir
	cmd.Stdout, cmd.Stderr = os.Stdout, os.Stderr
	standard := []string{"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/tmp"}
	cmd.Env = append(standard, j.Env...)
	if err := preferKernel(); err != nil {
		return 0, err
	}
	code, theirs, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe for the exit code: %w", err)
	}
	cmd.ExtraFiles = []*os.File{theirs} // it is codeFile
	if err := cmd.Start(); err != nil {
		return 0, fmt.Errorf("start the guest program: %w", err)
	}
	theirs.Close()
	if said, err := io.ReadAll(io.LimitReader(code, 1)); err == nil && len(said) == 1 {
		return int(said[0]), nil
	}
	err = cmd.Wait() // it ended without a word
	if cmd.ProcessState == nil {
		return 0, fmt.Errorf("wait for the guest program: %w", err)
	}
	status := cmd.ProcessState.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		fmt.Println("pcn guest: the program was ended by signal:", status.Signal())
		return 128 + int(status.Signal()), nil
	}
	return status.ExitStatus(), nil
}

// preferKernel lets all threads of the kernel go before the program, which inherits this thread's
// priority. When there is much to do the kernel hands packets to a thread of its own; a reader of
// many packets could keep that waiting for milliseconds, which are microseconds of an experiment's
// time.
func preferKernel() error {
	const least = 19
	runtime.LockOSThread()
	if err := unix.Setpriority(unix.PRIO_PROCESS, 0, least); err != nil {
		return fmt.Errorf("lower the program's priority: %w", err)
	}
	return nil
}

// answer gives the host the exit code and the files of [ResultDir], by a terminal or, if it has no
// name, by memory that both share.
func answer(terminal string, code int) error {
	if terminal == "" {
		memory, err := mapAnswer()
		if err != nil {
			return err
		}
		return writeAnswer(memory, code, ResultDir)
	}
	return sendAnswer(terminal, code)
}

// sendAnswer writes the answer to a terminal, byte by byte as it is.
func sendAnswer(terminal string, code int) error {
	var archive bytes.Buffer
	head := make([]byte, answerArchive)
	if err := packAnswer(head, &archive, AnswerBytes-answerArchive, code, ResultDir); err != nil {
		return err
	}
	f, err := os.OpenFile(terminal, os.O_WRONLY|unix.O_NOCTTY, 0)
	if err != nil {
		return fmt.Errorf("open the host's file for the answer: %w", err)
	}
	defer f.Close()
	raw := unix.Termios{Cflag: unix.CS8}
	if err := unix.IoctlSetTermios(int(f.Fd()), unix.TCSETS, &raw); err != nil {
		return fmt.Errorf("make the answer's terminal raw: %w", err)
	}
	_, err1 := f.Write(head)
	_, err2 := f.Write(archive.Bytes())
	if err := errors.Join(err1, err2); err != nil {
		return fmt.Errorf("write the answer: %w", err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.TCSBRK, 1); err != nil {
		return fmt.Errorf("wait until the host has the answer: %w", err)
	}
	return nil
}

// mapAnswer maps the memory that the host reads the answer from: BAR 2 of QEMU's ivshmem device.
func mapAnswer() ([]byte, error) {
	const ivshmem = "PCI_ID=1AF4:1110"
	dir, err := findDevice(ivshmem)
	if err != nil {
		return nil, fmt.Errorf("look for the answer's device: %w", err)
	}
	return mapDevice(dir)
}

func mapDevice(dir string) ([]byte, error) {
	if err := os.WriteFile(filepath.Join(dir, "enable"), []byte("1"), 0); err != nil {
		return nil, fmt.Errorf("enable the answer's device: %w", err)
	}
	f, err := os.OpenFile(filepath.Join(dir, answerResource), os.O_RDWR, 0)
	if err != nil {
		return nil, fmt.Errorf("open the answer's memory: %w", err)
	}
	defer f.Close()
	const access = unix.PROT_READ | unix.PROT_WRITE
	memory, err := unix.Mmap(int(f.Fd()), 0, AnswerBytes, access, unix.MAP_SHARED)
	if err != nil {
		return nil, fmt.Errorf("map the answer's memory: %w", err)
	}
	return memory, nil
}

// findDevice returns the folder of a PCI device in /sys.
func findDevice(id string) (string, error) {
	devices, err := filepath.Glob("/sys/bus/pci/devices/*/uevent")
	if err != nil {
		return "", err
	}
	for _, uevent := range devices {
		text, err := os.ReadFile(uevent)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(text), id) {
			return filepath.Dir(uevent), nil
		}
	}
	return "", fmt.Errorf("no %s", id)
}
