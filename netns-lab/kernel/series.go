// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// series makes rows of ports and arriving flows out of the bins of events.
type series struct {
	plan    *plan
	window  window
	streams []*stream
	events  *eventLog
}

// port has a row for each bin; in one without events the queue is as it was.
func (s *series) port(id int) []result.Sample {
	w := s.window
	var rows []result.Sample
	var queue uint64
	first, end := w.bins()
	for bin := first; bin < end; bin++ {
		x, ok := s.events.queues[id][bin]
		if !ok {
			x = npecn.Sample{QueueBytes: queue, QueueMaxBytes: queue}
		}
		rows = append(rows, result.Sample{
			TimeNs: w.since(bin * w.sampleNs), Kind: result.KindPort, Name: s.plan.ports[id].name,
			RateBps: x.SentBytes * 8e9 / w.sampleNs, QueueBytes: queue,
			QueueMaxBytes: x.QueueMaxBytes, MarkedPackets: uint64(x.MarkedPackets),
		})
		queue = x.QueueBytes
	}
	return rows
}

// streamRows returns the rows of TCP flows. If there are too many flows, it returns the sum of each
// group and the flows that are needed individually.
func (s *series) streamRows() []result.Sample {
	all, needed := len(s.streams) <= experiment.MaxInSeries, s.plan.exp.ReceivedSeries()
	groups := make(map[string][]uint32)
	var names []string // of groups, in order
	var rows []result.Sample
	for _, x := range s.streams {
		if all || needed[x.Name] || x.Name == x.Group {
			rows = append(rows, s.flow(x.Name, x.id)...)
		}
		if all || x.Name == x.Group {
			continue
		}
		if groups[x.Group] == nil {
			names = append(names, x.Group)
		}
		groups[x.Group] = append(groups[x.Group], x.id)
	}
	for _, name := range names {
		rows = append(rows, s.flow(name, groups[name]...)...)
	}
	return rows
}

// flow returns the rows of a flow, or of the sum of several.
func (s *series) flow(name string, ids ...uint32) []result.Sample {
	w := s.window
	var rows []result.Sample
	first, end := w.bins()
	for bin := first; bin < end; bin++ {
		var bytes, marked uint64
		for _, id := range ids {
			x := s.events.flows[id][bin]
			bytes += x.Bytes
			marked += uint64(x.MarkedPackets)
		}
		if bytes == 0 && bin > first && len(s.streams) > experiment.MaxInSeries {
			continue // the one at the start says that the flow is there
		}
		rows = append(rows, result.Sample{
			TimeNs: w.since(bin * w.sampleNs), Kind: result.KindFlow, Name: name,
			RateBps: bytes * 8e9 / w.sampleNs, MarkedPackets: marked,
		})
	}
	return rows
}
