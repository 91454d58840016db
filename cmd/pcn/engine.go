// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/pflag"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/launch"
)

// engineFlags choose what runs an experiment.
type engineFlags struct {
	name             string // empty: the experiment's
	kernel           string // empty: the newest in the cache
	native, realTime bool
}

// add adds the flag that names the engine.
func (e *engineFlags) add(f *pflag.FlagSet) {
	f.StringVar(&e.name, "engine", "",
		"what runs it: kernel (Linux, in microVMs), sim (a simulated ideal network) or "+
			"fluid (the algorithms' theory, without packets) (default: the experiment's)")
	f.StringVar(&e.kernel, "kernel", "",
		"kernel of microVMs: a version in the cache, such as 7.3, or the path of an image "+
			"(default: the newest in the cache)")
}

// open returns the engine that the flags ask for; byDefault is the experiment's.
func (e engineFlags) open(byDefault experiment.Engine) (launch.Engine, error) {
	engine := byDefault
	if strings.Contains(e.name, ",") {
		return nil, usageError{fmt.Errorf("invalid --engine %q: name one engine, and run it again "+
			"for the other", e.name)}
	}
	if e.name != "" {
		var err error
		if engine, err = experiment.ParseEngine(e.name); err != nil {
			return nil, usageError{fmt.Errorf("--engine: %w", err)}
		}
	}
	switch {
	case engine != experiment.EngineKernel && (e.native || e.realTime || e.kernel != ""):
		return nil, usageError{errors.New("--native, --real-time and --kernel are for a kernel: " +
			"remove them, or run with --engine kernel")}
	case engine == experiment.EngineSim:
		return launch.NewSimulator(), nil
	case engine == experiment.EngineFluid:
		return launch.NewFluid(), nil
	case e.native && e.kernel != "":
		return nil, usageError{errors.New("--native and --kernel: choose one")}
	case e.native:
		return launch.NewNative()
	}
	return launch.NewMicroVMs(e.kernel, e.realTime)
}
