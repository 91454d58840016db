// SPDX-License-Identifier: Apache-2.0

package launch

import "golang.org/x/sys/unix"

// usableCPUs returns the CPUs that this process may use.
func usableCPUs() ([]int, error) {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return nil, err
	}
	var ids []int
	for id := 0; len(ids) < set.Count(); id++ {
		if set.IsSet(id) {
			ids = append(ids, id)
		}
	}
	return ids, nil
}
