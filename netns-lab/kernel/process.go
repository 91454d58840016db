// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// processes are the experiment's programs while they run.
type processes struct {
	all   []*process
	clock clock
	t0Ns  uint64
	wg    sync.WaitGroup
	idle  chan struct{} // closed when all have ended
}

// process is one of them.
type process struct {
	experiment.Program
	inputs map[string]string
	root   *hostRoot
	out    [2]output     // stdout and stderr
	ended  chan struct{} // closed when it has ended, or will never start
	mu     sync.Mutex
	cmd    *exec.Cmd // nil until it has started
	// limited: it was killed, as it ran for longer than it may
	limited bool
	result  result.Program
}

// output keeps what a program writes, and tells those that wait for a line of it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	lineAt  int
	waiting *[]*awaited // of both outputs of a program
}

// awaited is a line that another program waits for.
type awaited struct {
	says *regexp.Regexp
	once sync.Once
	seen chan struct{}
}

// Write implements [io.Writer].
func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.text.Write(b)
	for {
		line, _, whole := bytes.Cut(o.text.Bytes()[o.lineAt:], []byte("\n"))
		for _, w := range *o.waiting {
			if w.says.Match(line) {
				w.once.Do(func() { close(w.seen) })
			}
		}
		if !whole {
			return len(b), nil
		}
		o.lineAt += len(line) + 1
	}
}

// newProcesses prepares the hosts' file systems.
func newProcesses(f *fabric) (*processes, error) {
	e := f.plan.exp
	p := &processes{clock: f.clock, idle: make(chan struct{})}
	if len(e.Programs) == 0 {
		close(p.idle)
		return p, nil
	}
	for _, program := range e.Programs {
		root, err := f.roots.of(program.Host, e.ImageOf(program))
		if err != nil {
			return nil, err
		}
		p.all = append(p.all, &process{
			Program: program, inputs: e.InputTexts(program), root: root,
			ended:  make(chan struct{}),
			result: result.Program{Name: program.Name, Host: program.Host},
		})
	}
	return p, nil
}

func (p *processes) named(name string) *process {
	i := slices.IndexFunc(p.all, func(q *process) bool { return q.Name == name })
	return p.all[i] // the experiment was checked
}

// start lets each program start when it is its turn.
func (p *processes) start(ctx context.Context, t0Ns uint64) {
	p.t0Ns = t0Ns
	waits := make([]*awaited, len(p.all))
	waiting := make([][]*awaited, len(p.all))
	for i, q := range p.all {
		q.out[0].waiting, q.out[1].waiting = &waiting[i], &waiting[i]
		if q.After.Says != "" {
			waits[i] = &awaited{
				says: regexp.MustCompile(q.After.Says), seen: make(chan struct{}),
			}
			at := slices.Index(p.all, p.named(q.After.Program))
			waiting[at] = append(waiting[at], waits[i])
		}
	}
	for i, q := range p.all {
		p.wg.Go(func() {
			defer close(q.ended)
			if why := p.await(ctx, q, waits[i]); why != "" {
				q.result.Why = why
				return
			}
			p.run(q)
		})
	}
	if len(p.all) > 0 {
		go p.endServers()
	}
}

// await waits until a program may start. It returns why that will never be, or "".
func (p *processes) await(ctx context.Context, q *process, line *awaited) string {
	const over = "the run ended before its time"
	if q.After.Program == "" {
		if p.clock.sleepUntil(ctx, p.t0Ns+uint64(q.At)) != nil {
			return over
		}
		return ""
	}
	other := p.named(q.After.Program)
	if line != nil {
		select {
		case <-ctx.Done():
			return over
		case <-line.seen:
		case <-other.ended:
			select {
			case <-line.seen:
			default:
				return fmt.Sprintf("program %s ended and did not say %q", other.Name, q.After.Says)
			}
		}
	} else {
		select {
		case <-ctx.Done():
			return over
		case <-other.ended:
			if other.result.StartNs == nil {
				return fmt.Sprintf("program %s did not start", other.Name)
			}
		}
	}
	if p.clock.sleepUntil(ctx, p.clock.nowNs()+uint64(q.At)) != nil {
		return over
	}
	return ""
}

// sinceStart returns the time from t = 0.
func (p *processes) sinceStart() *int64 {
	ns := int64(p.clock.nowNs() - p.t0Ns)
	return &ns
}

