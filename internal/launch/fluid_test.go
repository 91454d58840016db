// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/job"
)

// The fluid models leave the same files as other engines, and what is measured of them is the same.
func TestFluid(t *testing.T) {
	e := parse(t, simulated)
	leavesFiles(t, e, NewFluid(), "fluid")
	_, err := NewFluid().Fingerprint(job.Job{Experiment: e, Scheme: "pcn"})
	qt.Check(t, qt.IsNil(err))
}
