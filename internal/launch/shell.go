// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/vm"
)

// Shell is a session of commands on the hosts of a network.
type Shell struct {
	// Script is its lines; nil: Ask is asked for each.
	Script []string
	// Ask returns the next line, after the prompt of a host; [io.EOF] ends the session.
	Ask func(prompt string) (string, error)
	// Out is where the commands' output goes.
	Out io.Writer
	// Limit is for how long a command may run, in virtual time.
	Limit time.Duration
}

// shellMachine is a session's microVM.
type shellMachine struct {
	Shell
	inbox  string
	pid    atomic.Int64
	asked  int
	status int
	err    error
	stop   context.CancelFunc
}

// Shell runs a session on the network of a job, in User Mode Linux. It returns the exit status of
// the command that ended the script, and what was captured, by the path of its file.
func (e *MicroVMs) Shell(
	ctx context.Context, j job.Job, s Shell,
) (status int, captures map[string][]byte, err error) {
	if err := j.Experiment.CheckEngine(experiment.EngineKernel); err != nil {
		return 0, nil, err
	}
	k, err := e.on(j.Experiment)
	if err != nil {
		return 0, nil, err
	}
	if !k.kernel.IsUML() {
		return 0, nil, errors.New("a shell needs User Mode Linux, in which time stands still: " +
			"run pcn setup, and leave out --kernel")
	}
	dir, err := os.MkdirTemp("", "pcn-shell-")
	if err != nil {
		return 0, nil, fmt.Errorf("make the session's folder: %w", err)
	}
	defer os.RemoveAll(dir)
	if err := setLatest(dir, job.NoLine); err != nil {
		return 0, nil, err
	}
	text, err := json.Marshal(job.Shell{Script: s.Script, Inbox: dir, Limit: s.Limit})
	if err != nil {
		return 0, nil, fmt.Errorf("encode the session: %w", err)
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	m := &shellMachine{Shell: s, inbox: dir, stop: stop}
	c := guestConfig(k.inTime(j), job.Shells)
	c.Files = append(c.Files, vm.File{Path: job.ShellFile, Mode: 0o644, Data: text})
	c.HostCPU = noCPU
	c.Started = func(pid int) { m.pid.Store(int64(pid)) }
	c.Console = &lineWriter{hear: m.hear}
	res, err := k.boot(ctx, c, "the session failed")
	if err := errors.Join(m.err, err); err != nil {
		return 0, nil, err
	}
	captures, err = res.Files()
	return m.status, captures, err
}

// hear reads a line of the guest's console.
func (m *shellMachine) hear(line string) {
	event, text, _ := job.ParseShellEvent(line)
	var err error
	switch event {
	case job.ShellOutput:
		_, err = fmt.Fprintln(m.Out, text)
	case job.ShellPart:
		_, err = fmt.Fprint(m.Out, text)
	case job.ShellPrompt:
		err = m.ask(text)
	case job.ShellEnd:
		m.status, err = strconv.Atoi(text)
	}
	if err != nil && m.err == nil {
		m.err = err
		m.stop()
	}
}

// ask gets the next line. The machine, which looks for it over and over, is stopped meanwhile.
func (m *shellMachine) ask(host string) error {
	pid := int(m.pid.Load())
	if err := vm.Hold(pid, true); err != nil {
		return err
	}
	line, err := m.Ask(host + "> ")
	name := strconv.Itoa(m.asked)
	if errors.Is(err, io.EOF) {
		name, err = job.EndOfLines, nil
	}
	if err != nil {
		return err
	}
	m.asked++
	if err := os.WriteFile(filepath.Join(m.inbox, name), []byte(line), 0o644); err != nil {
		return fmt.Errorf("hand over a line: %w", err)
	}
	if err := setLatest(m.inbox, name); err != nil {
		return err
	}
	return vm.Hold(pid, false)
}

// setLatest has the inbox's link lead to a file, at once, as the machine may look at any time.
func setLatest(inbox, name string) error {
	next := filepath.Join(inbox, "next")
	if err := os.Symlink(name, next); err != nil {
		return fmt.Errorf("hand over a line: %w", err)
	}
	if err := os.Rename(next, filepath.Join(inbox, job.LatestLine)); err != nil {
		return fmt.Errorf("hand over a line: %w", err)
	}
	return nil
}
