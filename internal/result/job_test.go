// SPDX-License-Identifier: Apache-2.0

package result_test

import (
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

// A job lasts from the first start to the last arrival of its flows, and of no others.
func TestJobTime(t *testing.T) {
	run := &result.Run{
		Manifest: result.Manifest{DurationNs: 1000},
		Flows: []result.Flow{
			{Name: "a-0", Group: "a", StartNs: 100, EndNs: new(int64(400))},
			{Name: "a-1", Group: "a", StartNs: 50, EndNs: new(int64(300))},
			{Name: "b", Group: "b", StartNs: 400, EndNs: new(int64(700))},
			{Name: "other", Group: "other", StartNs: 0, EndNs: new(int64(900))},
			{Name: "unfinished", Group: "c", StartNs: 500},
			{Name: "late", Group: "c", StartNs: 600, EndNs: new(int64(1001))},
		},
	}
	for _, tc := range []struct {
		flows []string
		want  float64 // 0: not reached
	}{
		{[]string{"a"}, 350},
		{[]string{"a-0"}, 300},
		{[]string{"a", "b"}, 650},
		{[]string{"a", "unfinished"}, 0},
		{[]string{"late"}, 0},
	} {
		values, err := run.Measure(experiment.Measure{Metric: experiment.JobTime, Flows: tc.flows})
		if tc.want == 0 {
			qt.Check(t, qt.ErrorIs(err, result.ErrNotReached), qt.Commentf("%v", tc.flows))
			continue
		}
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(values, 1))
		qt.Check(t, qt.Equals(values[0].Value, tc.want), qt.Commentf("%v", tc.flows))
	}
}
