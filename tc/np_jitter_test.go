// SPDX-License-Identifier: Apache-2.0

package tc

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// With jitter, windows are T +- jitter, T on average, and not all alike.
func TestNPJitter(t *testing.T) {
	const periodNs, jitterNs, gapNs, packets = 50_000, 12_500, 2_500, 3_000
	n, dev := newNP(t, npOptions{TNs: periodNs, TJitterNs: jitterNs, CongestedShare: 0.95,
		IdealTime: true})
	frame := someFlow().tcp(t, ect0, 1000)
	var lengths []uint64
	var cnps, opened uint64
	for i := range uint64(packets) {
		now := 1_000_000 + i*gapNs
		n.arrive(t, dev, now, frame)
		counts, err := n.Counts()
		qt.Assert(t, qt.IsNil(err))
		if counts["cnp_increase"] == cnps {
			continue
		}
		cnps = counts["cnp_increase"]
		if opened != 0 { // the first window opened with the first packet
			lengths = append(lengths, now-opened)
		}
		opened = now
	}
	var sum, shortest, longest uint64
	shortest = packets * gapNs
	for _, l := range lengths {
		sum += l
		shortest, longest = min(shortest, l), max(longest, l)
	}
	mean := float64(sum) / float64(len(lengths))
	t.Logf("%d windows of %d to %d ns, mean %.0f ns", len(lengths), shortest, longest, mean)
	qt.Check(t, qt.IsTrue(shortest >= periodNs-jitterNs && longest <= periodNs+jitterNs+gapNs))
	qt.Check(t, qt.IsTrue(longest-shortest > jitterNs),
		qt.Commentf("the windows are too much alike"))
	qt.Check(t, qt.IsTrue(mean > 0.95*periodNs && mean < 1.05*periodNs))
}
