// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"fmt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/loader"
	npecn "github.com/pcn-linux/pcn/qdisc-npecn"
	"github.com/pcn-linux/pcn/tc"
)

// counters holds what is read at the end of the measured time, before the flows are closed.
type counters struct {
	late      []npecn.Lateness // of each port
	lateACKs  npecn.Lateness   // of all hosts
	lateData  npecn.Lateness
	causality uint64        // packets that arrived after their ideal time had passed
	arrivals  []tc.Arrival  // of each flow
	senders   []senderState // of each stream
	lost      map[string]uint64

	// Read when nothing is under way any more.
	pfcOverflow uint64   // PFC events that ports lost
	creditsLost []string // reasons, of ports that do not have all of their credits
}

func (c *counters) readPorts(f *fabric, endNs uint64, events *eventLog) error {
	c.late = make([]npecn.Lateness, len(f.plan.ports))
	for id := 1; id < len(f.plan.ports); id++ {
		s, err := f.qdisc.Stats(uint32(id))
		if err != nil {
			return err
		}
		c.late[id] = s.Lateness
		c.lateACKs.Add(s.LateACKs)
		c.lateData.Add(s.LateData)
		c.causality += s.Causality
		events.queues[id][s.Bin] = s.InBin
		events.detected[id][s.Bin] = s.Detected
		repeats, err := f.qdisc.PauseRepeats(uint32(id), endNs)
		if err != nil {
			return err
		}
		for _, r := range repeats {
			events.addRepeats(r)
		}
	}
	return nil
}

func (c *counters) readArrivals(f *fabric, t *traffic, w window, events *eventLog) error {
	var keys []loader.FlowKey
	for _, s := range t.streams {
		keys = append(keys, s.key)
	}
	for _, b := range t.bursts.flows {
		keys = append(keys, b.key)
	}
	for id, k := range keys {
		a, err := f.arrive.Flow(k, w.sampleNs)
		if err != nil {
			return err
		}
		if a.BinPackets > 0 {
			events.flows[id][a.BinNs/w.sampleNs] = npecn.FlowSample{
				Bytes: a.BinBytes, Packets: a.BinPackets, MarkedPackets: a.BinMarkedPackets,
			}
		}
		c.arrivals = append(c.arrivals, a)
	}
	return nil
}

func (c *counters) readSenders(l *senderLog, streams []*stream, w window) error {
	for _, s := range streams {
		x, err := l.read(s)
		if err != nil {
			return err
		}
		const syn = 1 // counts as a byte
		if s.Size != 0 && x.ackedBytes >= uint64(s.Size)+syn {
			x.completedNs, err = s.completedNs(clock{l.dilation})
			if err != nil {
				return fmt.Errorf("flow %s: %w", s.Name, err)
			}
			if x.completedNs > w.endNs {
				x.completedNs = 0
			}
		}
		c.senders = append(c.senders, x)
	}
	return nil
}

// countLost counts the packets lost outside of ports, by place. A lossless run has none.
func (c *counters) countLost(f *fabric) (map[string]uint64, error) {
	d, err := f.switches.Drops()
	if err != nil {
		return nil, err
	}
	cnms, err := f.cnms()
	if err != nil {
		return nil, err
	}
	lost, err := kernelDrops(f.nodes)
	if err != nil {
		return nil, err
	}
	lost["switch: not IPv4"] = d.NotIP
	lost["switch: no route"] = d.NoRoute
	lost["switch: no port"] = d.NoPort
	lost["switch: redirect"] = d.Redirect
	lost["CNM"] = cnms.Lost
	for id := 1; id < len(f.plan.ports); id++ {
		s, err := f.qdisc.Stats(uint32(id))
		if err != nil {
			return nil, err
		}
		if n := s.Drops[npecn.DropLink]; n > 0 {
			lost[result.LostOnLinks] += n
		}
		if n := s.Drops[npecn.DropRefused]; n > 0 {
			lost[result.LostByWatchdog] += n
		}
	}
	lost["tcp retransmissions"] = 0
	for _, s := range c.senders {
		lost["tcp retransmissions"] += s.retransmissions
	}
	return lost, nil
}

// addSettled records what a port is missing when no packet is under way.
func (c *counters) addSettled(port string, s *npecn.Stats) {
	c.pfcOverflow += s.PFCOverflow
	if s.FreeCreditBlocks != s.CreditBlocks {
		c.creditsLost = append(c.creditsLost,
			fmt.Sprintf("port %s has %d of %d credits when nothing is under way",
				port, s.FreeCreditBlocks, s.CreditBlocks))
	}
}
