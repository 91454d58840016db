// SPDX-License-Identifier: Apache-2.0

package nstest

import (
	"errors"
	"math"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
	"github.com/vishvananda/netns"
	"golang.org/x/sys/unix"

	"github.com/pcn-linux/pcn/loader"
)

// Offsets in struct __sk_buff, and verdicts of tc programs.
const (
	skbLen  = 0
	skbCB   = 48
	tcxNext = -1
	tcxDrop = 2
)

// Marker sets CE in ECN-capable packets. It is the first program at a device's ingress.
type Marker struct{ state *ebpf.Map }

// NewMarker attaches a marker that marks nothing yet.
func NewMarker(t testing.TB, e End) *Marker {
	t.Helper()
	state := newState(t, 1)
	attachIngress(t, e.NS, e.Index(), asm.Instructions{
		asm.LoadMapValue(asm.R2, state.FD(), 0),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "next"),
		asm.FnSkbEcnSetCe.Call(),
		asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
		asm.Return(),
	})
	return &Marker{state}
}

// Mark turns marking on or off.
func (m *Marker) Mark(t testing.TB, on bool) {
	t.Helper()
	put(t, m.state, flag(on))
}

func flag(on bool) uint64 {
	if on {
		return 1
	}
	return 0
}

// Dropper drops data packets. It is the first program at a device's ingress.
type Dropper struct{ state *ebpf.Map }

// dataLen is the length in bytes from which on a frame carries data.
const dataLen = 200

