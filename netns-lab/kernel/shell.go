// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/config/lazy"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
)

// shell runs commands on the hosts of a fabric.
type shell struct {
	job.Shell
	fabric    *fabric
	processes *processes
	cutting   *cutting
	say       func(job.ShellEvent, string)
	host      string // where the next command runs
	lines     int    // that have been read
	out       shellOutput
}

// shellOutput tells the host whole lines, and parts of them when it must.
type shellOutput struct {
	mu   sync.Mutex
	part []byte
	say  func(job.ShellEvent, string)
}

// Write implements [io.Writer].
func (o *shellOutput) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.part = append(o.part, b...)
	for {
		line, rest, whole := bytes.Cut(o.part, []byte("\n"))
		if !whole {
			return len(b), nil
		}
		o.say(job.ShellOutput, string(line))
		o.part = rest
	}
}

// flush tells what is no line yet.
func (o *shellOutput) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.part) > 0 {
		o.say(job.ShellPart, string(o.part))
		o.part = nil
	}
}

// Shell builds the experiment's network, starts its programs, and runs the session's commands until
// it ends. It leaves the lab in the kernel, as [RunAndLeave] does. It returns the exit status: that
// of the command that ended a script; and what was captured, by host.
func Shell(
	ctx context.Context, e *experiment.Experiment, scheme string, s job.Shell,
	say func(job.ShellEvent, string),
) (status int, captured map[string][]byte, err error) {
	if !e.OnlyPrograms() {
		return 0, nil, errors.New("a shell has no flows and no bursts: remove them from the " +
			"experiment, or start programs that send")
	}
	p, err := newPlan(e)
	if err != nil {
		return 0, nil, fmt.Errorf("lay out experiment %s: %w", e.Name, err)
	}
	f, err := newFabric(p, scheme)
	if err != nil {
		return 0, nil, fmt.Errorf("build the fabric of experiment %s: %w", e.Name, err)
	}
	sh := &shell{Shell: s, fabric: f, say: say, host: p.nodes[0].name, out: shellOutput{say: say}}
	if sh.processes, err = newProcesses(f); err != nil {
		return 0, nil, err
	}
	captures, err := newCaptures(f)
	if err != nil {
		return 0, nil, err
	}
	defer captures.close()
	t0Ns, err := sh.begin(ctx, f)
	if err != nil {
		return 0, nil, err
	}
	status, err = sh.session(ctx)
	if err = errors.Join(err, sh.cutting.close()); err != nil {
		return 0, nil, err
	}
	captured, err = captures.read(f.clock, t0Ns)
	return status, captured, err
}

// inbox is where a session finds its lines.
const inbox = "/run/pcn-inbox"

// begin starts what has a time, and returns t = 0.
func (s *shell) begin(ctx context.Context, f *fabric) (t0Ns uint64, err error) {
	sampleNs := uint64(f.plan.exp.Sample)
	t0Ns = (f.clock.nowNs()/sampleNs + 1) * sampleNs
	if err := f.changeRates(f.plan, t0Ns); err != nil {
		return 0, err
	}
	if err := f.qdisc.BeginTraces(t0Ns); err != nil {
		return 0, err
	}
	if err := f.clock.sleepUntil(ctx, t0Ns); err != nil {
		return 0, err
	}
	// a script, too: what is done draws random numbers
	if err := mountAt("none", inbox, "hostfs", unix.MS_RDONLY, s.Inbox); err != nil {
		return 0, err
	}
	if s.cutting, err = f.startCutting(ctx, t0Ns); err != nil {
		return 0, err
	}
	s.processes.start(ctx, t0Ns)
	return t0Ns, s.settle(ctx)
}

// settle lets all that can run do so: time goes on only when nothing can.
func (s *shell) settle(ctx context.Context) error {
	const stepNs = 1000
	if err := s.wait(ctx, stepNs); err != nil {
		return err
	}
	s.out.flush()
	return nil
}

func (s *shell) wait(ctx context.Context, ns uint64) error {
	return s.processes.clock.sleepUntil(ctx, s.processes.clock.nowNs()+ns)
}

// session runs all lines. A script ends with the first that fails.
func (s *shell) session(ctx context.Context) (status int, err error) {
	for {
		line, err := s.next()
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		status, err := s.do(ctx, line)
		if errors.Is(err, io.EOF) {
			return 0, nil
		}
		if err != nil {
			return 0, err
		}
		if err := s.settle(ctx); err != nil {
			return 0, err
		}
		if status != 0 && s.Script != nil {
			s.say(job.ShellOutput, fmt.Sprintf("line %d of the script ended with status %d",
				s.lines, status))
			return status, nil
		}
	}
}

// next returns the next line. Time stands still until it comes, as this never sleeps.
func (s *shell) next() (string, error) {
	s.lines++
	if s.Script != nil {
		if s.lines > len(s.Script) {
			return "", io.EOF
		}
		line := s.Script[s.lines-1]
		if host, rest := s.target(line); !idle(rest) {
			s.say(job.ShellOutput, host+"> "+rest)
		}
		return line, nil
	}
	s.say(job.ShellPrompt, s.host)
	name := strconv.Itoa(s.lines - 1)
	end, err := awaitLatest(inbox, name, job.EndOfLines)
	if err != nil {
		return "", err
	}
	if end {
		return "", io.EOF
	}
	text, err := os.ReadFile(filepath.Join(inbox, name))
	if err != nil {
		return "", fmt.Errorf("read the next line: %w", err)
	}
	return string(text), nil
}

