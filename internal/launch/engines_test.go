// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// likeKernel stands for the kernel: it simulates, and says that a kernel did.
type likeKernel struct{ *Simulator }

func (k likeKernel) Run(
	ctx context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	r, err := k.Simulator.Run(ctx, j, cpu, progress)
	if err == nil {
		r.Manifest.Engine = ""
		r.Ports[0].PauseSent++ // so that something differs
	}
	return r, err
}

// Several engines leave their files side by side, and one report that compares them; so does a
// report of their folder.
func TestRunEngines(t *testing.T) {
	e := parse(t, simulated)
	out := filepath.Join(t.TempDir(), "out")
	runs, err := RunEngines(t.Context(), Options{Experiment: e, Out: out}, []Named{
		{experiment.EngineKernel, likeKernel{NewSimulator()}},
		{experiment.EngineSim, NewSimulator()},
		{experiment.EngineFluid, NewFluid()},
	})
	qt.Assert(t, qt.IsNil(err))
	var labels []string
	for _, r := range runs {
		labels = append(labels, r.Manifest.Label()+" "+string(r.Manifest.RanOn()))
		_, err := result.Read(filepath.Join(out, string(r.Manifest.RanOn()), r.Manifest.Label()))
		qt.Check(t, qt.IsNil(err))
	}
	want := []string{
		"dcqcn kernel", "dcqcn sim", "dcqcn fluid", "pcn kernel", "pcn sim", "pcn fluid",
	}
	qt.Check(t, qt.DeepEquals(labels, want))
	page, err := os.ReadFile(filepath.Join(out, ReportFile))
	qt.Assert(t, qt.IsNil(err))
	for _, text := range []string{"Comparison of engines", "DCQCN, kernel", "dotted: sim",
		"dashed: fluid"} {
		qt.Check(t, qt.IsTrue(strings.Contains(string(page), text)), qt.Commentf("%s", text))
	}

	groups, err := ReadRuns([]string{out})
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(groups, 1))
	again := filepath.Join(t.TempDir(), ReportFile)
	qt.Assert(t, qt.IsNil(WriteReport(again, groups)))
	other, err := os.ReadFile(again)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(bytes.Equal(other, page)), qt.Commentf("the reports differ"))
}

// What only the simulator has is refused by other engines before one runs.
func TestOnlyTheSimulator(t *testing.T) {
	e := parse(t, simulated+"transport: {recovery: go-back-n}\n")
	out := filepath.Join(t.TempDir(), "out")
	want := "engine kernel has no transport.recovery: run it with `--engine sim`, or remove it.*"
	_, err := RunEngines(t.Context(), Options{Experiment: e, Out: out}, []Named{
		{experiment.EngineSim, NewSimulator()},
		{experiment.EngineKernel, likeKernel{NewSimulator()}},
	})
	qt.Check(t, qt.ErrorMatches(err, want))
	_, err = os.Stat(out)
	qt.Check(t, qt.IsTrue(os.IsNotExist(err)))
	_, err = (&MicroVMs{}).Run(t.Context(), job.Job{Experiment: e, Scheme: "pcn"}, noCPU, nil)
	qt.Check(t, qt.ErrorMatches(err, want))
	_, err = NewFluid().Run(t.Context(), job.Job{Experiment: e, Scheme: "pcn"}, noCPU, nil)
	qt.Check(t, qt.ErrorMatches(err, ".*engine fluid has no transport.recovery.*"))
}
