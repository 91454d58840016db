// SPDX-License-Identifier: Apache-2.0

package experiments

import (
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Each experiment says what it costs.
func TestCostsOfAllExperiments(t *testing.T) {
	for _, name := range Names() {
		e, err := Load(name)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsTrue(e.Cost.Packets > 0), qt.Commentf("%s", name))
	}
}

func TestCost(t *testing.T) {
	e, err := Load("hol")
	qt.Assert(t, qt.IsNil(err))
	all := Cost(e, experiment.EngineKernel, true, 5)
	qt.Check(t, qt.Equals(all.Round(time.Second), 286*time.Second))
	onUML := Cost(e, experiment.EngineKernel, false, 5)
	qt.Check(t, qt.Equals(onUML.Round(time.Second), 31*time.Second))
	simulated := Cost(e, experiment.EngineSim, false, 5)
	qt.Check(t, qt.Equals(simulated.Round(time.Second), 3*time.Second))
	qt.Check(t, qt.Equals(Cost(e, experiment.EngineFluid, false, 5), 0))
	// half as long, but the microVMs boot as long as ever
	half := (e.Warmup+e.Duration)/2 - e.Warmup
	short, err := e.With(experiment.Changes{Duration: &half})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(Cost(short, experiment.EngineKernel, true, 5).Round(time.Second),
		((all+5*qemu.boot)/2+500*time.Millisecond).Round(time.Second)))
	clos, err := Load("clos-full")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(Cost(clos, experiment.EngineKernel, true, 1).Round(time.Second),
		237*time.Second)) // it took 236 s
	// a file of one's own: 2 hosts at 40 Gbit/s send 10000 frames a ms
	e.Name, e.Cost = "mine", experiment.Cost{}
	e.Frame, e.Warmup, e.Duration = 1000, 0, experiment.Millisecond
	qt.Check(t, qt.Equals(Cost(e, experiment.EngineSim, false, 1), 20*time.Millisecond))
	e.Trace.File = "flows.csv" // any of 18 hosts may send
	qt.Check(t, qt.Equals(Cost(e, experiment.EngineSim, false, 1), 180*time.Millisecond))
}