// NewDropper attaches a dropper that drops nothing yet.
func NewDropper(t testing.TB, e End) *Dropper {
	t.Helper()
	const every, seen, dropped, most = 0, 8, 16, 24 // in the state
	state := newState(t, 4)
	count := func(what int16) asm.Instructions {
		return asm.Instructions{
			asm.LoadMem(asm.R4, asm.R3, what, asm.DWord),
			asm.Add.Imm(asm.R4, 1),
			asm.StoreMem(asm.R3, what, asm.R4, asm.DWord),
		}
	}
	insns := asm.Instructions{
		asm.LoadMem(asm.R2, asm.R1, skbLen, asm.Word),
		asm.JLT.Imm(asm.R2, dataLen, "next"),
		asm.LoadMapValue(asm.R3, state.FD(), 0),
		asm.LoadMem(asm.R2, asm.R3, every, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "next"),
		asm.LoadMem(asm.R4, asm.R3, dropped, asm.DWord),
		asm.LoadMem(asm.R5, asm.R3, most, asm.DWord),
		asm.JGE.Reg(asm.R4, asm.R5, "next"),
	}
	insns = append(insns, count(seen)...)
	insns = append(insns, asm.Mod.Reg(asm.R4, asm.R2), asm.JNE.Imm(asm.R4, 0, "next"))
	insns = append(insns, count(dropped)...)
	insns = append(insns,
		asm.Mov.Imm(asm.R0, tcxDrop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
		asm.Return(),
	)
	attachIngress(t, e.NS, e.Index(), insns)
	return &Dropper{state}
}

// DropEvery drops every n-th data packet from now on; 1 drops all, 0 none.
func (d *Dropper) DropEvery(t testing.TB, n uint64) {
	t.Helper()
	put(t, d.state, [4]uint64{n, 0, d.Dropped(t), math.MaxUint64})
}

// DropOnce drops the n-th data packet from now on, and no other.
func (d *Dropper) DropOnce(t testing.TB, n uint64) {
	t.Helper()
	dropped := d.Dropped(t)
	put(t, d.state, [4]uint64{n, 0, dropped, dropped + 1})
}

// Dropped returns how many packets it has dropped.
func (d *Dropper) Dropped(t testing.TB) uint64 {
	t.Helper()
	var v [4]uint64
	if err := d.state.Lookup(uint32(0), &v); err != nil {
		t.Fatal("read the dropper's state:", err)
	}
	return v[2]
}

// NotECTDropper drops IPv4 data packets that are not ECN-capable. It is the first program at a
// device's ingress.
type NotECTDropper struct{ state *ebpf.Map }

// NewNotECTDropper attaches a dropper, which drops from then on.
func NewNotECTDropper(t testing.TB, e End) *NotECTDropper {
	t.Helper()
	const tos, ecnMask = 15, 3 // of the frame
	state := newState(t, 1)
	attachIngress(t, e.NS, e.Index(), asm.Instructions{
		asm.Mov.Reg(asm.R6, asm.R1), // LoadAbs reads the packet through R6
		asm.LoadMem(asm.R2, asm.R1, skbLen, asm.Word),
		asm.JLT.Imm(asm.R2, dataLen, "next"),
		asm.LoadAbs(tos, asm.Byte),
		asm.And.Imm(asm.R0, ecnMask),
		asm.JNE.Imm(asm.R0, 0, "next"),
		asm.LoadMapValue(asm.R3, state.FD(), 0),
		asm.LoadMem(asm.R4, asm.R3, 0, asm.DWord),
		asm.Add.Imm(asm.R4, 1),
		asm.StoreMem(asm.R3, 0, asm.R4, asm.DWord),
		asm.Mov.Imm(asm.R0, tcxDrop),
		asm.Return(),
		asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"),
		asm.Return(),
	})
	return &NotECTDropper{state}
}

// Dropped returns how many packets it has dropped.
func (d *NotECTDropper) Dropped(t testing.TB) uint64 {
	t.Helper()
	var n uint64
	if err := d.state.Lookup(uint32(0), &n); err != nil {
		t.Fatal("read the dropper's state:", err)
	}
	return n
}

// Sampler makes every packet look as if a port's congestion point had just sampled it. It is the
// first program at a device's ingress.
type Sampler struct{ state *ebpf.Map }

// NewSampler attaches a sampler that samples nothing yet. It writes the port's verdict and the
// queue and port for the CNM, as bpf/include/port.h has them.
func NewSampler(t testing.TB, h netns.NsHandle, ifindex int, verdict, queue, port uint32) *Sampler {
	t.Helper()
	state := newState(t, 1)
	insns := asm.Instructions{
		asm.LoadMapValue(asm.R2, state.FD(), 0),
		asm.LoadMem(asm.R2, asm.R2, 0, asm.DWord),
		asm.JEq.Imm(asm.R2, 0, "next"),
		asm.Mov.Reg(asm.R6, asm.R1),
		asm.FnKtimeGetNs.Call(),
		asm.StoreMem(asm.R6, skbCB+4, asm.R0, asm.Word),
		asm.RSh.Imm(asm.R0, 32),
		asm.StoreMem(asm.R6, skbCB+8, asm.R0, asm.Word),
	}
	for i, value := range map[int16]uint32{0: verdict, 3: queue, 4: port} {
		insns = append(insns, asm.LoadImm(asm.R1, int64(value), asm.DWord),
			asm.StoreMem(asm.R6, skbCB+4*i, asm.R1, asm.Word))
	}
	insns = append(insns, asm.Mov.Imm(asm.R0, tcxNext).WithSymbol("next"), asm.Return())
	attachIngress(t, h, ifindex, insns)
	return &Sampler{state}
}

// Sample turns sampling on or off.
func (s *Sampler) Sample(t testing.TB, on bool) {
	t.Helper()
	put(t, s.state, flag(on))
}

// newState makes the map in which a program keeps its 64-bit words.
func newState(t testing.TB, words uint32) *ebpf.Map {
	t.Helper()
	m, err := ebpf.NewMap(&ebpf.MapSpec{Type: ebpf.Array, KeySize: 4, ValueSize: words * 8,
		MaxEntries: 1})
	if err != nil {
		t.Fatal("make the state of a test's program:", err)
	}
	t.Cleanup(func() { m.Close() })
	return m
}

func put(t testing.TB, state *ebpf.Map, v any) {
	t.Helper()
	if err := state.Put(uint32(0), v); err != nil {
		t.Fatal("write the state of a test's program:", err)
	}
}

// attachIngress attaches a program before all others at the device's ingress until the test ends.
// It uses tcx, or before 6.6 the first filter of clsact, which lives as long as the device.
func attachIngress(t testing.TB, h netns.NsHandle, ifindex int, insns asm.Instructions) {
	t.Helper()
	p, err := ebpf.NewProgram(&ebpf.ProgramSpec{Type: ebpf.SchedCLS, Instructions: insns,
		License: "GPL"})
	if err != nil {
		t.Fatalf("load a test's program: %+v", err)
	}
	t.Cleanup(func() { p.Close() })
	if loader.HaveTCX() != nil {
		attachFilter(t, h, ifindex, p)
		return
	}
	Do(t, h, func() error {
		l, err := link.AttachTCX(link.TCXOptions{
			Interface: ifindex, Program: p, Attach: ebpf.AttachTCXIngress, Anchor: link.Head(),
		})
		if err == nil {
			t.Cleanup(func() { l.Close() })
		}
		return err
	})
}

func attachFilter(t testing.TB, h netns.NsHandle, ifindex int, p *ebpf.Program) {
	t.Helper()
	nl := Netlink(t, h)
	err := nl.QdiscAdd(&netlink.GenericQdisc{QdiscType: "clsact", QdiscAttrs: netlink.QdiscAttrs{
		LinkIndex: ifindex, Handle: netlink.MakeHandle(0xffff, 0), Parent: netlink.HANDLE_CLSACT,
	}})
	if err != nil && !errors.Is(err, unix.EEXIST) {
		t.Fatal("add clsact:", err)
	}
	if err := nl.FilterAdd(&netlink.BpfFilter{
		FilterAttrs: netlink.FilterAttrs{
			LinkIndex: ifindex, Parent: netlink.HANDLE_MIN_INGRESS, Handle: 1,
			Protocol: unix.ETH_P_ALL, Priority: 1,
		},
		Fd: p.FD(), Name: "nstest", DirectAction: true,
	}); err != nil {
		t.Fatal("add a test's program to clsact:", err)
	}
}
