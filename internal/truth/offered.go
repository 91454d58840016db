// SPDX-License-Identifier: Apache-2.0

package truth

// Stream is a controlled flow, which offers what its control lets it send.
type Stream struct {
	StartNs   uint64
	WireBytes float64 // of all its frames; 0: it never ends
	RateBps   uint64  // before a rate was sampled
	LimitBps  uint64
	// Sampled returns its rate in the bin that begins at a time; 0: not known.
	Sampled func(fromNs, toNs uint64) uint64
}

// Offered returns what the stream offers, from its start until it has sent its size.
func (s Stream) Offered() Offered {
	left := s.WireBytes
	return func(fromNs, toNs uint64) float64 {
		rate := s.RateBps
		if sampled := s.Sampled(fromNs, toNs); sampled > 0 {
			rate = min(sampled, s.LimitBps)
		}
		if toNs <= s.StartNs {
			return 0
		}
		bytes := float64(rate) * float64(toNs-max(fromNs, s.StartNs)) / 8e9
		if s.WireBytes != 0 {
			bytes = min(bytes, left)
			left -= bytes
		}
		return bytes
	}
}

// Burst is a flow that nothing controls.
type Burst struct {
	StartNs   uint64
	WireBytes float64
	Frames    int
	GapNs     uint64 // between two frames; 0: all at once
}

// Offered returns what the burst offers: all at its start, or evenly at its rate.
func (b Burst) Offered() Offered {
	left := b.WireBytes
	frame := left / float64(b.Frames)
	return func(fromNs, toNs uint64) float64 {
		if toNs <= b.StartNs {
			return 0
		}
		bytes := left
		if b.GapNs != 0 {
			bytes = min(left, frame*float64(toNs-max(fromNs, b.StartNs))/float64(b.GapNs))
		}
		left -= bytes
		return bytes
	}
}
