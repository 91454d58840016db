// SPDX-License-Identifier: Apache-2.0

// Package job describes one run, and passes it from the host to the microVM.
package job

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// Job is one run: a scheme in a case of an experiment.
type Job struct {
	Experiment *experiment.Experiment // of the case
	Scheme     string
	PacketsIn  string // folder for a trace of all packets, which only the simulator makes; or empty
	Checkpoint string // file of the run's checkpoints, which only the simulator has; or empty
}

// Label names the run, and its folder.
func (j Job) Label() string { return result.LabelOf(j.Experiment.CaseName, j.Scheme) }

// Task is what to do with a job in the microVM.
type Task string

// The guest's tasks.
const (
	Run       Task = "guest"       // run the scheme, and leave a result folder
	UpAndDown Task = "up-and-down" // build and remove the network, and leave ScaleFile
	Shells    Task = "shell"       // run the commands of a Shell
)

// Files and words that host and guest have agreed on.
const (
	ExperimentFile = "/experiment.yaml" // the host puts the experiment here
	ScaleFile      = "scale.json"       // in the guest's result folder
	// ProgressPrefix begins a line of the console that says how far the run is: "progress 3 19" if
	// 3 of 19 ns are done.
	ProgressPrefix = "progress "
)

// Step is where UpAndDown is. It is a line of the guest's console.
type Step string

// The steps, in their order.
const (
	Building Step = "building"
	Built    Step = "built"
	Removed  Step = "removed"
)

// Stopwatch takes the times of steps.
type Stopwatch struct{ at map[Step]time.Time }

// Tell notes that a step is reached now.
func (w *Stopwatch) Tell(s Step) {
	if w.at == nil {
		w.at = map[Step]time.Time{}
	}
	w.at[s] = time.Now()
}

// Fill writes the times into a scale.
func (w *Stopwatch) Fill(s *Scale) {
	s.Up = w.at[Built].Sub(w.at[Building])
	s.Down = w.at[Removed].Sub(w.at[Built])
}

// Scale is what the network of a run costs, as ScaleFile has it.
type Scale struct {
	Nodes, Links int
	Up, Down     time.Duration
	MemoryBytes  int64 // of the whole machine, not of one process alone
	WithoutQdisc bool  // the kernel lacks CONFIG_NET_SCH_BPF
}

// Args are the guest program's arguments. They carry what may differ from the experiment file.
func (j Job) Args(task Task) []string {
	e := j.Experiment
	return []string{
		string(task), e.CaseName, j.Scheme,
		strconv.FormatUint(e.Seed, 10),
		strconv.FormatInt(int64(e.Duration), 10),
		strconv.FormatUint(uint64(e.Dilation.Shift), 10),
	}
}

// Parse reads what [Job.Args] wrote. The file is the experiment's.
func Parse(file string, args []string) (Task, Job, error) {
	if len(args) != 6 {
		return "", Job{}, fmt.Errorf("guest called with %d arguments, %q: want 6", len(args), args)
	}
	task := Task(args[0])
	if task != Run && task != UpAndDown && task != Shells {
		return "", Job{}, fmt.Errorf("guest called with task %q: want %q, %q or %q",
			task, Run, UpAndDown, Shells)
	}
	seed, err1 := strconv.ParseUint(args[3], 10, 64)
	durationNs, err2 := strconv.ParseInt(args[4], 10, 64)
	dilation, err3 := strconv.ParseUint(args[5], 10, 32)
	if err := errors.Join(err1, err2, err3); err != nil {
		return "", Job{}, fmt.Errorf("guest called with %q: %w", args, err)
	}
	e, err := experiment.LoadWith(file, experiment.Options{Idle: task == Shells})
	if err != nil {
		return "", Job{}, err
	}
	if e, err = e.Case(args[1]); err != nil {
		return "", Job{}, err
	}
	duration, shift := experiment.Duration(durationNs), uint(dilation)
	e, err = e.With(experiment.Changes{
		Seed: &seed, Duration: &duration, Dilation: &shift, Schemes: []string{args[2]},
	})
	return task, Job{Experiment: e, Scheme: args[2]}, err
}
