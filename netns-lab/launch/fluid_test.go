// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/job"
	"github.com/pcn-linux/pcn/netns-lab/result"
)

// The fluid models leave the same files as other engines, and what is measured of them is the same.
func TestFluid(t *testing.T) {
	e := parse(t, simulated)
	out := filepath.Join(t.TempDir(), "out")
	runs, err := Run(t.Context(), Options{Experiment: e, Engine: NewFluid(), Out: out})
	qt.Assert(t, qt.IsNil(err))
	for _, r := range runs {
		again, err := result.Read(filepath.Join(out, r.Manifest.Label()))
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(again.Manifest.Engine, "fluid"))
		for _, o := range result.Evaluate(e, again) {
			qt.Check(t, qt.IsTrue(o.Pass), qt.Commentf("%s: %s", o.Scheme, o.Value()))
		}
	}
	_, err = NewFluid().Fingerprint(job.Job{Experiment: e, Scheme: "pcn"})
	qt.Check(t, qt.IsNil(err))
}
