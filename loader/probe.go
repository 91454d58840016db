// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// ErrNotSupported says that the running kernel lacks what was asked for; the error around it says what, and
// what to do.
var ErrNotSupported = ebpf.ErrNotSupported

// HaveBTF probes for the kernel's type information, which every object needs.
func HaveBTF() error {
	if _, err := btf.LoadKernelSpec(); err != nil {
		return fmt.Errorf("this kernel has no type information (CONFIG_DEBUG_INFO_BTF, /sys/kernel/btf/vmlinux): %w", ErrNotSupported)
	}
	return nil
}

// HaveTCPStructOps probes for congestion controls in BPF.
func HaveTCPStructOps() error {
	return haveType("bpf_struct_ops_tcp_congestion_ops",
		"this kernel lacks BPF congestion controls (CONFIG_BPF_JIT, CONFIG_DEBUG_INFO_BTF, 5.6+)")
}

// HaveStructOpsLink probes for links of struct_ops, by which a control goes when its last user does. Without them it stays
// until it is closed.
func HaveStructOpsLink() error {
	return haveType("bpf_struct_ops_link", "this kernel registers BPF congestion controls without links (before 6.4)")
}

// HaveQdisc probes for qdiscs in BPF, which the lab's switch ports are.
func HaveQdisc() error {
	return haveType("bpf_struct_ops_Qdisc_ops",
		"this kernel lacks CONFIG_NET_SCH_BPF (6.16+): run without --native to use the microVM")
}

// HaveTCX probes for tcx, the attachment of the tc programs.
func HaveTCX() error {
	return haveType("bpf_mprog_entry", "this kernel lacks tcx (CONFIG_NET_XGRESS, 6.6+)")
}

// HaveKernelContext probes for a tc program's access to the sk_buff, by which wred and the lab's switches find their port.
func HaveKernelContext() error {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return HaveBTF()
	}
	var f *btf.Func
	if err := kernel.TypeByName("bpf_cast_to_kern_ctx", &f); err != nil {
		return fmt.Errorf("this kernel's tc programs can't read the sk_buff (bpf_cast_to_kern_ctx, 6.2+): %w", ErrNotSupported)
	}
	return nil
}

// HavePermission probes for the right to load programs.
func HavePermission() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.SchedCLS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("no permission to load BPF programs: run as root, or with CAP_BPF and CAP_NET_ADMIN: %w", err)
	}
	if err != nil {
		return fmt.Errorf("load a BPF program: %w", err)
	}
	return prog.Close()
}

func haveType(name, lack string) error {
	kernel, err := btf.LoadKernelSpec()
	if err != nil {
		return HaveBTF()
	}
	var s *btf.Struct
	if err := kernel.TypeByName(name, &s); err != nil {
		return fmt.Errorf("%s: %w", lack, ErrNotSupported)
	}
	return nil
}

// explain gives the reason that the probes know for err, and err itself where they know none.
func explain(err error, probes ...func() error) error {
	for _, probe := range append([]func() error{HaveBTF}, probes...) {
		if reason := probe(); reason != nil {
			return reason
		}
	}
	// Not only if err is EPERM: the library takes a probe of its own that failed so for a feature that lacks.
	if reason := HavePermission(); errors.Is(reason, unix.EPERM) {
		return reason
	}
	return err
}
