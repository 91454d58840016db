// SPDX-License-Identifier: Apache-2.0

package experiment

import "fmt"

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

// ParseEngine returns the engine of a name.
func ParseEngine(name string) (Engine, error) {
	for _, e := range Engines() {
		if string(e) == name {
			return e, nil
		}
	}
	return "", fmt.Errorf("unknown engine %q: want one of %v", name, Engines())
}

func (d *decoder) validateEngine(e *Experiment) {
	d.checkKnown("engine", "engine", string(e.Engine), toStrings(Engines()))
}
