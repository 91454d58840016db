// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
)

// Warnings returns what the files of the experiment have that may not be meant: the run goes on.
func (e *Experiment) Warnings() []string {
	all := slices.Clone(e.warnings)
	for _, c := range e.Cases {
		if v := e.variants[c.Name]; v != nil {
			all = append(all, v.warnings...)
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (e *Experiment) warn(format string, args ...any) {
	e.warnings = append(e.warnings, fmt.Sprintf(format, args...))
}
