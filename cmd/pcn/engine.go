// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"slices"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/netns-lab/native"
)

// engineFlags choose what runs an experiment.
type engineFlags struct {
	name             string // empty: the experiment's
	kernel           string // empty: the tested one, or else the newest in the cache
	native, realTime bool
	threads          uint          // of a simulated run; 0: chosen by runs
	checkpoint       time.Duration // how often simulated runs are saved; 0: never
	runs             int           // that share the CPUs; 0: many
}

// add adds the flag that names the engine.
func (e *engineFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.name, "engine", "",
		"what runs it: kernel (Linux, in microVMs), sim (a simulated ideal network) or "+
			"fluid (the algorithms' theory, without packets); pcn run takes several, such as "+
			"kernel,sim (default: the experiment's)")
	f.StringVar(&e.kernel, "kernel", "",
		"kernel of microVMs: a version in the cache, such as 7.3, or the path of an image "+
			"(default: the tested one, or else the newest in the cache)")
}

// open returns the engine that the flags ask for; byDefault is the experiment's.
func (e engineFlags) open(byDefault experiment.Engine) (launch.Engine, error) {
	engines, err := e.openAll(byDefault)
	if err != nil {
		return nil, err
	}
	if len(engines) > 1 {
		return nil, usageError{fmt.Errorf("invalid --engine %q: name one engine; only pcn run "+
			"without seeds takes several", e.name)}
	}
	return engines[0].Engine, nil
}

// openAll returns all engines that the flags ask for.
func (e engineFlags) openAll(byDefault experiment.Engine) ([]launch.Named, error) {
	names := []experiment.Engine{byDefault}
	if e.name != "" {
		var err error
		if names, err = experiment.ParseEngines(e.name); err != nil {
			return nil, usageError{fmt.Errorf("--engine: %w", err)}
		}
	}
	var engines []launch.Named
	for _, name := range names {
		flags := e
		if slices.Contains(names, experiment.EngineKernel) && name != experiment.EngineKernel {
			flags.native, flags.realTime, flags.kernel = false, false, "" // are for the kernel
		}
		engine, err := flags.openOne(name)
		if err != nil {
			return nil, err
		}
		engines = append(engines, launch.Named{Name: name, Engine: engine})
	}
	return engines, nil
}

// sayUndivided says once for each reason why a run uses one thread only.
func sayUndivided() func(why string) {
	var said sync.Map
	return func(why string) {
		if _, again := said.LoadOrStore(why, true); !again {
			fmt.Fprintf(os.Stderr, "pcn: one thread in place of --threads: %s\n", why)
		}
	}
}

// mostThreads is how many threads a run has at most if the user does not say: with more, what
// they tell each other costs as much as they save (pcn docs performance).
const mostThreads = 8

// freeThreads returns how many threads each run may have on so many CPUs.
func (e engineFlags) freeThreads(cpus int) int {
	if e.runs == 0 {
		return 1
	}
	return max(1, min(cpus/e.runs, mostThreads))
}

// setCheckpoints has a simulator save its runs, and say so if it goes on with one.
func (e engineFlags) setCheckpoints(s *launch.Simulator) {
	s.CheckpointEvery = e.checkpoint
	s.Resumed = func(run string, at experiment.Duration) {
		fmt.Fprintf(os.Stderr, "pcn: %s goes on at %s\n", run, at)
	}
	s.NoCheckpoint = func(err error) {
		fmt.Fprintf(os.Stderr, "pcn: warning: %v\n", err)
	}
}

// openOne returns the engine of a name.
func (e engineFlags) openOne(engine experiment.Engine) (launch.Engine, error) {
	switch {
	case engine != experiment.EngineKernel && (e.native || e.realTime || e.kernel != ""):
		return nil, usageError{errors.New("--native, --real-time and --kernel are for a kernel: " +
			"remove them, or run with --engine kernel")}
	case engine != experiment.EngineSim && e.threads != 0:
		return nil, usageError{fmt.Errorf("--threads is for simulated runs, not for engine %s: "+
			"remove it, or run with --engine sim", engine)}
	case engine != experiment.EngineSim && e.checkpoint != 0:
		return nil, usageError{fmt.Errorf("--checkpoint is for simulated runs, not for engine %s: "+
			"remove it, or run with --engine sim", engine)}
	case engine == experiment.EngineSim:
		s := launch.NewSimulator()
		e.setCheckpoints(s)
		s.Threads, s.Undivided = int(e.threads), sayUndivided()
		if e.threads == 0 {
			s.Threads, s.IfBusy, s.Undivided = e.freeThreads(runtime.GOMAXPROCS(0)), true, nil
		}
		return s, nil
	case engine == experiment.EngineFluid:
		return launch.NewFluid(), nil
	case e.native && e.kernel != "":
		return nil, usageError{errors.New("--native and --kernel: choose one")}
	case e.native:
		return native.New()
	}
	return launch.NewMicroVMs(e.kernel, e.realTime)
}
