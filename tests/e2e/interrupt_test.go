// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// long is the duration of a run that is killed: no test that waits for a CPU misses its middle.
const long = "1s"

// TestInterrupted ends pcn in the middle of a run, politely and not: no microVM and no file may be left.
func TestInterrupted(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGKILL} {
		t.Run(sig.String(), func(t *testing.T) {
			tmp := t.TempDir()
			out := filepath.Join(t.TempDir(), "out")
			cmd := exec.Command(pcn, "run", "hol", "--algo", "pcn", "--duration", long, "--out", out)
			cmd.Env = append(os.Environ(), "TMPDIR="+tmp)
			qt.Assert(t, qt.IsNil(cmd.Start()))
			vm := waitChild(t, cmd.Process.Pid)
			qt.Assert(t, qt.IsNil(cmd.Process.Signal(sig)))
			err := cmd.Wait()
			qt.Assert(t, qt.IsNotNil(err))
			if sig != syscall.SIGKILL {
				qt.Check(t, qt.Equals(cmd.ProcessState.ExitCode(), 1))
			}
			waitGone(t, vm)
			left, err := os.ReadDir(tmp)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(left, 0))
			results, err := os.ReadDir(out)
			if sig != syscall.SIGKILL {
				qt.Check(t, qt.ErrorIs(err, os.ErrNotExist)) // nothing was measured
				return
			}
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(results, 0))
		})
	}
}

// TestOneMicroVMPerCPU starts a second pcn on the only CPU that a first one may use: it says that it waits, and goes on when
// the first is killed.
func TestOneMicroVMPerCPU(t *testing.T) {
	start := func() (*exec.Cmd, *bufio.Scanner) {
		cmd := exec.Command("taskset", "-c", "0", pcn, "run", "hol", "--algo", "pcn", "--duration", long,
			"--out", filepath.Join(t.TempDir(), "out"))
		stderr, err := cmd.StderrPipe()
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.IsNil(cmd.Start()))
		t.Cleanup(func() {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		})
		return cmd, bufio.NewScanner(stderr)
	}
	first, _ := start()
	waitChild(t, first.Process.Pid)
	second, stderr := start()
	qt.Assert(t, qt.IsTrue(stderr.Scan()))
	qt.Check(t, qt.Equals(stderr.Text(), "pcn: other microVMs of this machine use every CPU: waiting for one"))
	qt.Assert(t, qt.IsNil(first.Process.Kill()))
	waitChild(t, second.Process.Pid)
}

const (
	patience    = 3 * time.Minute
	cpuPatience = 10 * time.Minute // pcn waits for a CPU while other microVMs have all
)

// machine is the command name of User Mode Linux.
const machine = "linux"

// waitChild waits until the process has a machine, and returns its pid.
func waitChild(t *testing.T, pid int) int {
	t.Helper()
	const poll = 10 * time.Millisecond
	for end := time.Now().Add(cpuPatience); time.Now().Before(end); time.Sleep(poll) {
		tasks, _ := filepath.Glob(filepath.Join("/proc", strconv.Itoa(pid), "task/*/children"))
		for _, task := range tasks {
			b, _ := os.ReadFile(task) // a thread may have ended
			for child := range strings.FieldsSeq(string(b)) {
				n, err := strconv.Atoi(child)
				if err == nil && commandOf(n) == machine {
					return n
				}
			}
		}
	}
	t.Fatalf("pcn started no microVM in %s", cpuPatience)
	return 0
}

// waitGone waits until the process is no more.
func waitGone(t *testing.T, pid int) {
	t.Helper()
	for end := time.Now().Add(patience); time.Now().Before(end); time.Sleep(10 * time.Millisecond) {
		if commandOf(pid) != machine {
			return
		}
	}
	t.Fatalf("microVM %d outlives pcn by %s", pid, patience)
}

// commandOf is the process's name; "" if there is none.
func commandOf(pid int) string {
	b, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "comm"))
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(b))
}
