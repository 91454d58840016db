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
// priority group, destination port, size in bytes and start in seconds. What follows may be text,
// but no further flow. An error is an [*Error].
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
	r.noMore("flow", count)
	if r.err == nil && haveStops(flows) {
		r.last = flows[0].Line
		r.fail("each flow has fewer bytes than its start has seconds: is this a file of " +
			"ns3-rdma or DCQCN-TCD, which have packets, start and stop where HPCC's have port, " +
			"bytes and start? Write trace: {format: ns3-rdma} then")
	}
	return flows, r.error()
}

// haveStops reports whether what should be bytes and starts are starts and stops, of other
// simulators that derive from the same one.
func haveStops(flows []Flow) bool {
	for _, f := range flows {
		if f.SizeBytes*1e9 > f.StartNs {
			return false
		}
	}
	return len(flows) > 0
}

// StopFlow is a flow of ns3-rdma, or of a simulator that derives from it, such as DCQCN-TCD.
type StopFlow struct {
	Flow    // SizeBytes is 0
	Packets uint64
	StopNs  uint64 // in the simulator's time
}

// ParseStopFlows parses a flow file of ns3-rdma: the number of flows, then each flow's source,
// destination, priority group, number of packets, and start and stop in seconds. What follows may
// be text, but no further flow. An error is an [*Error].
func ParseStopFlows(text string) ([]StopFlow, error) {
	r := newReader(text)
	count := r.integer("the number of flows", maxCount)
	var flows []StopFlow
	for range count {
		f := StopFlow{Flow: Flow{From: r.integer("the number of a source", maxNodes)}}
		f.Line = r.last
		f.To = r.integer("the number of a destination", maxNodes)
		f.Priority = r.integer("a priority group", 7)
		f.Packets = uint64(r.integer("a number of packets", maxPackets))
		if f.Packets == 0 {
			r.fail("a flow has 0 packets: want 1 or more")
		}
		f.StartNs = r.quantity("a start in seconds", timeUnits[:1], maxTime)
		f.StopNs = r.quantity("a stop in seconds", timeUnits[:1], maxTime)
		if f.StopNs <= f.StartNs {
			r.fail("a flow stops before it has started: want a stop behind its start")
		}
		if r.err != nil {
			return nil, r.err
		}
		flows = append(flows, f)
	}
	r.noMore("flow", count)
	return flows, r.error()
}

// maxPackets keeps sizes below maxBytes.
const maxPackets = 1 << 36