// run runs a program to its end.
func (p *processes) run(q *process) {
	cmd, err := q.start()
	if err != nil {
		q.result.Why = err.Error()
		return
	}
	q.result.StartNs = p.sinceStart()
	running, ended := context.WithCancel(context.Background())
	defer ended()
	if q.Limit > 0 {
		endNs := p.t0Ns + uint64(*q.result.StartNs) + uint64(q.Limit)
		go p.killAt(running, q, endNs)
	}
	_ = cmd.Wait() // its state says all
	ended()
	q.result.EndNs = p.sinceStart()
	code := exitCode(cmd.ProcessState)
	q.result.ExitCode = &code
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.limited {
		q.result.Why = fmt.Sprintf("it was killed at its limit of %s", q.Limit)
	}
}

// exitCode returns what a shell calls the exit status of a program.
func exitCode(state *os.ProcessState) int {
	status := state.Sys().(syscall.WaitStatus)
	if status.Signaled() {
		return 128 + int(status.Signal())
	}
	return status.ExitStatus()
}

// killAt kills a program that still runs at the end of its limit, with its children.
func (p *processes) killAt(running context.Context, q *process, endNs uint64) {
	if p.clock.sleepUntil(running, endNs) != nil {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.limited = true
	_ = unix.Kill(-q.cmd.Process.Pid, unix.SIGKILL) // it may have ended meanwhile
}

// start starts the program on its host.
func (q *process) start() (*exec.Cmd, error) {
	dir := q.root.scratch(q.Name)
	if err := os.MkdirAll(q.root.path(dir), 0o777); err != nil {
		return nil, fmt.Errorf("make the program's folder: %w", err)
	}
	if i := q.root.image; i != nil && i.Dir != "" {
		if err := os.MkdirAll(q.root.path(i.Dir), 0o755); err != nil {
			return nil, fmt.Errorf("make the image's working directory: %w", err)
		}
	}
	for name, text := range q.inputs {
		if err := os.WriteFile(q.root.path(dir, name), []byte(text), 0o755); err != nil {
			return nil, fmt.Errorf("write the program's input: %w", err)
		}
	}
	cmd := q.root.command(dir, q.Command)
	for _, key := range slices.Sorted(maps.Keys(q.Env)) {
		cmd.Env = append(cmd.Env, key+"="+q.Env[key])
	}
	cmd.Stdout, cmd.Stderr = &q.out[0], &q.out[1]
	const linger = 100 * time.Millisecond // of children that keep its output open
	cmd.WaitDelay = linger
	if err := q.root.do(cmd.Start); err != nil {
		return nil, fmt.Errorf("start it: %w", err)
	}
	q.mu.Lock()
	q.cmd = cmd
	q.mu.Unlock()
	return cmd, nil
}

// endServers stops the servers when all others have ended.
func (p *processes) endServers() {
	for _, q := range p.all {
		if !q.Server {
			<-q.ended
		}
	}
	for _, q := range p.all {
		q.stop()
	}
	close(p.idle)
}

// stop ends a program that still runs, with its children.
func (q *process) stop() {
	const grace = time.Second
	q.mu.Lock()
	cmd := q.cmd
	q.mu.Unlock()
	if cmd == nil {
		return
	}
	for _, signal := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		select {
		case <-q.ended:
			return
		default:
		}
		q.result.Stopped = true
		_ = unix.Kill(-cmd.Process.Pid, signal) // it may have ended meanwhile
		select {
		case <-q.ended:
		case <-time.After(grace):
		}
	}
}

// close ends all programs. Those that have not started must be kept from it by their context.
func (p *processes) close() {
	for _, q := range p.all {
		q.stop()
	}
	p.wg.Wait()
}

// ended reports whether all programs have ended.
func (p *processes) ended() bool {
	select {
	case <-p.idle:
		return true
	default:
		return false
	}
}

// results returns what became of the programs, when all have ended.
func (p *processes) results() ([]result.Program, error) {
	var all []result.Program
	for _, q := range p.all {
		r := q.result
		r.Files = map[string][]byte{
			result.StdoutFile: q.out[0].text.Bytes(), result.StderrFile: q.out[1].text.Bytes(),
		}
		dir := q.root.path(q.root.scratch(q.Name))
		for _, pattern := range q.Files {
			found, err := filepath.Glob(filepath.Join(dir, pattern))
			if err != nil {
				return nil, err
			}
			for _, file := range found {
				name, err := filepath.Rel(dir, file)
				if err == nil {
					r.Files[name], err = os.ReadFile(file)
				}
				if err != nil {
					return nil, fmt.Errorf("program %s: read its file: %w", q.Name, err)
				}
			}
		}
		all = append(all, r)
	}
	return all, nil
}
