// SPDX-License-Identifier: Apache-2.0

package result

import "fmt"

// Conservation checks the counters of a run. It returns one line for each violation of these rules:
//   - A port sent, still holds or dropped every packet that it accepted, and it sent every byte if
//     it sent every packet. It did not accept the packets that it refused.
//   - The PFC log has a frame for each that a port counted, and PAUSE and RESUME alternate in it.
func (r *Run) Conservation() []string {
	logged := make(map[string]map[PFCKind]uint64)
	type pausable struct {
		link  string
		class uint8
	}
	paused := make(map[pausable]bool)
	var violations []string
	for _, e := range r.PFC {
		link := e.link()
		if logged[link] == nil {
			logged[link] = make(map[PFCKind]uint64)
		}
		logged[link][e.Kind]++
		key, pause := pausable{link, e.Class}, e.Kind == Pause
		if paused[key] == pause {
			violations = append(violations, fmt.Sprintf(
				"port %s sent two %s frames in a row for class %d, the second at %d ns",
				link, e.Kind, e.Class, e.SentNs))
		}
		paused[key] = pause
	}
	for _, p := range r.Ports {
		violations = append(violations, p.conservation()...)
		for _, c := range []struct {
			kind    PFCKind
			counted uint64
		}{{Pause, p.PauseSent}, {Resume, p.ResumeSent}} {
			if n := logged[p.Name][c.kind]; n != c.counted {
				violations = append(violations, fmt.Sprintf(
					"port %s sent %d %s frames, but the log has %d", p.Name, c.counted, c.kind, n))
			}
		}
	}
	return violations
}

func (p Port) conservation() []string {
	var violations []string
	if accounted := p.SentPackets + p.QueuedPackets +
		p.DroppedQueuedPackets(); accounted != p.EnqueuedPackets {
		violations = append(violations, fmt.Sprintf(
			"port %s accepted %d packets, but sent %d, holds %d and dropped %d",
			p.Name, p.EnqueuedPackets, p.SentPackets, p.QueuedPackets, p.DroppedQueuedPackets()))
	}
	switch {
	case p.SentBytes > p.EnqueuedBytes:
		violations = append(violations, fmt.Sprintf("port %s sent %d bytes, but accepted %d",
			p.Name, p.SentBytes, p.EnqueuedBytes))
	case p.SentPackets == p.EnqueuedPackets && p.SentBytes != p.EnqueuedBytes:
		violations = append(violations, fmt.Sprintf(
			"port %s sent all packets, but only %d of %d bytes",
			p.Name, p.SentBytes, p.EnqueuedBytes))
	}
	return violations
}
