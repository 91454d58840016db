// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
)

func TestSweepArguments(t *testing.T) {
	for _, c := range []struct {
		args []string
		want int
	}{
		{[]string{"sweep"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--engine", "pbs"}, exitUsage},
		{[]string{"sweep", "hol-burst", "--pack", "-1"}, exitUsage},
		{[]string{"sweep", "no-such-sweep"}, exitError},
		{[]string{"sweep", "hol-burst", "--cells", filepath.Join(t.TempDir(), "none"), "--pack", "1"}, exitError},
	} {
		qt.Check(t, qt.Equals(run(context.Background(), c.args), c.want), qt.Commentf("%q", c.args))
	}
}

// A dry run lists every run and leaves nothing.
func TestSweepDryRun(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	root := newRoot()
	var text bytes.Buffer
	root.SetOut(&text)
	root.SetArgs([]string{"sweep", "hol-burst", "--dry-run", "--out", out})
	qt.Assert(t, qt.IsNil(root.Execute()))
	qt.Check(t, qt.StringContains(text.String(), "12 runs, 12 to do"))
	left, err := filepath.Glob(out)
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(left, 0))
}
