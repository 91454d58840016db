// SPDX-License-Identifier: Apache-2.0

package experiment

import "slices"

// schemes are our own congestion controls.
var schemes = []string{"pfc", "pcn", "dcqcn", "timely", "qcn", "pcn_dctcp", "ldcp", "ibcc", "dcqcn+tcd", "timely+tcd", "ibcc+tcd"}

// kernelControls are congestion controls that come with Linux.
var kernelControls = []string{
	"reno", "cubic", "bbr", "dctcp", "vegas", "westwood", "htcp", "illinois", "bic",
	"highspeed", "hybla", "scalable", "lp", "veno", "yeah", "nv", "cdg",
}

// Schemes returns our own congestion controls: pfc is none end to end, and
// pcn_dctcp is our DCTCP.
func Schemes() []string {
	return slices.Clone(schemes)
}

// KernelControls returns the congestion controls of Linux that a scheme can be, by their names there.
func KernelControls() []string {
	return slices.Clone(kernelControls)
}

// IsKernelControl reports whether a scheme is a congestion control of Linux.
func IsKernelControl(name string) bool {
	return slices.Contains(kernelControls, name)
}

// Marking is RED on the instantaneous queue of an egress port: a packet that finds
// up to KMin is not marked, one that finds more is marked with a probability that
// grows from 0 to PMax at KMax, and one that finds more than KMax is always marked.
type Marking struct {
	// KMin is the queue below which nothing is marked. In bytes, 0 to KMax.
	KMin Bytes `yaml:"kmin"`
	// KMax is the queue above which everything is marked. In bytes, to 1GB.
	KMax Bytes `yaml:"kmax"`
	// PMax is the probability at KMax. Above 0, at most 1.
	PMax Ratio `yaml:"pmax"`
}

// MarkingOf returns how switches mark under a scheme; false if they do not mark by
// RED: pcn and ibcc have markings of their own, NP-ECN and FECN, and pfc, timely
// and qcn need none. With TCD it is what a congested port marks CE by, and
// timely+tcd has that of dcqcn.
func (e *Experiment) MarkingOf(scheme string) (Marking, bool) {
	var own Marking
	tcd, scheme := HasTCD(scheme), BaseScheme(scheme)
	switch {
	case scheme == "dcqcn" || tcd && scheme == "timely":
		own = e.DCQCN.Marking
	case scheme == "pcn_dctcp" || IsKernelControl(scheme):
		own = e.DCTCP.Marking
	case scheme == "ldcp":
		own = e.LDCP.Marking
	default:
		return Marking{}, false
	}
	if e.Marking != nil {
		return *e.Marking, true
	}
	return own, true
}
