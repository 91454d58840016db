// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"context"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"
	"github.com/vishvananda/netlink"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/host/doctor"
	"github.com/pcn-linux/pcn/internal/nstest"
	"github.com/pcn-linux/pcn/loader/ns"
)

// checkOf returns a check by its name.
func checkOf(t *testing.T, found []doctor.Check, name string) doctor.Check {
	t.Helper()
	i := slices.IndexFunc(found, func(c doctor.Check) bool { return c.Name == name })
	qt.Assert(t, qt.IsTrue(i >= 0), qt.Commentf("no check %q in %+v", name, found))
	return found[i]
}

func diagnose(t *testing.T, c *host.Config) []doctor.Check {
	t.Helper()
	found := doctor.Run(context.Background(), host.New(), c)
	for _, one := range found {
		qt.Check(t, qt.Equals(one.Level == doctor.OK, one.Want == ""), qt.Commentf("%+v", one))
	}
	return found
}

// setTCPECN writes net.ipv4.tcp_ecn until the test ends.
func setTCPECN(t *testing.T, value string) {
	t.Helper()
	const file = "/proc/sys/net/ipv4/tcp_ecn"
	old, err := os.ReadFile(file)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { os.WriteFile(file, old, 0) })
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(value), 0)))
}

func TestDoctor(t *testing.T) {
	here, peer := wire(t)
	bpffs := filepath.Dir(host.DefaultRoot)
	t.Cleanup(func() { os.Chmod(bpffs, 0o777) })
	qt.Assert(t, qt.IsNil(os.Chmod(bpffs, 0o777))) // as where it was mounted without a mode
	qt.Check(t, qt.Matches(checkOf(t, diagnose(t, nil), "BPF file system").Is,
		".* has mode 0777.*"))
	qt.Assert(t, qt.IsNil(os.Chmod(bpffs, 0o700)))
	found := diagnose(t, nil)
	for _, name := range []string{"kernel types", "congestion controls in BPF",
		"registrations that can be pinned", "tc programs that can be pinned", "wred", "rights",
		"BPF file system"} {
		qt.Check(t, qt.Equals(checkOf(t, found, name).Level, doctor.OK), qt.Commentf("%s", name))
	}
	qt.Check(t, qt.Equals(checkOf(t, found, "components").Is, "nothing runs"))

	up(t, points)
	setTCPECN(t, "1")
	found = diagnose(t, parse(t, points))
	qt.Check(t, qt.IsFalse(doctor.Failed(found)), qt.Commentf("%+v", found))
	for _, name := range []string{"control_pcn", "stamp", "syn", "net.ipv4.tcp_ecn", "veth0 MTU",
		"veth0 qdisc", "veth0 offloads"} {
		qt.Check(t, qt.Equals(checkOf(t, found, name).Level, doctor.OK), qt.Commentf("%s", name))
	}
	for _, name := range []string{"np", "rp"} {
		qt.Check(t, qt.Equals(checkOf(t, found, name).Level, doctor.Warn))
	}

	// A flow that has no ECN, since it chose its control late, and a namespace that asks for none.
	setTCPECN(t, "2")
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), "net.ipv4.tcp_ecn").Level, doctor.Warn))
	advice, err := parse(t, points).Advice()
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.HasLen(advice, 2))
	qt.Check(t, qt.StringContains(advice[0], "sysctl -w net.ipv4.tcp_ecn=1"))
	qt.Check(t, qt.StringContains(advice[1], "sysctl -w net.ipv4.tcp_ecn_fallback=0"))
	const fallback = "net.ipv4.tcp_ecn_fallback"
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), fallback).Level, doctor.Warn))
	nstest.Sysctl(t, here.NS, "tcp_ecn_fallback", "0")
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), fallback).Level, doctor.OK))
	nstest.Sysctl(t, here.NS, "tcp_ecn_fallback", "1")
	late := connect(t, peer, "")
	qt.Assert(t, qt.IsNil(setControl(late.Conn, "pcn")))
	late.flows(t)
	qt.Check(t, qt.StringContains(checkOf(t, diagnose(t, nil), "flows").Is, "1 of 1 have no ECN"))
	s := statusOf(t)
	qt.Assert(t, qt.HasLen(s.Notes, 2))
	qt.Check(t, qt.StringContains(s.Notes[0], "1 of 1 flows of pcn have no ECN, and so TCP's"))
	qt.Check(t, qt.StringContains(s.Notes[1], "net.ipv4.tcp_ecn is 2"))
	late.Close()

	// What is broken fails: an interface that is not there, small, down; a removed control.
	missing := strings.ReplaceAll(points, "veth0", "eth7")
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, parse(t, missing)), "eth7").Level, doctor.Fail))
	nl := nstest.Netlink(t, here.NS)
	qt.Assert(t, qt.IsNil(nl.LinkSetMTU(here.Link, 1000)))
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), "veth0 MTU").Level, doctor.Warn))
	qt.Assert(t, qt.IsNil(nl.LinkSetDown(here.Link)))
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), "veth0 link").Level, doctor.Fail))
	named(t, "blue")
	chooseIn(t, "blue", "pcn")
	qt.Check(t, qt.Equals(checkOf(t, diagnose(t, nil), "network namespace blue").Level, doctor.OK))
	qt.Assert(t, qt.IsNil(nl.LinkDel(here.Link)))
	found = diagnose(t, nil)
	qt.Check(t, qt.Equals(checkOf(t, found, "stamp").Level, doctor.Fail))
	downIn(t, "")
	found = diagnose(t, nil)
	qt.Check(t, qt.Equals(checkOf(t, found, "network namespace blue").Level, doctor.Fail))
	qt.Check(t, qt.IsTrue(doctor.Failed(found)))
	chooseIn(t, "blue", "reno")
}

