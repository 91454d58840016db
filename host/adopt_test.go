// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/internal/vm/vmtest"
)

// Connections that fit all conditions get the control, in this namespace only, and have their own
// back afterwards: each the one that it had.
func TestAdopt(t *testing.T) {
	vmtest.NeedsDebian(t) // its iterators over sockets
	_, peer := wire(t)
	up(t, "line_rate: 1Gbps\ncontrols: {pcn: {}}\n")
	h := host.New()
	cubic, reno := connectWith(t, peer, "cubic"), connectWith(t, peer, "reno")
	local := cubic.LocalAddr().(*net.TCPAddr).AddrPort()
	check := func(wantCubic, wantReno string) {
		t.Helper()
		qt.Check(t, qt.Equals(controlOf(t, cubic.Conn), wantCubic))
		qt.Check(t, qt.Equals(controlOf(t, reno.Conn), wantReno))
	}
	adopt := func(a host.Adoption, want uint32) {
		t.Helper()
		a.Control = "pcn"
		done, err := h.Adopt(t.Context(), a)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(done, host.Adopted{Changed: want}))
	}
	back := func(want uint32) {
		t.Helper()
		done, err := h.GiveBack(t.Context())
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(done, host.Adopted{Changed: want}))
		check("cubic", "reno")
	}
	back(0)

	adopt(host.Adoption{Ports: []uint16{1, local.Port()}}, 1)
	check("pcn", "reno")
	adopt(host.Adoption{}, 1) // the other; one that has it is left alone
	check("pcn", "pcn")
	back(2)
	adopt(host.Adoption{Addresses: []netip.Prefix{netip.MustParsePrefix("10.7.0.2/32")},
		Ports: []uint16{1}}, 0)
	adopt(host.Adoption{Addresses: []netip.Prefix{netip.MustParsePrefix("10.7.0.0/24")}}, 2)
	back(2)
	adopt(host.Adoption{Addresses: []netip.Prefix{netip.MustParsePrefix("10.8.0.0/24")}}, 0)

	// the flow has its entry, and works
	adopt(host.Adoption{}, 2)
	cubic.flows(t)
	flows, err := h.Flows()
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(flows, 2))
	changes, err := h.Down(t.Context())
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(changes[len(changes)-1],
		host.Change{Component: "2 connections", What: host.GivenBack}))
	check("cubic", "reno")
	cubic.flows(t)
	_, err = h.Adopt(t.Context(), host.Adoption{Control: "pcn"})
	qt.Check(t, qt.ErrorMatches(err, "adopt: .*pcn.*"))
}

// Connections of a cgroup are those whose sockets its processes made.
func TestAdoptCgroup(t *testing.T) {
	vmtest.NeedsDebian(t)
	_, peer := wire(t)
	up(t, "line_rate: 1Gbps\ncontrols: {pcn: {}}\n")
	group, inner := cgroups(t)
	outside := connectWith(t, peer, "cubic")
	enter(t, inner)
	inside := connectWith(t, peer, "cubic")
	h := host.New()
	done, err := h.Adopt(t.Context(), host.Adoption{Control: "pcn", Cgroup: group})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(done.Changed, 1))
	qt.Check(t, qt.Equals(controlOf(t, inside.Conn), "pcn"))
	qt.Check(t, qt.Equals(controlOf(t, outside.Conn), "cubic"))
	_, err = h.Adopt(t.Context(), host.Adoption{Control: "pcn", Cgroup: "/proc"})
	qt.Check(t, qt.ErrorMatches(err, "adopt: cgroup /proc is no cgroup of version 2: .*"))
}

// cgroups makes a cgroup and one in it, which this process leaves when the test ends.
func cgroups(t *testing.T) (group, inner string) {
	t.Helper()
	const root = "/sys/fs/cgroup"
	group = filepath.Join(root, "pcn_adopt")
	inner = filepath.Join(group, "inner")
	qt.Assert(t, qt.IsNil(os.MkdirAll(inner, 0o755)))
	t.Cleanup(func() {
		enter(t, root)
		nstest.Eventually(t, "the cgroups go",
			func() bool { os.Remove(inner); return os.Remove(group) == nil })
	})
	return group, inner
}

func enter(t *testing.T, cgroup string) {
	t.Helper()
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(cgroup, "cgroup.procs"), []byte("0"), 0)))
}
