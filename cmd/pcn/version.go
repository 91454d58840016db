// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/pcn-linux/pcn/netns-lab/launch"

// commit is what the program was built from, with "-dirty" behind it if there were changes that
// were not committed. The Makefile sets it; it is empty in other builds.
var commit string

// version returns the program's name and version, with the commit if the build told it.
func version() string {
	if commit == "" {
		return launch.Tool
	}
	return launch.Tool + ", commit " + commit
}
