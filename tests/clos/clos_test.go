// SPDX-License-Identifier: Apache-2.0

// Package clos tests the largest network that is shipped.
package clos

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/tests/program"
)

// TestFullClos: the paper's Clos, 568 nodes and 768 links, comes up and goes down in time, on this
// kernel, where nothing of it is left, and in the microVM by the clock. There a minute is the bound
// of the one and 20 seconds that of the other, or on a slower or busier machine, where the same
// takes longer natively, as many times that.
func TestFullClos(t *testing.T) {
	pcn := filepath.Join(t.TempDir(), "pcn")
	qt.Assert(t, qt.IsNil(program.Build(pcn, nil)))
	const (
		slowerThan       = 3 * time.Second // natively
		mostUp, mostDown = time.Minute, 20 * time.Second
		attempts         = 5 // a machine whose CPUs are taken away for a while is slower then
	)
	slowness, inTime := 1., false
	for i := 0; i < attempts && !inTime; i++ {
		var nativeUp, nativeDown time.Duration
		t.Run("native", func(t *testing.T) {
			nstest.Turn(t)
			before := namespacesAndDevices(t)
			nativeUp, nativeDown = upAndDown(t, pcn, "--native")
			qt.Check(t, qt.DeepEquals(namespacesAndDevices(t), before))
		})
		if t.Failed() {
			return
		}
		slowness = max(slowness, nativeUp.Seconds()/slowerThan.Seconds())
		up, down := upAndDown(t, pcn)
		inTime = up.Seconds() < slowness*mostUp.Seconds() &&
			max(down, nativeDown).Seconds() < slowness*mostDown.Seconds()
	}
	qt.Check(t, qt.IsTrue(inTime), qt.Commentf("%g times slower than another machine", slowness))
}

func upAndDown(t *testing.T, pcn string, flags ...string) (up, down time.Duration) {
	t.Helper()
	args := append([]string{"topo", "clos-full", "--up"}, flags...)
	stdout, stderr, code := program.Run(t, pcn, args...)
	t.Logf("%s", stdout)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.Matches(stdout,
		`(?s).*nodes +568, 512 of them hosts\nlinks +768, 1536 ports\n.*`))
	return duration(t, stdout, "up"), duration(t, stdout, "down")
}

// duration reads a row of pcn topo --up.
func duration(t *testing.T, stdout, row string) time.Duration {
	t.Helper()
	found := regexp.MustCompile(`(?m)^` + row + ` +([0-9a-zµ.]+),`).FindStringSubmatch(stdout)
	qt.Assert(t, qt.HasLen(found, 2), qt.Commentf("%s", stdout))
	d, err := time.ParseDuration(found[1])
	qt.Assert(t, qt.IsNil(err))
	return d
}

func namespacesAndDevices(t *testing.T) []string {
	t.Helper()
	names := []string{}
	entries, err := os.ReadDir("/run/netns")
	if !os.IsNotExist(err) {
		qt.Assert(t, qt.IsNil(err))
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	devices, err := net.Interfaces()
	qt.Assert(t, qt.IsNil(err))
	for _, d := range devices {
		names = append(names, d.Name)
	}
	return names
}
