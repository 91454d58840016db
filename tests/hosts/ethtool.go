// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"

	"github.com/safchain/ethtool"
)

// The features of offloads, by the kernel's names.
var (
	tso = []string{"tx-tcp-segmentation", "tx-tcp6-segmentation", "tx-tcp-ecn-segmentation",
		"tx-tcp-mangleid-segmentation"}
	gso = []string{"tx-generic-segmentation"}
	gro = []string{"rx-gro"}
)

// setOffload turns an offload of the device on or off, in the namespace of this thread.
func setOffload(device string, features []string, on bool) error {
	e, err := ethtool.NewEthtool()
	if err != nil {
		return fmt.Errorf("open a socket for ethtool: %w", err)
	}
	defer e.Close()
	change := map[string]bool{}
	for _, f := range features {
		change[f] = on
	}
	if err := e.Change(device, change); err != nil {
		return fmt.Errorf("set %v of device %s to %t: %w", features, device, on, err)
	}
	return nil
}
