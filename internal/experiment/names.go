// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
)

// IsFile reports whether what a command names is a file, and not what comes with the program: it
// ends in .yaml or .yml.
func IsFile(name string) bool {
	ext := filepath.Ext(name)
	return ext == ".yaml" || ext == ".yml"
}

// IsPath is IsFile, for names that may also be a path with another ending.
func IsPath(name string) bool {
	return strings.ContainsRune(name, filepath.Separator) || IsFile(name)
}

// NamesIn returns the names of the YAML files in a folder, in alphabetical order.
func NamesIn(files fs.FS) []string {
	names, _ := fs.Glob(files, "*.yaml") // the pattern is well-formed: it can't fail
	for i := range names {
		names[i] = strings.TrimSuffix(names[i], ".yaml")
	}
	slices.Sort(names) // Glob's order is that of names with .yaml: hol-engines before hol
	return names
}
