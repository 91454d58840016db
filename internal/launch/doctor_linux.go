// SPDX-License-Identifier: Apache-2.0

package launch

import "github.com/pcn-linux/pcn/loader"

// nativeChecks checks what runs on this machine's own kernel need.
func nativeChecks() []Check {
	return []Check{
		{"kernel types (BTF)", ForNative, loader.HaveBTF(), "boot a distribution kernel"},
		{"BPF congestion controls", ForNative, loader.HaveTCPStructOps(),
			"boot a kernel 6.1 or later"},
		{"tcx", ForNative, loader.HaveTCX(), "boot a kernel 6.6 or later"},
		{"BPF qdiscs", ForNative, loader.HaveQdisc(),
			"boot a kernel 6.16 or later with CONFIG_NET_SCH_BPF=y"},
		{"permission to load programs", ForNative, loader.HavePermission(), "sudo pcn ..."},
	}
}
