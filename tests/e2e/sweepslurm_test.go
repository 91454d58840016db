// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"bufio"
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// For the test that runs in namespaces of its own: the program under test, and the folder of the same sweep without Slurm.
const (
	insideEnv = "PCN_TEST_SLURM_INSIDE"
	localEnv  = "PCN_TEST_SLURM_LOCAL"
)

// TestSlurm runs a cluster of one node, Debian's munged, slurmctld and slurmd, in namespaces of its own: its network and
// /etc/hosts are not the host's, and all that was started ends with the test.
func TestSlurm(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("needs root: slurmd runs jobs as other users")
	}
	for _, name := range []string{"munged", "slurmctld", "slurmd"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Fatalf("%v: run scripts/setup.sh --dev", err)
		}
	}
	t.Parallel()
	cmd := exec.Command("unshare", "--mount", "--net", "--uts", "--pid", "--fork", "--kill-child", "--mount-proc",
		os.Args[0], "-test.run", "^TestSlurmInside$", "-test.v")
	cmd.Env = append(os.Environ(), insideEnv+"="+pcn, localEnv+"="+localSweep(t))
	out, err := cmd.CombinedOutput()
	qt.Check(t, qt.IsNil(err), qt.Commentf("%s", out))
	qt.Check(t, qt.StringContains(string(out), "--- PASS: TestSlurmInside"), qt.Commentf("%s", out))
}

const slurmConf = `
ClusterName=pcn
SlurmctldHost=pcnnode(10.99.0.1)
SlurmUser=root
SlurmdUser=root
MessageTimeout=100
AuthType=auth/munge
AuthInfo=socket=DIR/munge.sock,cred_expire=10
StateSaveLocation=DIR/state
SlurmdSpoolDir=DIR/spool
SlurmctldPidFile=DIR/slurmctld.pid
SlurmdPidFile=DIR/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_Core
SchedulerParameters=batch_sched_delay=0,sched_interval=1
ReturnToService=2
MpiDefault=none
KillWait=2
TaskProlog=DIR/prolog
NodeName=pcnnode NodeAddr=10.99.0.1 CPUs=2 RealMemory=6000
PartitionName=all Nodes=pcnnode Default=YES MaxTime=INFINITE
`

// prolog runs at the start of each task: it stands still there while its file, hold0 or hold1, is
// there. So no task ends before the test has seen both run, nor task 1 before it is killed.
const prolog = `#!/bin/sh
while [ -e "DIR/hold$SLURM_ARRAY_TASK_ID" ]; do sleep 0.1; done
`

// startCluster starts the daemons and waits until the node is idle. It returns the folder of the
// files that hold tasks.
func startCluster(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name), []byte(text), mode)))
	}
	hosts, err := os.ReadFile("/etc/hosts")
	qt.Assert(t, qt.IsNil(err))
	write("hosts", string(hosts)+"\n10.99.0.1 pcnnode\n", 0o644)
	qt.Assert(t, qt.IsNil(syscall.Mount(filepath.Join(dir, "hosts"), "/etc/hosts", "", syscall.MS_BIND, "")))
	qt.Assert(t, qt.IsNil(syscall.Sethostname([]byte("pcnnode"))))
	command(t, "ip", "link", "set", "lo", "up")
	command(t, "ip", "address", "add", "10.99.0.1/32", "dev", "lo") // 127.0.0.1 will not do

	write("munge.key", rand.Text()+rand.Text(), 0o400)
	write("slurm.conf", strings.ReplaceAll(slurmConf, "DIR", dir), 0o644)
	write("prolog", strings.ReplaceAll(prolog, "DIR", dir), 0o755)
	write("hold0", "", 0o644)
	write("hold1", "", 0o644)
	write("cgroup.conf", "CgroupPlugin=cgroup/v1\n", 0o644)
	qt.Assert(t, qt.IsNil(os.MkdirAll(filepath.Join(dir, "state"), 0o755)))
	t.Setenv("SLURM_CONF", filepath.Join(dir, "slurm.conf"))
	socket := filepath.Join(dir, "munge.sock")
	daemon(t, dir, "munged", "--foreground", "--force", "--key-file="+filepath.Join(dir, "munge.key"), "--socket="+socket,
		"--pid-file="+filepath.Join(dir, "munge.pid"), "--log-file="+filepath.Join(dir, "munge.log"), "--seed-file="+filepath.Join(dir, "munge.seed"))
	waitFor(t, "munged", func() bool { _, err := os.Stat(socket); return err == nil })
	daemon(t, dir, "slurmctld", "-D")
	daemon(t, dir, "slurmd", "-D", "-N", "pcnnode")
	waitFor(t, "the node", func() bool {
		out, err := exec.Command("sinfo", "--noheader", "--format", "%T").Output()
		return err == nil && strings.TrimSpace(string(out)) == "idle"
	})
	return dir
}

