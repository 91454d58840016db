// SPDX-License-Identifier: Apache-2.0

package hpcc

import "strconv"

// Flow is a flow between two hosts.
type Flow struct {
	From, To  int // nodes
	Priority  int // 0 is the highest
	SizeBytes uint64
	StartNs   uint64 // in the simulator's time
	Line      int    // in the file
}

// ParseFlows parses a flow file: the number of flows, then each flow's source, destination,
// priority group, destination port, size in bytes and start in seconds. ConWeave's flows have no
// port. As in the simulators the number of flows rules: surplus is the number of the line with a
// further flow, 0 if there is none. An error is an [*config.Error].
func ParseFlows(text string) (flows []Flow, surplus int, err error) {
	r := newReader(text)
	r.notOther()
	count := r.integer("the number of flows", maxCount)
	if count == 0 && r.more() > 0 {
		r.fail("the file says that it has 0 flows, and has lines of numbers: want the number of " +
			"flows first (a distribution of flow sizes is for workload: {cdf: FILE})")
	}
	values := r.flowValues()
	for range count {
		f := Flow{From: r.integer("the number of a source", maxNodes)}
		f.Line = r.last
		f.To = r.integer("the number of a destination", maxNodes)
		f.Priority = r.integer("a priority group", 7)
		if values == withPort {
			r.port()
		}
		f.SizeBytes = uint64(r.integer("a size in bytes", maxBytes))
		if f.SizeBytes == 0 {
			r.fail("a flow has 0 bytes: want 1 or more")
		}
		f.StartNs = r.quantity("a start in seconds", timeUnits[:1])
		if r.err != nil {
			return nil, 0, r.err
		}
		flows = append(flows, f)
	}
	if haveStops(flows) {
		r.last = flows[0].Line
		r.fail("each flow has fewer bytes than its start has seconds: " + rdmaHint)
	}
	return flows, r.more(), r.error()
}

// rdmaHint is for files that are of ns3-rdma by what they have.
const rdmaHint = "is this a file of ns3-rdma or DCQCN-TCD, which have packets, start and stop " +
	"where HPCC's have port, bytes and start? Write trace: {format: ns3-rdma} then"

// How many values a flow has in files of HPCC's simulator, and in ConWeave's.
const (
	withPort    = 6
	withoutPort = 5
)

// flowValues returns how many values the first flow's line has, which must be those of a known
// simulator. Files that do not have a line for each flow are HPCC's.
func (r *reader) flowValues() int {
	if r.err != nil || len(r.words) == 0 || r.words[0].line == r.last {
		return withPort
	}
	n := r.onFirstLine()
	for _, w := range r.words[:n] {
		if _, err := strconv.ParseFloat(w.text, 64); err != nil {
			return withPort // a comment, or a mistake in a value
		}
	}
	if n == withPort || n == withoutPort {
		return n
	}
	r.last = r.words[0].line
	r.fail("a flow has %d values: want 6, which are source, destination, priority group, "+
		"destination port, bytes and start, or ConWeave's 5 without the port", n)
	return withPort
}

// port reads a destination port. A larger number is the sign of another simulator's file.
func (r *reader) port() {
	const most = 1<<16 - 1
	if r.err == nil && len(r.words) > 0 {
		if n, err := strconv.Atoi(r.words[0].text); err == nil && n > most {
			r.last = r.words[0].line
			r.fail("the fourth value is %d, and a destination port is 65535 at most: %s", n,
				rdmaHint)
			return
		}
	}
	r.integer("a destination port", most)
}

// haveStops reports whether what should be bytes and starts are starts and stops, of other
// simulators that derive from the same one.
func haveStops(flows []Flow) bool {
	for _, f := range flows {
		if f.SizeBytes*1e9 >= f.StartNs { // no flow stops when it starts
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
// be text, but no further flow. An error is an [*config.Error].
func ParseStopFlows(text string) ([]StopFlow, error) {
	r := newReader(text)
	r.notOther()
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
		f.StartNs = r.quantity("a start in seconds", timeUnits[:1])
		f.StopNs = r.quantity("a stop in seconds", timeUnits[:1])
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
