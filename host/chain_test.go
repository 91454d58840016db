// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/internal/nstest"
)

// stranger attaches a program of somebody else that lets packets pass, so that no program behind it
// sees them (TCX_PASS, as Cilium's).
func stranger(t *testing.T, device int, where ebpf.AttachType, anchor link.Anchor) ebpf.ProgramID {
	t.Helper()
	const pass = 0
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, pass), asm.Return()},
	})
	qt.Assert(t, qt.IsNil(err))
	l, err := link.AttachTCX(link.TCXOptions{Interface: device, Program: program, Attach: where,
		Anchor: anchor})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { l.Close(); program.Close() })
	info, err := program.Info()
	qt.Assert(t, qt.IsNil(err))
	id, ok := info.ID()
	qt.Assert(t, qt.IsTrue(ok))
	return id
}

// placeOf returns where in a chain a program is, and how long the chain is.
func placeOf(t *testing.T, device int, where ebpf.AttachType, id ebpf.ProgramID) (at, n int) {
	t.Helper()
	found, err := link.QueryPrograms(link.QueryOptions{Target: device, Attach: where})
	qt.Assert(t, qt.IsNil(err))
	for i, p := range found.Programs {
		if p.ID == id {
			return i, len(found.Programs)
		}
	}
	t.Fatalf("program %d is not there", id)
	return
}

// What up attaches runs before programs of others, whoever came first, and status says so if one
// comes before it later.
func TestStrangersAreBehind(t *testing.T) {
	here, _ := wire(t)
	const text = points + "wred: {interfaces: [veth0], kmin: 30KB}\n"
	egress := ebpf.AttachTCXEgress
	first := stranger(t, here.Index(), egress, link.Head())
	up(t, text)
	at, n := placeOf(t, here.Index(), egress, first)
	qt.Check(t, qt.Equals(at, 3)) // behind syn, stamp and wred
	qt.Check(t, qt.Equals(n, 4))
	qt.Check(t, qt.IsTrue(statusOf(t).OK()))
	qt.Check(t, qt.Equals(up(t, text)["syn"], host.Kept))

	late := stranger(t, here.Index(), egress, link.Head())
	s := statusOf(t)
	qt.Check(t, qt.IsFalse(s.OK()))
	for _, c := range s.Components[1:] {
		qt.Assert(t, qt.HasLen(c.Problems, 1), qt.Commentf("%s", c.Name))
		qt.Check(t, qt.StringContains(c.Problems[0], "programs of others run before it"))
	}
	changes := up(t, text)
	qt.Check(t, qt.Equals(changes["syn"], host.Changed))
	qt.Check(t, qt.Equals(changes["wred"], host.Changed))
	at, _ = placeOf(t, here.Index(), egress, late)
	qt.Check(t, qt.Equals(at, 3))
	qt.Check(t, qt.IsTrue(statusOf(t).OK()))
}

// An interface that was moved to another network namespace is not the one that has its index here.
func TestMovedInterface(t *testing.T) {
	here, _ := wire(t)
	up(t, points)
	far := nstest.New(t)
	nl := nstest.Netlink(t, here.NS)
	qt.Assert(t, qt.IsNil(nl.LinkSetNsFd(here.Link, int(far))))
	t.Cleanup(func() {
		moved := nstest.Netlink(t, far)
		l, err := moved.LinkByName("veth0")
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.IsNil(moved.LinkDel(l)))
	})
	fake := &netlink.Veth{PeerName: "fake1",
		LinkAttrs: netlink.LinkAttrs{Name: "fake", Index: here.Index()}}
	qt.Assert(t, qt.IsNil(nl.LinkAdd(fake)))
	t.Cleanup(func() { nl.LinkDel(fake) })

	for _, c := range statusOf(t).Components[1:] {
		qt.Assert(t, qt.HasLen(c.Problems, 1), qt.Commentf("%s", c.Name))
		qt.Check(t, qt.StringContains(c.Problems[0],
			"interface veth0 is in another network namespace now"))
	}
	up(t, strings.ReplaceAll(points, "veth0", "fake"))
	s := statusOf(t)
	qt.Check(t, qt.IsTrue(s.OK()))
	qt.Check(t, qt.DeepEquals(s.Components[1].Where, []string{"fake"}))
	found, err := link.QueryPrograms(link.QueryOptions{Target: here.Index(),
		Attach: ebpf.AttachTCXEgress})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.HasLen(found.Programs, 2)) // syn and stamp
}
