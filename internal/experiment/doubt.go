// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"fmt"
	"slices"
	"strings"
)

// One mistake gets one message. A mistake where names are declared makes every use of them look
// wrong, so that uses are checked only if the declarations are right.

// doubtTopology has no host, port or tier reported as unknown if the topology has a mistake.
func (d *decoder) doubtTopology() {
	wrong := !d.has("topology")
	for path := range d.Nodes {
		isValue := strings.HasSuffix(path, "rate") || strings.HasSuffix(path, "delay")
		wrong = wrong || isWithin(path, "topology") && !isValue && d.FailedAt(path)
	}
	for _, what := range []string{"host", "port", "link", "tier of the topology"} {
		d.unsure[what] = wrong
	}
}

// doubtSchemes has no scheme reported as not of this file if the list of schemes has a mistake.
func (d *decoder) doubtSchemes(e *Experiment) {
	wrong := len(e.Schemes) == 0
	for i := range e.Schemes {
		wrong = wrong || d.FailedAt(fmt.Sprintf("schemes[%d]", i))
	}
	d.unsure["scheme of this file"], d.unsure["scheme of the experiment"] = wrong, wrong
}

// doubtFlows has no flow reported as unknown if a name or a count of flows has a mistake.
func (d *decoder) doubtFlows(e *Experiment) {
	wrong := d.FailedAt("flows")
	for i := range e.FlowGroups {
		group := fmt.Sprintf("flows[%d]", i)
		wrong = wrong || slices.ContainsFunc([]string{group, group + ".name", group + ".count"},
			d.FailedAt)
	}
	d.unsure["flow"] = wrong
}

// knowsTime reports whether the time that the run covers is right.
func (d *decoder) knowsTime(e *Experiment) bool {
	return e.Duration > 0 && !d.FailedAt("duration") && !d.FailedAt("warmup")
}

// isWithin reports whether path is whole, or a part of it.
func isWithin(path, whole string) bool {
	rest, ok := strings.CutPrefix(path, whole)
	return ok && (rest == "" || rest[0] == '.' || rest[0] == '[')
}
