// SPDX-License-Identifier: Apache-2.0

//go:build linux

package vm

import (
	"bufio"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/vm/guest"
)

// roleEnv makes this test binary run a guest that hangs, on the machine that it names.
const roleEnv = "PCN_VM_TEST_ROLE"

// This test binary is also the guest program of its microVMs, and the process that dies with one.
func TestMain(m *testing.M) {
	if guest.Inside() {
		guest.Main(func(args []string) int { return guestRoles[args[0]](args[1:]) })
	}
	if machine := os.Getenv(roleEnv); machine != "" {
		_, err := Run(context.Background(), configOn(machine, "hang", os.Stdout))
		fmt.Println(err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// machines are those that run guests.
var machines = map[string]func() (Kernel, error){
	"uml": Default, "qemu": func() (Kernel, error) { return FindKernel("") },
}

// guestRoles are what the guest program may do.
var guestRoles = map[string]func(args []string) int{
	"answer":  guestAnswer,
	"clock":   guestClock,
	"exit":    func([]string) int { os.Exit(3); return 0 },
	"gopanic": func([]string) int { panic("on purpose") },
	"spin": func([]string) int {
		for n := 1; n != 0; n |= 1 { // and call nothing
		}
		return 0
	},
	"killed": func([]string) int { return guestError(unix.Kill(os.Getpid(), unix.SIGKILL)) },
	"panic": func([]string) int {
		const init = 1 // Go ends at this signal, and the kernel panics without init
		if err := unix.Kill(init, unix.SIGQUIT); err != nil {
			return guestError(err)
		}
		select {}
	},
	"vanish":   func([]string) int { return guestError(unix.Reboot(unix.LINUX_REBOOT_CMD_RESTART)) },
	"hang":     guestHang,
	"controls": guestControls,
	"too much": guestTooMuch,
}

func guestError(err error) int {
	fmt.Println("guest role:", err)
	return 1
}

// guestAnswer shows what the guest was given, and leaves files.
func guestAnswer(args []string) int {
	dir, _ := os.Getwd()
	data, _ := os.ReadFile("/etc/greeting")
	fmt.Printf("args %q env %q dir %q file %q\n", args, os.Getenv("GREETING"), dir, data)
	lo, err := net.InterfaceByName("lo")
	if err != nil || lo.Flags&net.FlagUp == 0 {
		return guestError(fmt.Errorf("lo is not up: %v", err))
	}
	if err := os.MkdirAll(guest.ResultDir+"/deep", 0o755); err != nil {
		return guestError(err)
	}
	if err := os.WriteFile(guest.ResultDir+"/b", make([]byte, 3<<20), 0o644); err != nil {
		return guestError(err)
	}
	if err := os.WriteFile(guest.ResultDir+"/deep/a", []byte("hello"), 0o600); err != nil {
		return guestError(err)
	}
	return 7
}

// guestClock prints times and random numbers that depend on all that happens: timers, threads,
// sockets.
func guestClock([]string) int {
	server, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return guestError(err)
	}
	go func() {
		c, err := server.Accept()
		if err == nil {
			_, err = io.Copy(c, c)
		}
		if err != nil {
			guestError(err)
		}
	}()
	c, err := net.Dial("tcp", server.Addr().String())
	if err != nil {
		return guestError(err)
	}
	block := make([]byte, 4096)
	for i := range 100 {
		_, _ = rand.Read(block)
		if _, err := c.Write(block); err != nil {
			return guestError(err)
		}
		if _, err := io.ReadFull(c, block); err != nil {
			return guestError(err)
		}
		nap := unix.NsecToTimespec(int64(i) * 1000)
		_ = unix.ClockNanosleep(unix.CLOCK_MONOTONIC, 0, &nap, nil)
		if i%10 == 0 {
			fmt.Println(time.Now().UnixNano(), hex.EncodeToString(block[:8]))
		}
	}
	return 0
}

func guestHang([]string) int {
	fmt.Println("hanging")
	for {
		time.Sleep(time.Millisecond)
	}
}

// guestControls prints the congestion controls that the kernel has.
func guestControls([]string) int {
	text, err := os.ReadFile("/proc/sys/net/ipv4/tcp_available_congestion_control")
	if err != nil {
		return guestError(err)
	}
	fmt.Print(string(text))
	return 0
}

func guestTooMuch([]string) int {
	f, err := os.Create(guest.ResultDir + "/huge")
	if err != nil {
		return guestError(err)
	}
	if err := f.Truncate(guest.AnswerBytes); err != nil {
		return guestError(err)
	}
	return 0
}

// testConfig runs a role on the default machine.
func testConfig(role string, out io.Writer) Config { return configOn("uml", role, out) }

func configOn(machine, role string, out io.Writer) Config {
	kernel, err := machines[machine]()
	if err != nil {
		panic(err) // the message says what to do
	}
	return Config{Kernel: kernel, Args: []string{role}, HostCPU: -1, Seed: 1, MemoryMiB: 1024,
		Console: out}
}

func TestRun(t *testing.T) {
	for machine := range machines {
		t.Run(machine, func(t *testing.T) {
			var said strings.Builder
			c := configOn(machine, "answer", &said)
			c.Args = append(c.Args, "two words")
			c.Env = []string{"GREETING=hi"}
			c.Dir = "/etc"
			c.Files = []File{{Path: "/etc/greeting", Mode: 0o644, Data: []byte("welcome")}}
			res, err := Run(t.Context(), c)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(res.ExitCode, 7))
			const want = "args [\"two words\"] env \"hi\" dir \"/etc\" file \"welcome\"\n"
			qt.Check(t, qt.Equals(said.String(), want))
			qt.Check(t, qt.IsTrue(res.Deterministic))
			qt.Check(t, qt.IsTrue(0 < res.Boot && res.Boot < res.Wall))

			files, err := res.Files()
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(string(files["deep/a"]), "hello"))
			qt.Check(t, qt.HasLen(files["b"], 3<<20))
			t.Logf("boot %v, wall %v", res.Boot, res.Wall)
		})
	}
}

