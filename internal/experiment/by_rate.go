// SPDX-License-Identifier: Apache-2.0

package experiment

import "math/bits"

// inProportion returns value * rate / reference, rounded down. Values below 2^40 and rates up to
// 800 Gbit/s do not overflow, unless the reference is below 1 kbit/s.
func inProportion(value, rate, reference uint64) uint64 {
	high, low := bits.Mul64(value, rate)
	quotient, _ := bits.Div64(high, low, reference)
	return quotient
}

// MarkingAt returns the RED marking of a switch port whose link has this rate; false if switches do
// not mark by RED under the scheme.
func (e *Experiment) MarkingAt(name string, rateBps uint64) (Marking, bool) {
	m, ok := e.MarkingOf(name)
	m.KMin, m.KMax = e.thresholdAt(m.KMin, rateBps), max(e.thresholdAt(m.KMax, rateBps), 1)
	return m, ok
}

// WREDAt returns the queue at which a switch port whose link has this rate drops packets that are
// not ECN-capable, if the threshold is this at the rate of the topology.
func (e *Experiment) WREDAt(threshold, rateBps uint64) uint64 {
	return max(uint64(e.thresholdAt(Bytes(threshold), rateBps)), 1)
}

func (e *Experiment) thresholdAt(b Bytes, rateBps uint64) Bytes {
	if !e.Switch.MarkingByRate {
		return b
	}
	return Bytes(inProportion(uint64(b), rateBps, uint64(e.Topology.Rate)))
}

// maxAlpha is the largest share of the free buffer.
const maxAlpha = Ratio(16)

// AlphaAt returns the share of the free buffer that an ingress port may hold whose link has this
// rate.
func (d *DynamicPFC) AlphaAt(rateBps uint64, line Rate) Ratio {
	if !d.ByRate {
		return d.Alpha
	}
	return min(d.Alpha*Ratio(rateBps)/Ratio(line), maxAlpha)
}