// doctorAt listens for doctors at the peer.
func doctorAt(t *testing.T, peer nstest.End) string {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	address, done := make(chan net.Addr, 1), make(chan error, 1)
	go func() {
		done <- ns.Do(peer.NS, func() error {
			return doctor.Listen(ctx, netip.AddrPortFrom(peer.Addr, 0).String(),
				func(a net.Addr) { address <- a })
		})
	}()
	t.Cleanup(func() {
		cancel()
		qt.Check(t, qt.IsNil(<-done))
	})
	select {
	case a := <-address:
		return a.String()
	case err := <-done:
		t.Fatal(err)
		return ""
	}
}

// bleach clears the ECN field of IPv4 packets that come to an interface, as some devices do.
func bleach(t *testing.T, e nstest.End, protocol uint8) {
	t.Helper()
	const tosAt, protocolAt, checksumAt = 15, 23, 24
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SchedCLS, License: "GPL", Instructions: asm.Instructions{
			asm.Mov.Reg(asm.R6, asm.R1),
			asm.LoadAbs(protocolAt, asm.Byte),
			asm.JNE.Imm(asm.R0, int32(protocol), "next"),
			asm.LoadAbs(tosAt-1, asm.Half),
			asm.Mov.Reg(asm.R7, asm.R0), // in host order
			asm.Mov.Reg(asm.R8, asm.R0),
			asm.And.Imm(asm.R8, 0xfffc),
			asm.HostTo(asm.BE, asm.R7, asm.Half),
			asm.HostTo(asm.BE, asm.R8, asm.Half),
			asm.StoreMem(asm.RFP, -8, asm.R8, asm.Half),
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, checksumAt),
			asm.Mov.Reg(asm.R3, asm.R7), asm.Mov.Reg(asm.R4, asm.R8), asm.Mov.Imm(asm.R5, 2),
			asm.FnL3CsumReplace.Call(),
			asm.Mov.Reg(asm.R1, asm.R6), asm.Mov.Imm(asm.R2, tosAt-1),
			asm.Mov.Reg(asm.R3, asm.RFP), asm.Add.Imm(asm.R3, -8),
			asm.Mov.Imm(asm.R4, 2), asm.Mov.Imm(asm.R5, 0),
			asm.FnSkbStoreBytes.Call(),
			asm.Mov.Imm(asm.R0, -1).WithSymbol("next"),
			asm.Return(),
		},
	})
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { p.Close() })
	nstest.Do(t, e.NS, func() error {
		l, err := link.AttachTCX(link.TCXOptions{Interface: e.Index(), Program: p,
			Attach: ebpf.AttachTCXIngress, Anchor: link.Head()})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
}

// The path to a peer is whole with its notification point, and each thing that lacks is told.
func TestProbePeer(t *testing.T) {
	_, peer := wire(t)
	probe := func(address string) []doctor.Check {
		t.Helper()
		return doctor.ProbePeer(context.Background(), host.New(),
			doctor.PeerOptions{Address: address})
	}
	address := doctorAt(t, peer)
	found := probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "path keeps ECN").Level, doctor.OK),
		qt.Commentf("%+v", found))
	qt.Check(t, qt.Equals(checkOf(t, found, "peer's ECN").Level, doctor.Warn)) // nothing runs

	upIn(t, "", `
line_rate: 1Gbps
rtt: 1ms
controls: {pcn: {}}
rp: {interfaces: [veth0]}
`)
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "peer").Level, doctor.OK))
	qt.Check(t, qt.Equals(checkOf(t, found, "peer's ECN").Level, doctor.OK))
	qt.Check(t, qt.Equals(checkOf(t, found, "marks come back").Level, doctor.OK),
		qt.Commentf("%+v", found))
	qt.Check(t, qt.Equals(checkOf(t, found, "CNPs").Is, "none came"))

	// The peer is a host of its own, with an NP, in this machine.
	c := parse(t, "np: {interfaces: [veth0], T: 1ms}\n")
	np := func(do func(*host.Host) ([]host.Change, error)) {
		t.Helper()
		nstest.Do(t, peer.NS, func() error {
			_, err := do(host.New())
			return err
		})
	}
	np(func(h *host.Host) ([]host.Change, error) { return h.Up(context.Background(), c) })
	defer np(func(h *host.Host) ([]host.Change, error) { return h.Down(context.Background()) })
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "CNPs").Level, doctor.OK), qt.Commentf("%+v", found))
	qt.Check(t, qt.IsFalse(doctor.Failed(found)))

	// Any service will do; it sees the same marks.
	found = probe(echo(t, peer).Addr().String())
	qt.Check(t, qt.Equals(checkOf(t, found, "path keeps ECN").Level, doctor.Warn))
	qt.Check(t, qt.Equals(checkOf(t, found, "CNPs").Level, doctor.OK), qt.Commentf("%+v", found))
	found = probe(netip.AddrPortFrom(peer.Addr, 1).String())
	qt.Check(t, qt.Equals(checkOf(t, found, "peer").Level, doctor.Fail))

	// CNPs that RP refuses are told with the reason.
	upIn(t, "", `
line_rate: 1Gbps
rtt: 1ms
controls: {pcn: {}}
rp: {interfaces: [veth0], prefixes: [192.0.2.0/24]}
`)
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "CNPs").Level, doctor.Warn))
	qt.Check(t, qt.Matches(checkOf(t, found, "CNPs").Is, "none came; RP refused [0-9]+: prefix"))

	// A device that clears ECN: of UDP first, then of all.
	const tcp, udp = 6, 17
	bleach(t, peer, udp)
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "path keeps ECN").Is, "CE is Not-ECT on the way "+
		"there, ECT(0) is Not-ECT on the way there, ECT(1) is Not-ECT on the way there"))
	qt.Check(t, qt.Equals(checkOf(t, found, "marks come back").Level, doctor.OK))
	bleach(t, peer, tcp)
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "marks come back").Level, doctor.Fail),
		qt.Commentf("%+v", found))

	nstest.Sysctl(t, peer.NS, "tcp_ecn", "0")
	found = probe(address)
	qt.Check(t, qt.Equals(checkOf(t, found, "peer's ECN").Level, doctor.Fail),
		qt.Commentf("%+v", found))
}

