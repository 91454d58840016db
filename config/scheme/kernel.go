// SPDX-License-Identifier: Apache-2.0

package scheme

import "slices"

// kernelControls are congestion controls that come with Linux.
var kernelControls = []string{
	"reno", "cubic", "bbr", "dctcp", "vegas", "westwood", "htcp", "illinois", "bic",
	"highspeed", "hybla", "scalable", "lp", "veno", "yeah", "nv", "cdg",
}

// kernelMarking is the section with the marking threshold for the kernel's own controls.
const kernelMarking = "dctcp"

// KernelControls returns the names of the congestion controls of Linux that can be schemes.
func KernelControls() []string { return slices.Clone(kernelControls) }

// IsKernelControl reports whether a congestion control of Linux has this name.
func IsKernelControl(name string) bool { return slices.Contains(kernelControls, name) }

// Kernel returns the scheme of one of Linux's controls, with switches that mark by RED.
func Kernel(name string) Scheme {
	return Scheme{
		Name: name, Control: name, Sender: SenderWindow, MarkingSection: kernelMarking,
		Title: "Linux's own " + name, Source: "net/ipv4",
	}
}
