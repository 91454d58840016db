// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// Engine is what runs an experiment.
type Engine string

// The engines.
const (
	EngineKernel Engine = "kernel" // Linux, in a microVM or on this machine
	EngineSim    Engine = "sim"    // a simulation of an ideal network
	EngineFluid  Engine = "fluid"  // the algorithms' theory, without packets
)

// Engines returns all engines.
func Engines() []Engine { return []Engine{EngineKernel, EngineSim, EngineFluid} }

// parseEngine returns the engine of a name.
func parseEngine(name string) (Engine, error) {
	if e := Engine(name); slices.Contains(Engines(), e) {
		return e, nil
	}
	return "", fmt.Errorf("unknown engine %q: want one of %v", name, Engines())
}

// ParseEngines returns the engines of names with commas between them, such as kernel,sim.
func ParseEngines(names string) ([]Engine, error) {
	var engines []Engine
	for name := range strings.SplitSeq(names, ",") {
		e, err := parseEngine(name)
		if err != nil {
			return nil, err
		}
		if slices.Contains(engines, e) {
			return nil, fmt.Errorf("engine %q is there twice: name each once", name)
		}
		engines = append(engines, e)
	}
	return engines, nil
}