// Two listeners do not answer each other's answers for ever.
func TestAnswersAreNotAnswered(t *testing.T) {
	_, peer := wire(t)
	udp, err := net.Dial("udp", doctorAt(t, peer))
	qt.Assert(t, qt.IsNil(err))
	defer udp.Close()
	exchange := func(b []byte) ([]byte, error) {
		_, err := udp.Write(b)
		qt.Assert(t, qt.IsNil(err))
		const soon = 200 * time.Millisecond
		qt.Assert(t, qt.IsNil(udp.SetReadDeadline(time.Now().Add(soon))))
		b = make([]byte, 100)
		n, err := udp.Read(b)
		return b[:n], err
	}
	answer, err := exchange([]byte("pcnp\x01\x00\x00\x07"))
	qt.Assert(t, qt.IsNil(err))
	_, err = exchange(answer)
	qt.Check(t, qt.ErrorIs(err, os.ErrDeadlineExceeded))
}

// Under load, a path that marks is told from one that drops.
func TestProbeMarking(t *testing.T) {
	here, peer := wire(t)
	const base = "line_rate: 1Gbps\nrtt: 1ms\ncontrols: {ldcp: {}}\necn: {interfaces: [veth0]}\n"
	address := doctorAt(t, peer)
	nl := nstest.Netlink(t, here.NS)
	root := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: here.Index(), Parent: netlink.HANDLE_ROOT, Handle: netlink.MakeHandle(1, 0),
	})
	root.Defcls = 1
	qt.Assert(t, qt.IsNil(nl.QdiscReplace(root)))
	qt.Assert(t, qt.IsNil(nl.ClassReplace(netlink.NewHtbClass(
		netlink.ClassAttrs{
			LinkIndex: here.Index(), Parent: netlink.MakeHandle(1, 0),
			Handle: netlink.MakeHandle(1, 1),
		},
		netlink.HtbClassAttrs{Rate: 20e6, Buffer: 3000, Cbuffer: 3000},
	))))
	probe := func() doctor.Check {
		t.Helper()
		found := doctor.ProbePeer(context.Background(), host.New(),
			doctor.PeerOptions{Address: address, Load: 500 * time.Millisecond})
		return checkOf(t, found, "path marks")
	}
	up(t, base+"wred: {interfaces: [veth0], kmin: 10KB, k: 0}\n")
	qt.Check(t, qt.Equals(probe().Level, doctor.OK))
	dropper := nstest.NewDropper(t, peer)
	up(t, base)
	dropper.DropEvery(t, 50)
	check := probe()
	qt.Check(t, qt.Equals(check.Level, doctor.Fail), qt.Commentf("%+v", check))
	dropper.DropEvery(t, 0)
}

