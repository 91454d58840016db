// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// Slurm says how a sweep is run as a Slurm job array.
type Slurm struct {
	File string   // of the sweep
	Pack int      // cells a task; 0: up to maxPack, less if there would be few tasks
	Args []string // more arguments of sbatch
	// Submitted is told which job does the sweep, and how many tasks it has, 0 if it was there already.
	Submitted func(job string, tasks int)
}

const (
	slurmDir    = "slurm" // of the results: lists of cells, and what tasks print
	maxPack     = 8       // a cell takes seconds, and the start of a task one
	fewTasks    = 64
	maxTasks    = 1000 // Slurm's MaxArraySize is 1001
	slurmMemory = "2560M"
)

// RunOnSlurm submits the unfinished cells as a job array and waits for it. A job of the sweep that is in the queue already
// is waited for instead. If the context ends, the job goes on.
func (r *Runner) RunOnSlurm(ctx context.Context, s Slurm) error {
	out, err := filepath.Abs(r.o.Out)
	if err != nil {
		return fmt.Errorf("find the folder of results: %w", err)
	}
	name := fmt.Sprintf("pcn-%s-%.12x", r.o.Sweep.Name, sha256.Sum256([]byte(out)))
	job, err := findJob(ctx, name)
	if err != nil {
		return err
	}
	if job != "" {
		s.Submitted(job, 0)
	} else if job, err = r.submit(ctx, s, name, out); err != nil {
		return err
	}
	if job == "" {
		return nil // all is there
	}
	if err := r.wait(ctx, name, job); err != nil {
		return err
	}
	left, err := r.Unfinished()
	if err != nil {
		return err
	}
	if len(left) > 0 {
		return fmt.Errorf("job %s has ended, and %d of %d cells are not finished: see %s, and run pcn sweep again for what is left",
			job, len(left), len(r.cells), filepath.Join(out, slurmDir, job+"_*.log"))
	}
	return nil
}

// submit submits what is left to do; no job if that is nothing.
func (r *Runner) submit(ctx context.Context, s Slurm, name, out string) (job string, err error) {
	if err := r.Clean(); err != nil {
		return "", err
	}
	todo, err := r.Unfinished()
	if err != nil || len(todo) == 0 {
		return "", err
	}
	var list strings.Builder
	for _, c := range todo {
		fmt.Fprintln(&list, c.ID)
	}
	dir := filepath.Join(out, slurmDir)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the folder of jobs: %w", err)
	}
	plan := filepath.Join(dir, fmt.Sprintf("%.12x.cells", sha256.Sum256([]byte(list.String()))))
	if err := os.WriteFile(plan, []byte(list.String()), 0o644); err != nil {
		return "", fmt.Errorf("write the list of cells: %w", err)
	}
	pack := packOf(len(todo), s.Pack)
	tasks := (len(todo) + pack - 1) / pack
	script, err := taskScript(s.File, out, plan, pack)
	if err != nil {
		return "", err
	}
	args := []string{"--parsable", "--job-name", name, "--array", fmt.Sprintf("0-%d", tasks-1), "--requeue", "--open-mode", "append",
		"--cpus-per-task", "1", "--mem", slurmMemory, "--output", filepath.Join(dir, "%A_%a.log")}
	text, err := slurm(ctx, script, "sbatch", append(args, s.Args...)...)
	if err != nil {
		return "", err
	}
	job, _, _ = strings.Cut(strings.TrimSpace(text), ";") // a cluster may follow
	s.Submitted(job, tasks)
	return job, nil
}

// packOf is how many cells a task runs.
func packOf(cells, asked int) int {
	pack := asked
	if pack == 0 {
		pack = min(max(cells/fewTasks, 1), maxPack)
	}
	return max(pack, (cells+maxTasks-1)/maxTasks)
}

// taskScript is what every task of the array runs.
func taskScript(file, out, plan string, pack int) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find this program's file: %w", err)
	}
	return fmt.Sprintf("#!/bin/sh\nexec %s sweep %s --out %s --cells %s --pack %d --task \"$SLURM_ARRAY_TASK_ID\"\n",
		quoted(exe), quoted(file), quoted(out), quoted(plan), pack), nil
}

// quoted is a word of a shell.
func quoted(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TaskCells are the IDs of a task's cells: so many of a list that is in a file, from 0.
func TaskCells(plan string, task, pack int) ([]string, error) {
	data, err := os.ReadFile(plan)
	if err != nil {
		return nil, fmt.Errorf("read the list of cells: %w", err)
	}
	ids := strings.Fields(string(data))
	if task < 0 || pack < 1 || task*pack >= len(ids) {
		return nil, fmt.Errorf("task %d of %d cells each: the list %s has %d", task, pack, plan, len(ids))
	}
	return ids[task*pack : min((task+1)*pack, len(ids))], nil
}

// TaskCPUs is how many CPUs the task that this is has: one, unless sbatch was asked for more.
func TaskCPUs() int {
	n, err := strconv.Atoi(os.Getenv("SLURM_CPUS_PER_TASK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

const (
	slurmPoll  = time.Second
	slurmTries = 60 // polls without an answer, as when the controller starts again
)

// wait waits until no task of the job is in the queue.
func (r *Runner) wait(ctx context.Context, name, job string) error {
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("job %s goes on (hint: pcn sweep waits for it when it is called again; scancel %s ends it): %w", job, job, ctx.Err())
		case <-time.After(slurmPoll):
		}
		r.showFinished()
		found, err := findJob(ctx, name)
		switch {
		case err == nil && found == "":
			return nil
		case err == nil:
			failed = 0
		case ctx.Err() == nil:
			if failed++; failed == slurmTries {
				return err
			}
		}
	}
}

// showFinished tells of the cells that are there. It is for show: they are looked at closely when the job has ended.
func (r *Runner) showFinished() {
	entries, err := os.ReadDir(r.store.dir)
	if err != nil {
		return
	}
	there := make(map[string]bool, len(entries))
	for _, e := range entries {
		there[e.Name()] = true
	}
	for _, c := range r.cells {
		if there[c.ID] {
			r.o.Progress(c.ID, 1)
		}
	}
}

// findJob is the number of the user's job of the name that has not ended; "" if there is none.
func findJob(ctx context.Context, name string) (string, error) {
	text, err := slurm(ctx, "", "squeue", "--noheader", "--me", "--name", name, "--format", "%F")
	if err != nil {
		return "", err
	}
	job, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return job, nil
}

// slurm runs a command of Slurm and returns what it prints.
func slurm(ctx context.Context, stdin, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not installed: run pcn sweep on a machine of a Slurm cluster, or without --engine slurm", command)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
