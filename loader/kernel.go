// SPDX-License-Identifier: Apache-2.0

package loader

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"sync"

	"github.com/cilium/ebpf/btf"

	"github.com/pcn-linux/pcn/config/scheme"
)

// KernelTypes returns the kernel's types, for [ebpf.CollectionOptions]. They can't change while it
// runs, and decoding them takes most of the time of loading a small program, so a process does it
// once.
var KernelTypes = sync.OnceValue(btf.NewCache)

const availableFile = "/proc/sys/net/ipv4/tcp_available_congestion_control"

// KernelControl returns a congestion control of the running kernel by its name, for baselines. It
// keeps no flow table.
func KernelControl(name string) (*Control, error) {
	text, err := os.ReadFile(availableFile)
	if err != nil {
		return nil, fmt.Errorf("find congestion control %s: %w", name, err)
	}
	if have := strings.Fields(string(text)); !slices.Contains(have, name) {
		return nil,
			fmt.Errorf("this kernel has no congestion control %s, only %s: load its module "+
				"(modprobe tcp_%s): %w",
				name, strings.Join(have, ", "), name, ErrNotSupported)
	}
	return &Control{scheme: scheme.Kernel(name)}, nil
}
