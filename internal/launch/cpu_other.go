// SPDX-License-Identifier: Apache-2.0

//go:build !linux

package launch

import "runtime"

// usableCPUs returns all CPUs. There are no sets of CPUs here, so they only limit how many microVMs
// run at a time.
func usableCPUs() ([]int, error) {
	ids := make([]int, runtime.NumCPU())
	for id := range ids {
		ids[id] = id
	}
	return ids, nil
}