// daemon runs a program until the test ends, and shows what it said if that failed.
func daemon(t *testing.T, dir, name string, args ...string) {
	t.Helper()
	log, err := os.Create(filepath.Join(dir, name+".out"))
	qt.Assert(t, qt.IsNil(err))
	cmd := exec.Command(name, args...)
	cmd.Stdout, cmd.Stderr = log, log
	qt.Assert(t, qt.IsNil(cmd.Start()))
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		log.Close()
		if t.Failed() {
			t.Logf("%s: %s", name, read(t, dir, name+".out"))
		}
	})
}

// command runs a program and returns what it prints.
func command(t *testing.T, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s %q: %s", name, args, out))
	return strings.TrimSpace(string(out))
}

func waitFor(t *testing.T, what string, done func() bool) {
	t.Helper()
	for end := time.Now().Add(cpuPatience); time.Now().Before(end); time.Sleep(50 * time.Millisecond) {
		if done() {
			return
		}
	}
	t.Fatalf("waited %s for %s", cpuPatience, what)
}

// TestSlurmInside submits a sweep and kills what waits for it, one task, which is queued again, and another, which is
// not. Calling pcn again waits for the one and then does what is left; the bytes are those of a sweep without Slurm.
func TestSlurmInside(t *testing.T) {
	inside := os.Getenv(insideEnv)
	if inside == "" {
		t.Skip("part of TestSlurm")
	}
	pcn = inside
	cluster := startCluster(t)
	dir := t.TempDir()
	file, out := sweepFile(t, dir), filepath.Join(dir, "slurm")
	args := []string{"sweep", file, "--out", out, "--on", "slurm", "--pack", "2"}

	submitter := exec.Command(pcn, args...)
	stderr, err := submitter.StderrPipe()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(submitter.Start()))
	said := bufio.NewReader(stderr)
	line, err := said.ReadString('\n')
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", line))
	var job, tasks int
	_, err = fmt.Sscanf(line, "pcn: submitted job %d of %d tasks", &job, &tasks)
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", line))
	qt.Check(t, qt.Equals(tasks, 2))
	go io.Copy(io.Discard, said)
	waitFor(t, "both tasks to run", func() bool {
		return strings.Count(command(t, "squeue", "--noheader", "--states", "R", "--format", "%i"), "_") == 2
	})
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(cluster, "hold0"))))
	waitCell(t, out)
	qt.Assert(t, qt.IsNil(submitter.Process.Kill()))
	qt.Assert(t, qt.IsNotNil(submitter.Wait()))
	finished := cellsIn(out)
	before := manifests(t, out, finished)
	command(t, "scancel", fmt.Sprintf("%d_1", job))
	waitFor(t, "the killed task to be gone", func() bool {
		queue := command(t, "squeue", "--noheader", "--format", "%i")
		return !strings.Contains(queue, fmt.Sprintf("%d_1", job))
	})
	qt.Assert(t, qt.IsNil(os.Remove(filepath.Join(cluster, "hold1"))))
	// the other stands still, queued or begun, until pcn was seen to wait for it
	hold0 := filepath.Join(cluster, "hold0")
	qt.Assert(t, qt.IsNil(os.WriteFile(hold0, nil, 0o644)))
	waitFor(t, "the other task to be queued again", func() bool {
		again := exec.Command("scontrol", "requeue", fmt.Sprintf("%d_0", job))
		return again.Run() == nil // a task that just ends can't be
	})

	text, code := runUntil(t, fmt.Sprintf("waiting for job %d, which is in the queue already", job),
		func() { qt.Assert(t, qt.IsNil(os.Remove(hold0))) }, args...)
	qt.Check(t, qt.Equals(code, 1), qt.Commentf("%s", text))
	qt.Check(t, qt.StringContains(text, "of 4 cells are not finished"))
	_, text, code = run(t, args...)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", text))
	qt.Check(t, qt.StringContains(text, "of 1 tasks"))
	qt.Check(t, qt.DeepEquals(manifests(t, out, finished), before))
	sameSweep(t, os.Getenv(localEnv), out)
}

// runUntil runs pcn, and calls then as soon as it has said something on stderr, which it must say.
// It returns all of stderr, and the exit code.
func runUntil(t *testing.T, says string, then func(), args ...string) (text string, code int) {
	t.Helper()
	cmd := exec.Command(pcn, args...)
	stderr, err := cmd.StderrPipe()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(cmd.Start()))
	said := bufio.NewReader(stderr)
	for !strings.Contains(text, says) {
		line, err := said.ReadString('\n')
		text += line
		qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	}
	then()
	rest, err := io.ReadAll(said)
	qt.Assert(t, qt.IsNil(err))
	_ = cmd.Wait() // its exit code says how it ended
	return text + string(rest), cmd.ProcessState.ExitCode()
}
