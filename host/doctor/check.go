// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"fmt"
	"slices"
)

// Level says how a check went.
type Level string

// Levels of a check.
const (
	OK   Level = "ok"
	Warn Level = "warn" // it works, but worse, or could not be looked at
	Fail Level = "fail" // it does not work
)

// Check is one finding of [Run].
type Check struct {
	Name  string `json:"name"`  // what is looked at
	Level Level  `json:"level"` // ok, warn or fail
	// Is says what was found, Want what would be right, and Do how to get there. The latter two are
	// empty if it is ok.
	Is   string `json:"is"`
	Want string `json:"want,omitempty"` // what it should be; left out if it is
	Do   string `json:"do,omitempty"`   // what to do; left out if nothing
}

// Failed reports whether one of the checks failed.
func Failed(checks []Check) bool {
	return slices.ContainsFunc(checks, func(c Check) bool { return c.Level == Fail })
}

// checks collects findings.
type checks struct{ all []Check }

func (c *checks) ok(name, format string, args ...any) {
	c.all = append(c.all, Check{Name: name, Level: OK, Is: fmt.Sprintf(format, args...)})
}

func (c *checks) bad(level Level, name, is, want, do string) {
	c.all = append(c.all, Check{Name: name, Level: level, Is: is, Want: want, Do: do})
}
