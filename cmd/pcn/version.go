// SPDX-License-Identifier: Apache-2.0

package main

import "github.com/pcn-linux/pcn/netns-lab/launch"

// commit is what the program was built from, with "-dirty" behind it if there were changes that
// were not committed. The Makefile sets it; it is empty in other builds.
var commit string

// version returns the program's name and version, with the commit if the build told it, and the
// hash of the microVM's program if it is built in: manifests have it as guest_sha256.
func version() string {
	text := launch.Tool
	if commit != "" {
		text += ", commit " + commit
	}
	if hash, err := launch.GuestSHA256(); err == nil {
		text += ", guest " + hash[:12]
	}
	return text
}
