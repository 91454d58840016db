// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/vishvananda/netlink"
)

// path loses packets that leave a device, and sends some by a slower device, so that they arrive
// later than those behind them. It does what netem would, where the kernel has none.
type path struct {
	state *ebpf.Map
	link  link.Link
}

// pathState is the program's only map value.
type pathState struct {
	Lose, Reorder   uint64 // of 2^32
	Device          uint64 // for packets to reorder
	Lost, Reordered uint64
}

const (
	offLose, offReorder, offDevice, offLost, offReordered = 0, 8, 16, 24, 32

	tcNext = -1
	tcDrop = 2
)

// newPath attaches a path before all other programs at the device's egress.
func newPath(h *netHost, device string, slow int) (*path, error) {
	state, err := ebpf.NewMap(&ebpf.MapSpec{
		Name: "soak_path", Type: ebpf.Array, KeySize: 4, ValueSize: 40, MaxEntries: 1,
	})
	if err != nil {
		return nil, fmt.Errorf("make the state of a path: %w", err)
	}
	p := &path{state: state}
	if err := p.put(pathState{Device: uint64(slow)}); err != nil {
		return nil, err
	}
	program, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Name: "soak_path", Type: ebpf.SchedCLS, License: "GPL", Instructions: p.instructions(),
	})
	if err != nil {
		return nil, fmt.Errorf("load the program of a path: %w", err)
	}
	defer program.Close()
	l, err := h.nl.LinkByName(device)
	if err != nil {
		return nil, err
	}
	return p, h.do(func() (err error) {
		p.link, err = link.AttachTCX(link.TCXOptions{
			Interface: l.Attrs().Index, Program: program, Attach: ebpf.AttachTCXEgress,
			Anchor: link.Head(),
		})
		return err
	})
}

func (p *path) instructions() asm.Instructions {
	return asm.Instructions{
		asm.LoadMapValue(asm.R7, p.state.FD(), 0),
		asm.FnGetPrandomU32.Call(),
		asm.LoadMem(asm.R2, asm.R7, offLose, asm.DWord),
		asm.JLT.Reg(asm.R0, asm.R2, "lose"),
		asm.FnGetPrandomU32.Call(),
		asm.LoadMem(asm.R2, asm.R7, offReorder, asm.DWord),
		asm.JLT.Reg(asm.R0, asm.R2, "reorder"),
		asm.Mov.Imm(asm.R0, tcNext),
		asm.Return(),
		asm.Mov.Imm(asm.R1, 1).WithSymbol("lose"),
		asm.Add.Imm(asm.R7, offLost),
		asm.StoreXAdd(asm.R7, asm.R1, asm.DWord),
		asm.Mov.Imm(asm.R0, tcDrop),
		asm.Return(),
		asm.Mov.Imm(asm.R1, 1).WithSymbol("reorder"),
		asm.Mov.Reg(asm.R2, asm.R7),
		asm.Add.Imm(asm.R2, offReordered),
		asm.StoreXAdd(asm.R2, asm.R1, asm.DWord),
		asm.LoadMem(asm.R1, asm.R7, offDevice, asm.DWord),
		asm.Mov.Imm(asm.R2, 0),
		asm.FnRedirect.Call(),
		asm.Return(),
	}
}

func (p *path) put(s pathState) error { return p.state.Put(uint32(0), s) }

func (p *path) get() (s pathState, err error) {
	err = p.state.Lookup(uint32(0), &s)
	return s, err
}

// change sets what the path does, in packets of 100,000.
func (p *path) change(change func(s *pathState)) error {
	s, err := p.get()
	if err != nil {
		return err
	}
	change(&s)
	return p.put(s) // a count that a packet adds meanwhile is lost
}

func share(of100k int) uint64 { return uint64(of100k) << 32 / 100_000 }

// setUpPaths gives the router its queues, and its losses.
func (b *bed) setUpPaths() error {
	r := b.hosts[routerHost]
	if err := b.rate(50); err != nil {
		return err
	}
	slow, err := r.nl.LinkByName("b1")
	if err != nil {
		return err
	}
	const slowBps, burst, limit = 5_000_000 / 8, 20_000, 100_000
	if err := r.nl.QdiscReplace(&netlink.Tbf{
		QdiscAttrs: netlink.QdiscAttrs{
			LinkIndex: slow.Attrs().Index, Parent: netlink.HANDLE_ROOT,
			Handle: netlink.MakeHandle(1, 0),
		},
		Rate: slowBps, Limit: limit, Buffer: netlink.Xmittime(slowBps, burst),
	}); err != nil {
		return fmt.Errorf("make the slow link slow: %w", err)
	}
	if b.toServer, err = newPath(r, "b0", slow.Attrs().Index); err != nil {
		return err
	}
	b.toward, err = newPath(r, "a0", 0)
	return err
}

// rate sets the bottleneck's to a share of its full one, with HTB.
func (b *bed) rate(percent int) error {
	r := b.hosts[routerHost]
	l, err := r.nl.LinkByName("b0")
	if err != nil {
		return err
	}
	root := netlink.MakeHandle(1, 0)
	qdisc := netlink.NewHtb(netlink.QdiscAttrs{
		LinkIndex: l.Attrs().Index, Parent: netlink.HANDLE_ROOT, Handle: root,
	})
	qdisc.Defcls = 1
	if qdiscs, err := r.nl.QdiscList(l); err != nil {
		return err
	} else if len(qdiscs) == 0 || qdiscs[0].Type() != "htb" {
		if err := r.nl.QdiscReplace(qdisc); err != nil {
			return fmt.Errorf("add HTB to the bottleneck: %w", err)
		}
	}
	bps := uint64(b.fullMbps) * 1e6 * uint64(percent) / 100
	class := netlink.NewHtbClass(
		netlink.ClassAttrs{
			LinkIndex: l.Attrs().Index, Parent: root, Handle: netlink.MakeHandle(1, 1),
		},
		netlink.HtbClassAttrs{Rate: bps, Ceil: bps},
	)
	if err := r.nl.ClassReplace(class); err != nil {
		return fmt.Errorf("set the bottleneck's rate: %w", err)
	}
	return nil
}
