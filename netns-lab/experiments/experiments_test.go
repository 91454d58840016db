// SPDX-License-Identifier: Apache-2.0

package experiments_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

func TestEveryExperimentParses(t *testing.T) {
	names := experiments.Names()
	qt.Assert(t, qt.SliceContains(names, "hol"))
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			e, err := experiments.Load(name)
			qt.Assert(t, qt.IsNil(err))
			qt.Assert(t, qt.Equals(e.Name, name))
			qt.Check(t, qt.Not(qt.Equals(e.About, "")), qt.Commentf("reports begin with it"))
		})
	}
}

// The numbers that PCN states in sections 2.2, 4 and 7, and no others: the lab tunes the rest.
func TestHeadOfLineIsThePapers(t *testing.T) {
	for _, name := range []string{"hol", "hol-shared-buffer"} {
		t.Run(name, func(t *testing.T) {
			e, err := experiments.Load(name)
			qt.Assert(t, qt.IsNil(err))

			qt.Assert(t, qt.Equals(e.Topology.Rate, 40e9))
			qt.Assert(t, qt.Equals(e.Topology.Delay, 5*experiment.Microsecond))
			pcn := e.Section("pcn")
			qt.Assert(t, qt.Equals(pcn.Get("T").String(), "50us"))
			qt.Assert(t, qt.Equals(pcn.Get("w_max").Number, 0.5))
			qt.Assert(t, qt.Equals(pcn.Get("congested_share").Number, 0.95))
			// Section 6.2 recommends w_min = 0.1/N; two flows share a bottleneck.
			qt.Assert(t, qt.IsTrue(pcn.Get("w_min").Number <= 0.1/2))

			burst := e.Bursts[0]
			bytes := experiment.Bytes(len(burst.From)*burst.Flows) * burst.Size
			qt.Assert(t, qt.Equals(bytes.String(), "14.336MB"))

			// Long enough to see F1 come back as in Fig. 2(b), about 10 ms after a burst of 3.1 ms,
			// and hold.
			qt.Assert(t, qt.IsTrue(e.Duration >= 13600*experiment.Microsecond))
		})
	}
}

func TestStaticThresholdIsThePapers(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(e.Switch.PFC.Dynamic))
	qt.Assert(t, qt.Equals(e.Switch.PFC.XOFF, 512_000)) // section 7
}

func TestSharedBufferHasDynamicThresholds(t *testing.T) {
	static, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	dynamic, err := experiments.Load("hol-shared-buffer")
	qt.Assert(t, qt.IsNil(err))

	qt.Assert(t, qt.IsNotNil(dynamic.Switch.PFC.Dynamic))
	// S0's dynamic threshold is higher than 512 KB: its hosts are paused later
	qt.Assert(t, qt.Equals(dynamic.Expect[0].Min.String(), "2.2ms"))
	qt.Assert(t, qt.DeepEquals(dynamic.Expect[1:], static.Expect[1:]))
	qt.Assert(t, qt.DeepEquals(dynamic.Flows, static.Flows))
	qt.Assert(t, qt.DeepEquals(dynamic.Bursts, static.Bursts))
}

func TestLoadUnknownNameListsTheKnown(t *testing.T) {
	_, err := experiments.Load("hole")
	qt.Assert(t, qt.ErrorMatches(err,
		`no experiment is named "hole" \(hint: did you mean "hol"\?, or the path of .*\)`))
}

func TestLoadPath(t *testing.T) {
	hol, err := os.ReadFile("hol.yaml")
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), "mine.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, hol, 0o644)))

	e, err := experiments.Load(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.Equals(e.Name, "hol"))

	_, err = experiments.Load("missing.yaml")
	qt.Assert(t, qt.ErrorIs(err, os.ErrNotExist))
}
