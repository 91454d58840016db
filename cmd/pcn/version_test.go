// SPDX-License-Identifier: Apache-2.0

package main

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
)

func TestVersion(t *testing.T) {
	root := newRoot()
	var out strings.Builder
	root.SetOut(&out)
	root.SetArgs([]string{"--version"})
	qt.Assert(t, qt.IsNil(root.Execute()))
	guest := ""
	if hash, err := launch.GuestSHA256(); err == nil {
		guest = ", guest " + hash[:12]
	}
	qt.Check(t, qt.Equals(out.String(), "pcn devel"+guest+"\n"))
}
