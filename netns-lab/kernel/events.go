// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"net/netip"

	"github.com/pcn-linux/pcn/internal/result"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
)

// eventLog collects the events of ports and arriving flows.
type eventLog struct {
	plan    *plan
	window  window
	reader  *npecn.EventReader
	pfc     []result.PFCEvent
	repeats map[repeatsBin]uint64 // PAUSE frames
	storms  []watchedStorm
	paused  pausedPorts
	queues  []map[uint64]npecn.Sample     // by port, then bin
	flows   []map[uint64]npecn.FlowSample // by flow, then bin
	// Of switches with detectors: by port, then bin, and by port in the order of time.
	detected []map[uint64]npecn.Detections
	offs     [][]npecn.Off
	starts   map[netip.AddrPort]uint64 // when each TCP flow sent its first data, by its source
}

// repeatsBin is a bin of the PAUSE frames of a class that a port's node sends to the node at its
// other end.
type repeatsBin struct {
	port  uint32
	class uint8
	bin   uint64
}

func newEventLog(f *fabric, w window, flows int) (*eventLog, error) {
	reader, err := f.qdisc.NewEventReader()
	if err != nil {
		return nil, err
	}
	ports := len(f.plan.ports)
	return &eventLog{
		plan: f.plan, window: w, reader: reader,
		repeats: map[repeatsBin]uint64{}, paused: pausedPorts{},
		queues: byBin[npecn.Sample](ports), flows: byBin[npecn.FlowSample](flows),
		detected: byBin[npecn.Detections](ports), offs: make([][]npecn.Off, ports),
		starts: map[netip.AddrPort]uint64{},
	}, nil
}

// byBin makes a map from bins for each of n objects.
func byBin[T any](n int) []map[uint64]T {
	maps := make([]map[uint64]T, n)
	for i := range maps {
		maps[i] = map[uint64]T{}
	}
	return maps
}

// drain reads all pending events.
func (l *eventLog) drain() error {
	return l.reader.Drain(npecn.Sink{
		PFC: func(e npecn.PFCEvent) {
			l.paused.see(e)
			l.pfc = append(l.pfc, l.pfcRow(e))
		},
		Repeats:  l.addRepeats,
		Queue:    func(s npecn.QueueSample) { l.queues[s.Port][s.Bin] = s.Sample },
		Flow:     func(s npecn.FlowSample) { l.flows[s.Flow][s.Bin] = s },
		Start:    func(s npecn.FlowStart) { l.starts[s.Src] = s.AtNs },
		Off:      func(o npecn.Off) { l.offs[o.Port] = append(l.offs[o.Port], o) },
		Detected: func(d npecn.Detected) { l.detected[d.Port][d.Bin] = d.Detections },
		Storm:    l.sawStorm,
	})
}

// addRepeats notes a bin. The last one is read before its event comes, which may know of fewer.
func (l *eventLog) addRepeats(r npecn.PauseRepeats) {
	at := repeatsBin{r.Port, r.Class, r.Bin}
	l.repeats[at] = max(l.repeats[at], r.Frames)
}

// repeatRows returns the bins of the measured time.
func (l *eventLog) repeatRows() []result.PauseRepeats {
	var rows []result.PauseRepeats
	first, end := l.window.bins()
	for at, frames := range l.repeats {
		if at.bin < first || at.bin >= end {
			continue
		}
		rows = append(rows, result.PauseRepeats{
			TimeNs: l.window.since(at.bin * l.window.sampleNs),
			From:   l.plan.nodes[l.plan.ports[at.port].node].name, To: l.plan.device(at.port),
			Class: at.class, Frames: frames,
		})
	}
	return rows
}

func (l *eventLog) pfcRow(e npecn.PFCEvent) result.PFCEvent {
	p := l.plan.ports[e.Port]
	row := result.PFCEvent{
		SentNs: l.window.since(e.SentNs), EffectNs: l.window.since(e.EffectNs),
		From: l.plan.nodes[p.peer].name, To: l.plan.device(p.back),
		Class: e.Class, Kind: result.Resume,
	}
	if e.Pause {
		row.Kind = result.Pause
	}
	return row
}
