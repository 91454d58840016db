// SPDX-License-Identifier: Apache-2.0

package suites

import (
	"fmt"
	"os"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
)

// The suite that comes with the program can be run, and is as large as its page says.
func TestTCP(t *testing.T) {
	qt.Check(t, qt.DeepEquals(Names(), []string{"tcp"}))
	s, err := Load("tcp")
	qt.Assert(t, qt.IsNil(err))
	runs := 0
	for _, e := range s.Experiments {
		jobs, err := launch.Jobs(e)
		qt.Assert(t, qt.IsNil(err))
		runs += len(jobs)
	}
	page, err := os.ReadFile("../../docs/own-kernel.md")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.StringContains(string(page), fmt.Sprintf("# once: %d runs, 8 seeds", runs)))

	fromFolder, err := Load("./tcp")
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(fromFolder.Experiments, len(s.Experiments)))
	_, err = Load("none")
	qt.Check(t, qt.ErrorMatches(err, `no suite is named "none": want one of tcp, or a folder.*`))
	_, err = Load(t.TempDir())
	qt.Check(t, qt.ErrorIs(err, errEmpty))
}
