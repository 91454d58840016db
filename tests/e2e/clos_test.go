// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"net"
	"os"
	"regexp"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
)

// TestFullClos: the paper's Clos, 568 nodes and 768 links, comes up and goes down in time, in the microVM by the clock
// and on this kernel, where nothing of it is left.
func TestFullClos(t *testing.T) {
	for _, mode := range [][]string{nil, {"--native"}} {
		before := namespacesAndDevices(t)
		stdout, stderr, code := run(t, append([]string{"topo", "clos-full", "--up"}, mode...)...)
		t.Logf("%s", stdout)
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
		qt.Check(t, qt.Matches(stdout, `(?s).*nodes +568, 512 of them hosts\nlinks +768, 1536 ports\n.*`))
		qt.Check(t, qt.IsTrue(duration(t, stdout, "up") < time.Minute))
		qt.Check(t, qt.IsTrue(duration(t, stdout, "down") < 20*time.Second))
		qt.Check(t, qt.DeepEquals(namespacesAndDevices(t), before))
	}
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
