// SPDX-License-Identifier: Apache-2.0

package main

import (
	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/version"
)

// versionText returns the program's name and version, with the commit if the build knew it, and the
// hash of the microVM's program if it is built in: manifests have it as guest_sha256.
func versionText() string {
	text := launch.Tool()
	if commit := version.Commit(); commit != "" {
		text += ", commit " + commit
	}
	if hash, err := launch.GuestSHA256(); err == nil {
		text += ", guest " + hash[:12]
	}
	return text
}
