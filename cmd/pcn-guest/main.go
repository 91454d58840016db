// SPDX-License-Identifier: Apache-2.0

// Command pcn-guest is the microVM's init. It runs one experiment with one scheme, and leaves the
// result for the host. Its bytes decide a run's bytes, so it links only what a run needs.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/vm/guest"
	"github.com/pcn-linux/pcn/netns-lab/kernel"
)

func main() {
	if !guest.Inside() {
		fmt.Fprintln(os.Stderr, "pcn-guest runs in a microVM: use pcn run")
		os.Exit(2)
	}
	guest.Main(func(args []string) int {
		if err := do(args); err != nil {
			fmt.Println(err) // the console is all that the host reads
			return 1
		}
		return 0
	})
}

func do(args []string) error {
	task, j, err := job.Parse(job.ExperimentFile, args)
	if err != nil {
		return err
	}
	switch task {
	case job.UpAndDown:
		return upAndDown(j)
	case job.Shells:
		return shell(j)
	}
	progress := func(done, total int64) {
		fmt.Printf("%s%d %d\n", job.ProgressPrefix, done, total)
	}
	run, err := kernel.RunAndLeave(context.Background(), j.Experiment, j.Scheme, progress)
	if err != nil {
		return err
	}
	return run.Write(guest.ResultDir)
}

// upAndDown builds the network and removes it, and writes down what that took.
func upAndDown(j job.Job) error {
	tell := func(s job.Step) { fmt.Println(s) }
	scale, err := kernel.UpAndDown(j.Experiment, j.Scheme, tell)
	if err != nil {
		return err
	}
	text, err := json.Marshal(scale)
	if err != nil {
		return fmt.Errorf("encode the network's scale: %w", err)
	}
	return os.WriteFile(filepath.Join(guest.ResultDir, job.ScaleFile), text, 0o644)
}

// shell runs the commands of a session, and leaves what was captured.
func shell(j job.Job) error {
	text, err := os.ReadFile(job.ShellFile)
	if err != nil {
		return fmt.Errorf("read the session: %w", err)
	}
	var s job.Shell
	if err := json.Unmarshal(text, &s); err != nil {
		return fmt.Errorf("decode the session: %w", err)
	}
	say := func(e job.ShellEvent, text string) { fmt.Println(e.Line(text)) }
	status, captured, err := kernel.Shell(context.Background(), j.Experiment, j.Scheme, s, say)
	if err != nil {
		return err
	}
	for host, packets := range captured {
		file := filepath.Join(guest.ResultDir, result.CaptureFile(host))
		if err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755),
			os.WriteFile(file, packets, 0o644)); err != nil {
			return fmt.Errorf("write what host %s was sent: %w", host, err)
		}
	}
	say(job.ShellEnd, fmt.Sprint(status))
	return nil
}
