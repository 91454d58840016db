// SPDX-License-Identifier: Apache-2.0

package scheme

import "slices"

// kernelControls are congestion controls that come with Linux.
var kernelControls = []string{
	"reno", "cubic", "bbr", "dctcp", "vegas", "westwood", "htcp", "illinois", "bic",
	"highspeed", "hybla", "scalable", "lp", "veno", "yeah", "nv", "cdg",
}

// kernelMarking is the section whose marking switches have for the kernel's own controls: DCTCP's
// threshold.
const kernelMarking = "dctcp"

// KernelControls returns the congestion controls of Linux that a scheme can be, by their names
// there.
func KernelControls() []string { return slices.Clone(kernelControls) }

// IsKernelControl reports whether a name is that of a congestion control of Linux.
func IsKernelControl(name string) bool { return slices.Contains(kernelControls, name) }

// Kernel returns the scheme of a control of the kernel's own, behind switches that mark by RED.
func Kernel(name string) Scheme {
	return Scheme{
		Name: name, Control: name, Sender: SenderWindow, MarkingSection: kernelMarking,
		Title: "Linux's own " + name, Source: "net/ipv4",
	}
}
