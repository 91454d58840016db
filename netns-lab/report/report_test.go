// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/netns-lab/experiment"
	"pcn/netns-lab/experiments"
	"pcn/netns-lab/result"
	"pcn/netns-lab/result/resulttest"
)

func load(t *testing.T) *experiment.Experiment {
	t.Helper()
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	return e
}

func fig2(e *experiment.Experiment) []*result.Run {
	return []*result.Run{resulttest.Fig2(e, "pfc"), resulttest.Fig2(e, "pcn")}
}

func render(t *testing.T, e *experiment.Experiment, runs []*result.Run) string {
	t.Helper()
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(Write(&buf, e, runs)))
	return buf.String()
}
