// SPDX-License-Identifier: Apache-2.0

package main

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/launch"
)

func TestTracesPackets(t *testing.T) {
	sim := []launch.Named{{Name: experiment.EngineSim}}
	both := append(sim, launch.Named{Name: experiment.EngineKernel})
	for _, c := range []struct {
		trace   string
		engines []launch.Named
		seeds   experiment.Seeds
		yes     bool
		err     string
	}{
		{"", both, nil, false, ""},
		{"packets", sim, nil, true, ""},
		{"packet", sim, nil, false, `invalid --trace "packet": want packets`},
		{"packets", both, nil, false, "engine kernel traces no packets: run with --engine sim"},
		{"packets", sim, experiment.Seeds{1, 2}, false, "--trace traces one seed.*"},
	} {
		yes, err := tracesPackets(c.trace, c.engines, c.seeds)
		qt.Check(t, qt.Equals(yes, c.yes))
		if c.err == "" {
			qt.Check(t, qt.IsNil(err))
		} else {
			qt.Check(t, qt.ErrorMatches(err, c.err))
		}
	}
}
