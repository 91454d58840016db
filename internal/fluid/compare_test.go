// SPDX-License-Identifier: Apache-2.0

package fluid

import (
	"slices"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
)

// The models agree with packets where they hold: the mean queue and the sum of the rates within
// 10%. Where that is: docs/fluid.md.
func TestAgainstPackets(t *testing.T) {
	for _, c := range []struct {
		scheme, text string
		queueShare   float64 // 0: the model has no one queue
		seeds        int
	}{
		// The model knows no phases: of packets, which flow's period ends first moves the queue by
		// 10%. So flows start within one period, and the median of five seeds counts.
		{"pcn", dumbbell(8, "40Gbps", "2us", "60ms", ", initial_rate: 5Gbps, start_jitter: 500us",
			"pcn: {T: 500us}"), 0.1, 5},
		{"qcn", dumbbell(10, "10Gbps", "5us", "80ms", ", initial_rate: 1500Mbps", ""), 0.1, 1},
		{"dcqcn", dumbbell(40, "40Gbps", "2us", "30ms", ", initial_rate: 1Gbps",
			"dcqcn: {rate_ai: 5Mbps}"), 0.1, 1},
		{"timely", dumbbell(4, "10Gbps", "5us", "40ms", "", ""), 0, 1},
		{"pcn_dctcp", dumbbell(4, "10Gbps", "5us", "20ms", "", ""), 0.1, 1},
		{"pcn_dctcp", dumbbell(10, "10Gbps", "10us", "20ms", "", ""), 0.1, 1},
		{"ldcp", dumbbell(4, "10Gbps", "5us", "20ms", "", ""), 0.1, 1},
	} {
		t.Run(c.scheme, func(t *testing.T) {
			t.Parallel()
			e := parse(t, strings.Replace(c.text, "[pcn]", "["+c.scheme+"]", 1))
			theory := run(t, e, c.scheme)
			from := int64(e.Duration) / 2
			total := func(r *result.Run) (sum float64) {
				for _, rate := range rates(r, from) {
					sum += rate
				}
				return sum
			}
			var queues []float64
			for seed := range c.seeds {
				e.Seed = uint64(seed + 1)
				packets, err := sim.New().Run(t.Context(), e, c.scheme, func(float64) {})
				qt.Assert(t, qt.IsNil(err))
				within(t, "the sum of rates", total(theory), total(packets), 0.1)
				queues = append(queues, mean(queue(packets, from)))
			}
			slices.Sort(queues)
			median := queues[len(queues)/2]
			if c.queueShare > 0 {
				within(t, "the mean queue", mean(queue(theory, from)), median, c.queueShare)
			}
			t.Logf("queue %.0f, of packets %.0f", mean(queue(theory, from)), median)
		})
	}
}