// Each control of Linux is there when its module was asked for, also one that needs another or is
// built in.
func TestRunWithModules(t *testing.T) {
	for machine := range machines {
		t.Run(machine, func(t *testing.T) {
			var said strings.Builder
			c := configOn(machine, "controls", &said)
			c.Modules = []string{"tcp_yeah", "tcp_bbr", "tcp_reno"}
			res, err := Run(t.Context(), c)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(res.ExitCode, 0))
			controls := strings.Fields(said.String())
			for _, want := range []string{"yeah", "vegas", "bbr", "reno"} {
				qt.Check(t, qt.SliceContains(controls, want))
			}
			qt.Check(t, qt.IsFalse(slices.Contains(controls, "htcp")),
				qt.Commentf("%s", said.String()))
		})
	}
}

// However a program ends, the host knows.
func TestHowGuestsEnd(t *testing.T) {
	tests := []struct {
		role    string
		code    int
		is      error
		message string // of the error, or on the console
	}{
		{role: "exit", code: 3},
		{role: "gopanic", code: 2, message: "panic: on purpose"},
		{role: "killed", code: 137, message: "ended by signal: killed"},
		{role: "panic", is: ErrPanic, message: "Attempted to kill init"},
		{role: "vanish", is: guest.ErrNoAnswer},
		{role: "too much", is: guest.ErrNoAnswer, message: "results are larger than 256 MiB"},
	}
	for _, test := range tests {
		for machine := range machines {
			t.Run(test.role+" "+machine, func(t *testing.T) {
				t.Parallel()
				res, err := Run(t.Context(), configOn(machine, test.role, nil))
				qt.Check(t, qt.ErrorIs(err, test.is))
				qt.Check(t, qt.Equals(res.ExitCode, test.code))
				qt.Check(t, qt.StringContains(res.Console+fmt.Sprint(err), test.message))
				if test.is != nil {
					qt.Check(t, qt.StringContains(err.Error(), "the last lines of its console"))
				}
			})
		}
	}
}

// The reason why this package is there. Two of the runs load both CPUs while they run.
func TestDeterminism(t *testing.T) {
	clock := func(seed uint64) string {
		var said strings.Builder
		c := testConfig("clock", &said)
		c.Seed = seed
		res, err := Run(t.Context(), c)
		qt.Check(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(res.ExitCode, 0))
		return said.String()
	}
	alone := clock(1)
	qt.Assert(t, qt.HasLen(strings.Split(alone, "\n"), 11))
	var again, other string
	var both sync.WaitGroup
	both.Go(func() { again = clock(1) })
	both.Go(func() { other = clock(2) })
	both.Wait()
	qt.Check(t, qt.Equals(again, alone))
	qt.Check(t, qt.Not(qt.Equals(other, alone)))
	// the seed reaches the random numbers
	_, random, _ := strings.Cut(alone, " ")
	_, otherRandom, _ := strings.Cut(other, " ")
	qt.Check(t, qt.Not(qt.Equals(otherRandom[:16], random[:16])))
}

// A host without KVM, or with one that does not boot, takes the deterministic way.
func TestRealTime(t *testing.T) {
	c := configOn("qemu", "exit", nil)
	c.RealTime = true
	res, err := Run(t.Context(), c)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(res.ExitCode, 3))
	if !haveKVM() {
		qt.Check(t, qt.IsTrue(res.Deterministic))
	}
	t.Log("deterministic:", res.Deterministic)
}

