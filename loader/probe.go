// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"errors"
	"fmt"
	"sync"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/btf"
	"golang.org/x/sys/unix"
)

// ErrNotSupported reports that the running kernel lacks a feature. The error around it says which,
// and what to do.
var ErrNotSupported = ebpf.ErrNotSupported

// kernelTypes holds what the probes need from the kernel's BTF.
type kernelTypes struct {
	names           map[string]bool // types and kfuncs that the kernel has
	congControlArgs int             // parameters of tcp_congestion_ops.cong_control; 0: it has none
}

const (
	tcpStructOps  = "bpf_struct_ops_tcp_congestion_ops"
	structOpsLink = "bpf_struct_ops_link"
	qdiscOps      = "bpf_struct_ops_Qdisc_ops"
	tcxEntry      = "bpf_mprog_entry"
	castToKernCtx = "bpf_cast_to_kern_ctx"
)

// readKernelTypes reads the kernel's BTF once, because that takes 40 ms.
var readKernelTypes = sync.OnceValues(func() (kernelTypes, error) {
	spec, err := KernelTypes().Kernel()
	if err != nil {
		return kernelTypes{}, err
	}
	k := kernelTypes{names: map[string]bool{}}
	for _, name := range []string{tcpStructOps, structOpsLink, qdiscOps, tcxEntry, castToKernCtx} {
		_, err := spec.AnyTypesByName(name)
		k.names[name] = err == nil
	}
	k.congControlArgs = congControlArgs(spec)
	return k, nil
})

// congControlArgs counts the parameters of tcp_congestion_ops.cong_control.
func congControlArgs(spec *btf.Spec) int {
	var ops *btf.Struct
	if err := spec.TypeByName("tcp_congestion_ops", &ops); err != nil {
		return 0
	}
	for _, m := range ops.Members {
		if m.Name != "cong_control" {
			continue
		}
		if ptr, ok := m.Type.(*btf.Pointer); ok {
			if proto, ok := ptr.Target.(*btf.FuncProto); ok {
				return len(proto.Params)
			}
		}
	}
	return 0
}

// HaveBTF probes for the kernel's type information, which every object needs.
func HaveBTF() error {
	if _, err := readKernelTypes(); err != nil {
		return fmt.Errorf("this kernel has no type information (CONFIG_DEBUG_INFO_BTF, "+
			"/sys/kernel/btf/vmlinux): %w", ErrNotSupported)
	}
	return nil
}

// HaveTCPStructOps probes for congestion controls in BPF.
func HaveTCPStructOps() error {
	return haveType(tcpStructOps,
		"this kernel lacks BPF congestion controls (CONFIG_BPF_JIT, CONFIG_DEBUG_INFO_BTF, 5.6+)")
}

// HaveStructOpsLink probes for struct_ops links, which unregister a control when its process ends.
// Without them it stays until it is closed.
func HaveStructOpsLink() error {
	return haveType(structOpsLink,
		"this kernel registers BPF congestion controls without links (before 6.4)")
}

// HaveQdisc probes for BPF qdiscs, of which the lab's switch ports are made.
func HaveQdisc() error {
	return haveType(qdiscOps,
		"this kernel lacks CONFIG_NET_SCH_BPF (6.16+): run without --native to use the microVM")
}

// HaveTCX probes for tcx, which attaches tc programs.
func HaveTCX() error {
	return haveType(tcxEntry, "this kernel lacks tcx (CONFIG_NET_XGRESS, 6.6+)")
}

// HaveKernelContext probes for a tc program's access to the sk_buff, by which wred and the lab's
// switches find their port.
func HaveKernelContext() error {
	return haveType(castToKernCtx,
		"this kernel's tc programs can't read the sk_buff (bpf_cast_to_kern_ctx, 6.2+)")
}

// HavePermission probes for the right to load programs.
func HavePermission() error {
	prog, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type:         ebpf.SchedCLS,
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 0), asm.Return()},
		License:      "GPL",
	})
	if errors.Is(err, unix.EPERM) {
		return fmt.Errorf("no permission to load BPF programs: run as root, or with CAP_BPF and "+
			"CAP_NET_ADMIN: %w", err)
	}
	if err != nil {
		return fmt.Errorf("load a BPF program: %w", err)
	}
	return prog.Close()
}

func haveType(name, lack string) error {
	kernel, err := readKernelTypes()
	if err != nil {
		return HaveBTF()
	}
	if !kernel.names[name] {
		return fmt.Errorf("%s: %w", lack, ErrNotSupported)
	}
	return nil
}

// explain returns the reason that a probe finds for err, or err itself if no probe finds one.
func explain(err error, probes ...func() error) error {
	for _, probe := range append([]func() error{HaveBTF}, probes...) {
		if reason := probe(); reason != nil {
			return reason
		}
	}
	// Ask this for any error: cilium/ebpf's own probes report EPERM as a missing feature.
	if reason := HavePermission(); errors.Is(reason, unix.EPERM) {
		return reason
	}
	return ExplainVerifier(err)
}
