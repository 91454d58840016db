// SPDX-License-Identifier: Apache-2.0

// Package lazy makes what few commands need when it is first needed, not at the start of each.
package lazy

import (
	"regexp"
	"sync"
)

// Regexp returns a function that returns the expression. It compiles it at its first call: those of
// all packages took a tenth of the start of a program.
func Regexp(text string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(text) })
}
