// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"os"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/asm"
	"github.com/cilium/ebpf/link"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
)

// Another's program may let none run beside it, in the cgroup or in one above: Up says which.
func TestCgroupOfAnother(t *testing.T) {
	wire(t)
	group, inner := cgroups(t)
	other, err := ebpf.NewProgram(&ebpf.ProgramSpec{
		Type: ebpf.SockOps, AttachType: ebpf.AttachCGroupSockOps, License: "GPL",
		Instructions: asm.Instructions{asm.Mov.Imm(asm.R0, 1), asm.Return()},
	})
	qt.Assert(t, qt.IsNil(err))
	defer other.Close()
	dir, err := os.Open(group)
	qt.Assert(t, qt.IsNil(err))
	defer dir.Close()
	const alone = 0 // no BPF_F_ALLOW_MULTI
	at := link.RawAttachProgramOptions{Target: int(dir.Fd()), Program: other,
		Attach: ebpf.AttachCGroupSockOps, Flags: alone}
	qt.Assert(t, qt.IsNil(link.RawAttachProgram(at)))
	configured := func(path string) *host.Config {
		return parse(t, light+"cgroups: [{path: "+path+", control: pcn}]\n")
	}
	for _, path := range []string{group, inner} {
		_, err := host.New().Up(t.Context(), configured(path))
		qt.Check(t, qt.ErrorMatches(err, "attach .*: cgroup /sys/fs/cgroup/pcn_adopt has the "+
			"sock_ops program [0-9]+ .*, which lets no other run beside it: attach that one .*"))
	}
	leavesNothing(t)
	qt.Assert(t, qt.IsNil(link.RawDetachProgram(link.RawDetachProgramOptions{
		Target: int(dir.Fd()), Program: other, Attach: ebpf.AttachCGroupSockOps})))
	_, err = host.New().Up(t.Context(), configured(inner))
	qt.Check(t, qt.IsNil(err))
}
