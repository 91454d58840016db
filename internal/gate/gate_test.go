// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Messages leave in order, when all that they wait for has arrived and been released.
func TestGates(t *testing.T) {
	g := New(&experiment.Experiment{
		Flows: []experiment.Flow{
			{Size: 30, Message: 10}, {Size: 5}, {Size: 40, Message: 10},
		},
		Waits: []experiment.Wait{
			{
				For:  []experiment.Part{{Flow: 0, Messages: 2}, {Flow: 1, Messages: 1}},
				Then: []experiment.Part{{Flow: 2, Messages: 2}},
			},
			{
				For:  []experiment.Part{{Flow: 0, Messages: 1}},
				Then: []experiment.Part{{Flow: 2, Messages: 2}, {Flow: 2, Messages: 3}},
			},
		},
	})
	arrive := func(flow, messages int) (over []int) {
		g.Arrived(flow, messages, func(wait int) { over = append(over, wait) })
		return over
	}
	qt.Check(t, qt.Equals(g.Passed(0), 3))
	qt.Check(t, qt.Equals(g.Passed(1), 1))
	qt.Check(t, qt.Equals(g.Passed(2), 1)) // the second waits, twice
	qt.Check(t, qt.Equals(g.Next(0), 1))
	qt.Check(t, qt.Equals(g.Next(2), 0))

	qt.Check(t, qt.HasLen(arrive(0, 0), 0))
	qt.Check(t, qt.DeepEquals(arrive(0, 3), []int{1})) // two at once
	qt.Check(t, qt.Equals(g.Next(0), 0))
	qt.Check(t, qt.HasLen(g.Release(1), 2))
	qt.Check(t, qt.Equals(g.Passed(2), 1)) // still held by the other
	qt.Check(t, qt.DeepEquals(arrive(1, 1), []int{0}))
	qt.Check(t, qt.HasLen(arrive(1, 1), 0)) // once
	g.Release(0)
	qt.Check(t, qt.Equals(g.Passed(2), 4))
}
