// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
)

// Again returns the job that a run was, from its manifest and its experiment file. The dilation is
// that of the run, also if it was chosen.
func Again(run *result.Run) (job.Job, error) {
	m := &run.Manifest
	e, err := experiment.Parse("experiment of run "+m.Label(), run.Experiment)
	if err != nil {
		return job.Job{}, err
	}
	if e, err = e.Case(m.Case); err != nil {
		return job.Job{}, err
	}
	duration := experiment.Duration(m.DurationNs)
	e, err = e.With(experiment.Changes{
		Seed: &m.Seed, Duration: &duration, Dilation: &m.DilationShift, Schemes: []string{m.Scheme},
	})
	if err != nil {
		return job.Job{}, fmt.Errorf("repeat run %s: %w", m.Label(), err)
	}
	return job.Job{Experiment: e, Scheme: m.Scheme}, nil
}