// The self-test sees marks, CNPs and a fair share, leaves nothing, and does not touch what runs.
// Here only its parts are judged: the microVM emulates its CPU, too slow for shares.
func TestSelfTest(t *testing.T) {
	wire(t)
	up(t, light)
	before := pinnedFiles(t)
	namespaces := linkIDs(t)
	found := doctor.SelfTest(context.Background(), 3*time.Second)
	for _, name := range []string{"loads", "marks", "CNPs sent", "CNPs heard", "removed"} {
		qt.Check(t, qt.Equals(checkOf(t, found, name).Level, doctor.OK), qt.Commentf("%+v", found))
	}
	qt.Check(t, qt.DeepEquals(pinnedFiles(t), before))
	nstest.Eventually(t, "its links are gone", func() bool {
		return len(linkIDs(t)) == len(namespaces)
	})

	// Interrupted, it leaves nothing too.
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	found = doctor.SelfTest(ctx, time.Hour)
	qt.Check(t, qt.Equals(checkOf(t, found, "self-test").Level, doctor.Fail))
	qt.Check(t, qt.Equals(checkOf(t, found, "removed").Level, doctor.OK))

	// Killed, all goes with the process.
	p := childProcess(childSelfTest)
	qt.Assert(t, qt.IsNil(p.Start()))
	isThere := func() bool { return available(t, "pcn_selftest") }
	nstest.Eventually(t, "the control is there", isThere)
	qt.Assert(t, qt.IsNil(p.Process.Kill()))
	_ = p.Wait() // it was killed
	nstest.Eventually(t, "the control is gone", func() bool { return !isThere() })
	nstest.Eventually(t, "its links are gone", func() bool {
		return len(linkIDs(t)) == len(namespaces)
	})
	qt.Check(t, qt.DeepEquals(pinnedFiles(t), before))
}

// childSelfTest makes a child run the self-test.
const childSelfTest = "selftest"
