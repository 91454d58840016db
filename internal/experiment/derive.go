// SPDX-License-Identifier: Apache-2.0

package experiment

// derive sets what follows from the file: flows, parameters and the dilation. It fails for values
// out of range that only show then.
//
// The order matters: parameters depend on the line rates of hosts that have flows, and the dilation
// on the parameters and all flows.
func (d *decoder) derive(e *Experiment) {
	d.addCollectives(e)
	for i := range e.Flows {
		e.Flows[i].limitTo(e.HostRate(e.Flows[i].From))
	}
	d.addTrace(e)
	if len(e.Workload) > 0 {
		e.given = len(e.Flows)
	}
	d.makeFlows(e)
	d.uniqueObjects(e)
	d.validateAfter(e)
	d.addWaits(e)
	if n := len(e.Flows); n > e.Engine.MaxFlows() {
		msg, hint := e.tooManyFlows(n)
		d.fail("flows", msg, hint)
	}
	d.chooseReference(e)
	d.resolveParameters(e)
	d.chooseDilation(e)
}

// rederive sets again what depends on the seed.
func (d *decoder) rederive(e *Experiment) {
	d.makeFlows(e)
	d.addWaits(e)
	d.chooseDilation(e)
}
