// SPDX-License-Identifier: Apache-2.0

// Package version says which version of the program this is, and from which commit it was built.
package version

import "runtime/debug"

// scripts/build.sh sets these with the linker. They are empty in other builds.
var number, commit string

// commitDigits is how much of a commit's hash is shown.
const commitDigits = 12

// Number returns the version, such as 1.2.0, or 1.2.0+unreleased for what came after it. Without
// scripts/build.sh it is the one that go build found: a module's version, or devel.
func Number() string {
	if number != "" {
		return number
	}
	info, ok := debug.ReadBuildInfo()
	return numberOf(info, ok)
}

func numberOf(info *debug.BuildInfo, ok bool) string {
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "devel"
	}
	return info.Main.Version[1:] // without the v
}

// Commit returns what the program was built from, with -dirty behind it if there were changes that
// were not committed. It is empty if the build did not know.
func Commit() string {
	if number != "" {
		return commit
	}
	info, ok := debug.ReadBuildInfo()
	return commitOf(info, ok)
}

func commitOf(info *debug.BuildInfo, ok bool) string {
	if !ok {
		return ""
	}
	var hash, dirty string
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			hash = s.Value[:min(commitDigits, len(s.Value))]
		case s.Key == "vcs.modified" && s.Value == "true":
			dirty = "-dirty"
		}
	}
	if hash == "" {
		return ""
	}
	return hash + dirty
}
