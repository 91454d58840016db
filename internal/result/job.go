// SPDX-License-Identifier: Apache-2.0

package result

import "github.com/pcn-linux/pcn/internal/experiment"

// jobTime returns the time from the first start of the flows to the last arrival.
func (r *Run) jobTime(m experiment.Measure, _ Interval) (float64, error) {
	wanted := make(map[string]bool)
	for _, name := range m.Flows {
		wanted[name] = true
	}
	firstNs, lastNs := r.Manifest.DurationNs, int64(0)
	missing := false
	for _, f := range r.Flows {
		if !wanted[f.Name] {
			continue
		}
		firstNs = min(firstNs, f.StartNs)
		if f.EndNs == nil {
			missing = true
			continue
		}
		lastNs = max(lastNs, *f.EndNs)
	}
	if missing || lastNs > r.Manifest.DurationNs {
		return 0, &notReachedError{observedNs: r.Manifest.DurationNs - firstNs}
	}
	return float64(lastNs - firstNs), nil
}
