// SPDX-License-Identifier: Apache-2.0

package guest

import (
	"cmp"
	"encoding/binary"
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
func Main(main func(args []string) int) { MainPrepared(func() error { return nil }, main) }

// MainPrepared is [Main] of a program that may be paused before it has a job. The child calls
// prepare before that, for what does not depend on the job. Random numbers that it draws are the
// same whatever the seed.
func MainPrepared(prepare func() error, main func(args []string) int) {
	if os.Getpid() != 1 {
		runChild(prepare, main)
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
func runChild(prepare func() error, main func(args []string) int) {
	unix.CloseOnExec(codeFile)
	j, err := readJob()
	if err == nil && j.Paused {
		err = awaitJob(prepare)
	}
	code := 1
	if err != nil {
		fmt.Println("pcn guest:", err)
	} else {
		code = main(os.Args[1:])
	}
	told := os.NewFile(codeFile, "code")
	if _, err := told.Write([]byte{byte(code)}); err != nil {
		panic(fmt.Sprintf("tell init the exit code: %v", err))
	}
	// Init powers off meanwhile. To exit would be to free all that the kernel has of us.
	for {
		_ = unix.Pause()
	}
}

// awaitJob prepares the program, pauses the machine, and makes this the process that the job wants.
func awaitJob(prepare func() error) error {
	if err := prepare(); err != nil {
		return fmt.Errorf("prepare the program: %w", err)
	}
	memory, err := mapAnswer()
	if err != nil {
		return err
	}
	if err := pause(); err != nil {
		return err
	}
	if err := takeJob(memory, "/"); err != nil {
		return err
	}
	if err := unix.Munmap(memory); err != nil {
		return fmt.Errorf("unmap the job: %w", err)
	}
	j, err := readJob()
	if err != nil {
		return err
	}
	if err := seedKernel(j.Seed); err != nil {
		return err
	}
	for _, m := range j.Modules {
		if err := loadModule(m); err != nil {
			return err
		}
	}
	for _, e := range j.Env {
		key, value, _ := strings.Cut(e, "=")
		if err := os.Setenv(key, value); err != nil {
			return fmt.Errorf("set the environment: %w", err)
		}
	}
	if err := os.Chdir(cmp.Or(j.Dir, "/")); err != nil {
		return fmt.Errorf("enter the working directory: %w", err)
	}
	os.Args = append(os.Args[:1], j.Args...)
	fmt.Println(ReadyLine)
	return nil
}

// seedKernel makes the kernel's random numbers from now on follow from the seed, and from QEMU's,
// which the processor's rdrand returns. Those of before are the same in all copies of a machine:
// addresses of processes and of the kernel's memory, the secrets of its tables and of Go's maps.
func seedKernel(seed uint64) error {
	f, err := os.OpenFile("/dev/random", os.O_WRONLY, 0)
	if err != nil {
		return fmt.Errorf("open the kernel's random numbers: %w", err)
	}
	defer f.Close()
	if _, err := f.Write(binary.LittleEndian.AppendUint64(nil, seed)); err != nil {
		return fmt.Errorf("seed the kernel's random numbers: %w", err)
	}
	if err := unix.IoctlSetInt(int(f.Fd()), unix.RNDRESEEDCRNG, 0); err != nil {
		return fmt.Errorf("have the kernel's random numbers use the seed: %w", err)
	}
	return nil
}

func runInit() error {
	j, err := readJob()
	if err != nil {
		return err
	}
	if err := setUp(j); err != nil {
		return err
	}
	memory, err := mapAnswer()
	if err != nil {
		return err
	}
	if !j.Paused { // else the child says so when it is resumed
		fmt.Println(ReadyLine)
	}
	code := 0
	if len(j.Args) != 1 || j.Args[0] != ProbeArg {
		if code, err = runProgram(j); err != nil {
			return err
		}
	}
	if err := writeAnswer(memory, code, ResultDir); err != nil {
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
var mounts = []struct{ kind, at string }{
	{"proc", "/proc"},
	{"sysfs", "/sys"},
	{"devtmpfs", "/dev"},
	{"tmpfs", "/run"},
	{"bpf", "/sys/fs/bpf"},
	{"cgroup2", "/sys/fs/cgroup"},
	{"tracefs", "/sys/kernel/tracing"},
}

func setUp(j Job) error {
	for _, m := range mounts {
		if err := unix.Mount(m.kind, m.at, m.kind, 0, ""); err != nil {
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
	// collect garbage rarely, from 80 MB on: memory is plentiful, instructions are slow
	standard := []string{
		"PATH=/bin:/sbin:/usr/bin:/usr/sbin", "HOME=/tmp", "GOGC=2000", "GOMEMLIMIT=1GiB",
	}
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
