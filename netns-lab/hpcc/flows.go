// SPDX-License-Identifier: Apache-2.0

package hpcc

// Flow is a flow between two hosts.
type Flow struct {
	From, To  int // nodes
	Priority  int // 0 is the highest
	SizeBytes uint64
	StartNs   uint64 // in the simulator's time
	Line      int    // in the file
}

// ParseFlows parses a flow file: the number of flows, then each flow's source, destination,
// priority group, destination port, size in bytes and start in seconds. An error is an [*Error].
func ParseFlows(text string) ([]Flow, error) {
	r := newReader(text)
	count := r.integer("the number of flows", maxCount)
	var flows []Flow
	for range count {
		f := Flow{From: r.integer("the number of a source", maxNodes)}
		f.Line = r.last
		f.To = r.integer("the number of a destination", maxNodes)
		f.Priority = r.integer("a priority group", 7)
		r.integer("a destination port", 1<<16-1)
		f.SizeBytes = uint64(r.integer("a size in bytes", maxBytes))
		if f.SizeBytes == 0 {
			r.fail("a flow has 0 bytes: want 1 or more")
		}
		f.StartNs = r.quantity("a start in seconds", timeUnits[:1], maxTime)
		if r.err != nil {
			return nil, r.err
		}
		flows = append(flows, f)
	}
	return flows, r.error()
}
