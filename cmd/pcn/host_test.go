// SPDX-License-Identifier: Apache-2.0

//go:build linux

package main

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// A control of one's own is read from its file.
func TestHostControlFromFile(t *testing.T) {
	const objects = "../../config/scheme/objects/"
	for _, c := range []struct{ control, want string }{
		{objects + "pcn.o", "--control: there is a scheme pcn already: choose another name"},
		{objects + "nothing.o", ".*nothing.o: no such file or directory"},
		{"pnc", `--control: unknown congestion control "pnc" \(hint: did you mean "pcn"\?\)`},
	} {
		f := hostFlags{controls: []string{c.control}}
		_, err := f.load(t.Context())
		qt.Check(t, qt.ErrorMatches(err, c.want))
	}
	f := hostFlags{controls: []string{"pcn", "pcn"}, lineRate: "1Gbps"}
	c, err := f.load(t.Context())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(c.Controls.Has("pcn")))
}
