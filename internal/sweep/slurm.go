// SPDX-License-Identifier: Apache-2.0

package sweep

import (
	"bytes"
	"cmp"
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

// Slurm configures the Slurm job array of a sweep.
type Slurm struct {
	File   string   // the sweep file
	Engine string   // what runs the cells; empty: what the sweep's experiment says
	Pack   int      // cells in each task; 0 chooses up to maxPack
	Args   []string // further arguments of sbatch
	// Submitted is called with the job that runs the sweep and its number of tasks; 0 tasks if the
	// job was in the queue already.
	Submitted func(job string, tasks int)
}

const (
	slurmDir    = "slurm" // folder in the results for lists of cells and logs of tasks
	maxPack     = 8       // a cell takes seconds, and the start of a task one second
	minTasks    = 64      // below, each task has one cell, so that the cluster can spread them
	maxTasks    = 1000    // Slurm's default MaxArraySize is 1001
	slurmMemory = "2560M" // for each task
)

// RunOnSlurm submits the unfinished cells as a job array and waits for it. If a job of this sweep
// is in the queue already, it waits for that one. If the context ends, the job continues.
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
		return nil // all cells were finished before
	}
	if err := r.wait(ctx, name, job); err != nil {
		return err
	}
	unfinished, err := r.Unfinished()
	if err != nil {
		return err
	}
	if len(unfinished) > 0 {
		return fmt.Errorf("job %s has ended, but %d of %d cells are not finished: "+
			"see %s, and run pcn sweep again for the rest",
			job, len(unfinished), len(r.cells), filepath.Join(out, slurmDir, job+"_*.log"))
	}
	return nil
}

// submit submits the unfinished cells; it returns "" if there are none.
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
	listFile := filepath.Join(dir, fmt.Sprintf("%.12x.cells", sha256.Sum256([]byte(list.String()))))
	if err := os.WriteFile(listFile, []byte(list.String()), 0o644); err != nil {
		return "", fmt.Errorf("write the list of cells: %w", err)
	}
	pack := cellsPerTask(len(todo), s.Pack)
	tasks := (len(todo) + pack - 1) / pack
	script, err := s.taskScript(out, listFile, pack)
	if err != nil {
		return "", err
	}
	args := []string{
		"--parsable", "--job-name", name, "--array", fmt.Sprintf("0-%d", tasks-1),
		"--requeue", "--open-mode", "append", "--cpus-per-task", "1", "--mem", slurmMemory,
		"--output", filepath.Join(dir, "%A_%a.log"),
	}
	text, err := slurm(ctx, script, "sbatch", append(args, s.Args...)...)
	if err != nil {
		return "", err
	}
	job, _, _ = strings.Cut(strings.TrimSpace(text), ";") // the name of a cluster may follow
	s.Submitted(job, tasks)
	return job, nil
}

// cellsPerTask returns the requested number; 0 lets it choose. A job has at most maxTasks tasks.
func cellsPerTask(cells, requested int) int {
	pack := cmp.Or(requested, min(max(cells/minTasks, 1), maxPack))
	return max(pack, (cells+maxTasks-1)/maxTasks)
}

// taskScript returns the shell script of every task in the array.
func (s Slurm) taskScript(out, listFile string, pack int) (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", fmt.Errorf("find the path of pcn: %w", err)
	}
	var engine string
	if s.Engine != "" {
		engine = " --engine " + shellQuote(s.Engine)
	}
	return fmt.Sprintf("#!/bin/sh\nexec %s sweep %s --out %s --cells %s --pack %d%s"+
		" --task \"$SLURM_ARRAY_TASK_ID\"\n",
		shellQuote(exe), shellQuote(s.File), shellQuote(out), shellQuote(listFile), pack,
		engine), nil
}

func shellQuote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

// TaskCells returns the IDs of the cells of a task, counted from 0, with pack cells for each task
// of the list.
func TaskCells(listFile string, task, pack int) ([]string, error) {
	data, err := os.ReadFile(listFile)
	if err != nil {
		return nil, fmt.Errorf("read the list of cells: %w", err)
	}
	ids := strings.Fields(string(data))
	if task < 0 || pack < 1 || task*pack >= len(ids) {
		return nil, fmt.Errorf("no task %d of %d cells each: the list %s has %d cells",
			task, pack, listFile, len(ids))
	}
	return ids[task*pack : min((task+1)*pack, len(ids))], nil
}

// TaskCPUs returns the number of CPUs of the Slurm task that this process is: 1, unless the user's
// arguments of sbatch ask for more.
func TaskCPUs() int {
	n, err := strconv.Atoi(os.Getenv("SLURM_CPUS_PER_TASK"))
	if err != nil || n < 1 {
		return 1
	}
	return n
}

const (
	slurmPoll  = time.Second
	slurmTries = 60 // polls that may fail in a row, as while Slurm's controller restarts
)

// wait waits until no task of the job is in the queue.
func (r *Runner) wait(ctx context.Context, name, job string) error {
	failed := 0
	for {
		select {
		case <-ctx.Done():
			return fmt.Errorf("job %s continues (hint: pcn sweep waits for it when you run it "+
				"again; scancel %s ends it): %w", job, job, ctx.Err())
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

// showFinished reports cells whose folder exists to Progress. It only serves the progress bar:
// Unfinished checks the folders when the job has ended.
func (r *Runner) showFinished() {
	entries, err := os.ReadDir(r.store.dir)
	if err != nil {
		return
	}
	exists := make(map[string]bool, len(entries))
	for _, e := range entries {
		exists[e.Name()] = true
	}
	for _, c := range r.cells {
		if exists[c.ID] {
			r.o.Progress(c.ID, 1)
		}
	}
}

// findJob returns the number of the user's queued or running job of this name; "" if there is none.
func findJob(ctx context.Context, name string) (string, error) {
	text, err := slurm(ctx, "", "squeue", "--noheader", "--me", "--name", name, "--format", "%F")
	if err != nil {
		return "", err
	}
	job, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return job, nil
}

// slurm runs a command of Slurm and returns its output.
func slurm(ctx context.Context, stdin, command string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(stdin), &stdout, &stderr
	err := cmd.Run()
	if errors.Is(err, exec.ErrNotFound) {
		return "", fmt.Errorf("%s is not installed: run pcn sweep on a machine of a Slurm "+
			"cluster, or without --on slurm", command)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w: %s", command, err, strings.TrimSpace(stderr.String()))
	}
	return stdout.String(), nil
}
