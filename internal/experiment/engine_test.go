// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestParseEngines(t *testing.T) {
	engines, err := ParseEngines("sim,kernel")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.DeepEquals(engines, []Engine{EngineSim, EngineKernel}))
	for names, want := range map[string]string{
		"sim,ns3": `unknown engine "ns3".*`,
		"sim,":    `unknown engine "".*`,
		"sim,sim": `engine "sim" is there twice: name each once`,
	} {
		_, err := ParseEngines(names)
		qt.Check(t, qt.ErrorMatches(err, want))
	}
}
