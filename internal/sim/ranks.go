// SPDX-License-Identifier: Apache-2.0

package sim

import "github.com/pcn-linux/pcn/internal/experiment"

// ranks says in which order ports serve classes. A queue's index is its rank, and the highest goes
// first; results name it by its class. Without the simulator's further priorities both are the
// same.
type ranks struct {
	of      [classes]uint8 // of a class
	class   [classes]uint8 // of a rank
	control uint8          // the rank of control packets
}

func newRanks(data []uint8) ranks {
	r := ranks{control: controlClass}
	further := false
	for c := range r.of {
		r.of[c], r.class[c] = uint8(c), uint8(c)
	}
	for _, c := range data {
		further = further || c >= experiment.Priorities
	}
	if !further {
		return r
	}
	r.control = classes - 1
	r.of[controlClass], r.class[r.control] = r.control, controlClass
	for priority := range experiment.SimPriorities {
		rank := uint8(experiment.SimPriorities - 1 - priority)
		class := experiment.DataClass(priority)
		r.of[class], r.class[rank] = rank, class
	}
	return r
}
