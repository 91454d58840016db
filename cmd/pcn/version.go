// SPDX-License-Identifier: Apache-2.0

package main

import (
	"runtime/debug"

	"github.com/pcn-linux/pcn/netns-lab/launch"
)

// version returns the program's name and version, with the commit that it was built from if the
// build recorded one. Changes that were not committed make it "dirty".
func version() string {
	text := launch.Tool
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return text
	}
	settings := map[string]string{}
	for _, s := range info.Settings {
		settings[s.Key] = s.Value
	}
	if commit := settings["vcs.revision"]; commit != "" {
		text += ", commit " + commit[:min(len(commit), 12)]
		if settings["vcs.modified"] == "true" {
			text += " (dirty)"
		}
	}
	return text
}
