// SPDX-License-Identifier: Apache-2.0

package experiment

import (
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Gives reports whether the experiment's file has a key of its first level.
func (e *Experiment) Gives(key string) bool {
	return e.origin.root != nil && valueOf(e.origin.root, key) != nil
}

// LineOf returns the line of a key in the experiment's file, by its path, such as switch.pfc.xoff
// or flows.0.size. A key that the file leaves out has the line of what it would be in.
func (e *Experiment) LineOf(path string) int {
	at := e.origin.root
	if at == nil {
		return 0
	}
	line := at.Line
	for key := range strings.SplitSeq(path, ".") {
		next := valueOf(at, key)
		if i, err := strconv.Atoi(key); err == nil && at.Kind == yaml.SequenceNode &&
			i >= 0 && i < len(at.Content) {
			next = behindAliases(at.Content[i])
		}
		if next == nil {
			return line
		}
		at, line = next, next.Line
	}
	return line
}