// A program that computes for ever in a time that stands still is found, also on a busy machine.
func TestSpin(t *testing.T) {
	limit := spinLimit
	t.Cleanup(func() { spinLimit = limit })
	spinLimit = time.Second
	_, err := Run(t.Context(), configOn("uml", "spin", io.Discard))
	qt.Assert(t, qt.ErrorIs(err, errSpins))
	const named = "(?s).*: the program that ran is [a-z]+, process [0-9]+ of the microVM"
	qt.Check(t, qt.ErrorMatches(err, named))
}

func TestCancel(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	// as soon as the guest program speaks
	c := testConfig("hang", writerFunc(func([]byte) { cancel() }))
	_, err := Run(ctx, c)
	qt.Check(t, qt.ErrorIs(err, context.Canceled))
	qt.Check(t, qt.HasLen(children(t, os.Getpid()), 0))
	fds, err := filepath.Glob("/proc/self/fd/*")
	qt.Assert(t, qt.IsNil(err))
	for _, fd := range fds {
		target, _ := os.Readlink(fd) // one of them is Glob's own, gone by now
		qt.Check(t, qt.IsFalse(strings.Contains(target, "pcn-vm")))
	}
}

type writerFunc func([]byte)

func (f writerFunc) Write(b []byte) (int, error) { f(b); return len(b), nil }

// A console that can't be written ends the run, with its own error.
func TestConsoleFails(t *testing.T) {
	r, w := io.Pipe()
	full := errors.New("disk full")
	r.CloseWithError(full)
	_, err := Run(t.Context(), testConfig("hang", w))
	qt.Check(t, qt.ErrorIs(err, full))
}

// A machine dies with the process that runs it, even on kill -9: with all of its processes. User
// Mode Linux has several.
func TestMachineDiesWithUs(t *testing.T) {
	for machine := range machines {
		t.Run(machine, func(t *testing.T) {
			cmd := exec.Command(os.Args[0])
			cmd.Env = append(os.Environ(), roleEnv+"="+machine)
			out, err := cmd.StdoutPipe()
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.IsNil(cmd.Start()))
			line, err := bufio.NewReader(out).ReadString('\n')
			qt.Check(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(line, "hanging\n"))
			pids := descendants(t, cmd.Process.Pid)
			qt.Check(t, qt.IsTrue(len(pids) >= 1))
			var fds []unix.PollFd
			for _, pid := range pids {
				fd, err := unix.PidfdOpen(pid, 0)
				if errors.Is(err, unix.ESRCH) {
					continue // it has ended by itself
				}
				qt.Assert(t, qt.IsNil(err))
				t.Cleanup(func() { unix.Close(fd) })
				fds = append(fds, unix.PollFd{Fd: int32(fd), Events: unix.POLLIN})
			}
			qt.Check(t, qt.IsNil(cmd.Process.Kill()))
			_ = cmd.Wait() // it was killed
			for _, fd := range fds {
				qt.Check(t, qt.IsTrue(ends(t, fd)),
					qt.Commentf("a process of %s is still there", machine))
			}
		})
	}
}

// ends waits until a process that was killed has ended. It needs CPU time to end.
func ends(t *testing.T, pidfd unix.PollFd) bool {
	t.Helper()
	const patience = 3 * time.Minute
	for end := time.Now().Add(patience); ; {
		n, err := unix.Poll([]unix.PollFd{pidfd}, int(patience.Milliseconds()))
		if errors.Is(err, unix.EINTR) && time.Now().Before(end) {
			continue // a signal for this process
		}
		qt.Check(t, qt.IsNil(err))
		return n == 1
	}
}

// descendants are the processes that pid started and that still run, and theirs.
func descendants(t *testing.T, pid int) []int {
	all := children(t, pid)
	for _, child := range all {
		all = append(all, descendants(t, child)...)
	}
	return all
}

// children are the processes that pid started and that still run.
func children(t *testing.T, pid int) []int {
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	qt.Assert(t, qt.IsNil(err))
	var out []int
	for _, list := range lists {
		text, err := os.ReadFile(list)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // a thread that ended
		}
		qt.Assert(t, qt.IsNil(err))
		for f := range strings.FieldsSeq(string(text)) {
			child, err := strconv.Atoi(f)
			qt.Assert(t, qt.IsNil(err))
			out = append(out, child)
		}
	}
	return out
}

func TestNoQEMU(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	_, err := Run(t.Context(), configOn("qemu", "exit", nil))
	qt.Check(t, qt.ErrorMatches(err, "qemu-system-x86_64 is not installed: .*"))
}

// What QEMU complains about is in the error.
func TestQEMUFails(t *testing.T) {
	c := configOn("qemu", "exit", nil)
	c.Kernel.Image = filepath.Join(t.TempDir(), "vmlinux")
	_, err := Run(t.Context(), c)
	qt.Check(t, qt.ErrorMatches(err,
		`(?s)qemu-system-x86_64 failed: exit status 1.*could not open kernel file.*`))
}
