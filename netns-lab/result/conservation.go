// SPDX-License-Identifier: Apache-2.0

package result

import "fmt"

// Conservation returns what does not add up in the counters of a run, one line each:
//   - a port sent, still holds or lost in a reset every packet that it took in, and
//     it sent every byte if it sent every packet;
//   - the PFC log has a frame for each that a port counted, and PAUSE and RESUME take turns in it.
//
// A packet that a port refused (no buffer, full queue or ring, WRED, no class) was not taken in.
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
		of, pause := pausable{link, e.Class}, e.Kind == Pause
		if paused[of] == pause {
			violations = append(violations, fmt.Sprintf("port %s sent a %s frame for class %d at %d ns after another", link, e.Kind, e.Class, e.SentNs))
		}
		paused[of] = pause
	}
	for _, p := range r.Ports {
		violations = append(violations, p.conservation()...)
		for _, c := range []struct {
			kind    PFCKind
			counted uint64
		}{{Pause, p.PauseSent}, {Resume, p.ResumeSent}} {
			if n := logged[p.Name][c.kind]; n != c.counted {
				violations = append(violations, fmt.Sprintf("port %s sent %d %s frames, but the log has %d", p.Name, c.counted, c.kind, n))
			}
		}
	}
	return violations
}

func (p Port) conservation() []string {
	var violations []string
	if accounted := p.SentPackets + p.QueuedPackets + p.DroppedQueuedPackets(); accounted != p.EnqueuedPackets {
		violations = append(violations, fmt.Sprintf("port %s took in %d packets, but sent %d, holds %d and lost %d",
			p.Name, p.EnqueuedPackets, p.SentPackets, p.QueuedPackets, p.DroppedQueuedPackets()))
	}
	switch {
	case p.SentBytes > p.EnqueuedBytes:
		violations = append(violations, fmt.Sprintf("port %s sent %d bytes, but took in %d", p.Name, p.SentBytes, p.EnqueuedBytes))
	case p.SentPackets == p.EnqueuedPackets && p.SentBytes != p.EnqueuedBytes:
		violations = append(violations, fmt.Sprintf("port %s sent all packets, but %d of %d bytes", p.Name, p.SentBytes, p.EnqueuedBytes))
	}
	return violations
}