// awaitLatest looks until the folder's link [job.LatestLine] leads to name, or to end.
func awaitLatest(folder, name, end string) (isEnd bool, err error) {
	link := filepath.Join(folder, job.LatestLine)
	fd, err := unix.Open(link, unix.O_PATH|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		return false, fmt.Errorf("look for the next line: open %s: %w", link, err)
	}
	defer unix.Close(fd)
	var itself byte // the empty path: what the descriptor is of
	buffer := make([]byte, 1<<8)
	for {
		target, errno := readLink(fd, &itself, buffer)
		switch {
		case errno != 0:
			return false, fmt.Errorf("look for the next line: read %s: %w", link, errno)
		case string(target) == name, string(target) == end:
			return string(target) == end, nil
		}
	}
}

// readLink returns where a link leads to. It leaves no trace of how often it is called, which
// depends on the wall's time. So its call succeeds, as the clock goes on when 100,000 fail
// (internal/vm/uml/linux/pcn.h); the kernel keeps nothing, as it would of a file that is looked up;
// and it does not allocate, as the garbage collector has timers.
func readLink(fd int, path *byte, buffer []byte) ([]byte, unix.Errno) {
	n, _, errno := unix.RawSyscall6(unix.SYS_READLINKAT, uintptr(fd),
		uintptr(unsafe.Pointer(path)), uintptr(unsafe.Pointer(&buffer[0])),
		uintptr(len(buffer)), 0, 0)
	if errno != 0 {
		return nil, errno
	}
	return buffer[:n], 0
}

// onHost is a line that says where: H0> and a command, or nothing.
var onHost = lazy.Regexp(`^\s*([A-Za-z][A-Za-z0-9]*)>(?:\s+|$)(.*)$`)

// target returns the host that a line is for, and what is left of the line.
func (s *shell) target(line string) (host, rest string) {
	if m := onHost().FindStringSubmatch(line); m != nil {
		return m[1], strings.TrimSpace(m[2])
	}
	return s.host, strings.TrimSpace(line)
}

// idle reports whether a line is empty or a comment.
func idle(line string) bool { return line == "" || strings.HasPrefix(line, "#") }

// do runs a line, and returns its exit status; [io.EOF] if the session is to end.
func (s *shell) do(ctx context.Context, line string) (status int, err error) {
	const wrong = 2 // as of the shell's own mistakes
	host, rest := s.target(line)
	plan := s.fabric.plan
	if plan.host(host) < 0 && !s.fabric.linux.routers[plan.number[host]] {
		s.say(job.ShellOutput, fmt.Sprintf("pcn: no host %s: hosts are %s to %s", host,
			plan.nodes[0].name, plan.nodes[plan.hosts-1].name))
		return wrong, nil
	}
	s.host = host
	word, argument, _ := strings.Cut(rest, " ")
	switch {
	case idle(rest):
		return 0, nil
	case word == "exit":
		return 0, io.EOF
	case word == "wait" && argument != "":
		d, err := time.ParseDuration(argument)
		if err != nil || d < 0 {
			s.say(job.ShellOutput, fmt.Sprintf("pcn: wait %s: want a time, such as 10ms", argument))
			return wrong, nil
		}
		return 0, s.wait(ctx, uint64(d))
	}
	return s.run(ctx, rest)
}

// run runs a command on the session's host, to its end or its limit.
func (s *shell) run(ctx context.Context, command string) (status int, err error) {
	root, err := s.fabric.roots.of(s.host, nil)
	if err != nil {
		return 0, err
	}
	from, to, err := os.Pipe()
	if err != nil {
		return 0, fmt.Errorf("make a pipe: %w", err)
	}
	cmd := root.command("/tmp", []string{"/bin/sh", "-c", command})
	cmd.Stdout, cmd.Stderr = to, to // files: what it leaves in the background may keep them open
	err = root.do(cmd.Start)
	_ = to.Close()
	if err != nil {
		return 0, fmt.Errorf("run %q on %s: %w", command, s.host, err)
	}
	go func() {
		_, _ = io.Copy(&s.out, from) // until nobody has it open
		_ = from.Close()
	}()
	running, ended := context.WithCancel(ctx)
	defer ended()
	go s.end(running, command, -cmd.Process.Pid)
	_ = cmd.Wait() // its state says all
	return exitCode(cmd.ProcessState), nil
}

// end ends a command that runs for too long.
func (s *shell) end(running context.Context, command string, group int) {
	for _, signal := range []unix.Signal{unix.SIGINT, unix.SIGKILL} {
		if s.wait(running, uint64(s.Limit)) != nil {
			return
		}
		s.say(job.ShellOutput,
			fmt.Sprintf("pcn: %s: it ran for %s, and is ended", command, s.Limit))
		_ = unix.Kill(group, signal) // it may have ended meanwhile
	}
}
