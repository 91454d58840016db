// SPDX-License-Identifier: Apache-2.0

package experiment

// derive sets what follows from the file: parameters, flows and the dilation. It fails for values
// out of range that only show then.
//
// The order matters: a parameter that depends on the number of flows counts those of groups and
// bursts, and the dilation is chosen by the parameters and all flows.
func (d *decoder) derive(e *Experiment) {
	d.resolveParameters(e)
	d.addTrace(e)
	if len(e.Workload) > 0 {
		e.given = len(e.Flows)
	}
	d.makeFlows(e)
	d.uniqueObjects(e)
	if n := len(e.Flows); n > e.Engine.MaxFlows() {
		msg, hint := e.tooManyFlows(n)
		d.fail("flows", msg, hint)
	}
	d.chooseDilation(e)
}

// rederive sets again what depends on the seed.
func (d *decoder) rederive(e *Experiment) {
	d.makeFlows(e)
	d.chooseDilation(e)
}
