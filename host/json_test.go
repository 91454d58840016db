// SPDX-License-Identifier: Apache-2.0

package host_test

import (
	"encoding/json"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/host"
	"github.com/pcn-linux/pcn/loader"
)

// What is written as JSON has the keys of a flow, and its own.
func TestFlowsAsJSON(t *testing.T) {
	f := host.LiveFlow{Control: "pcn", Flow: loader.Flow{SendRateBps: 7, ECN: true}}
	for _, v := range []any{f, host.TraceEvent{At: 3, Cwnd: 4, LiveFlow: f, NewLosses: 5}} {
		text, err := json.Marshal(v)
		qt.Assert(t, qt.IsNil(err))
		var got map[string]any
		qt.Assert(t, qt.IsNil(json.Unmarshal(text, &got)))
		qt.Check(t, qt.Equals[any](got["control"], "pcn"))
		qt.Check(t, qt.Equals[any](got["send_rate_bps"], 7.0))
		qt.Check(t, qt.Equals[any](got["ecn"], true))
		if _, isEvent := v.(host.TraceEvent); isEvent {
			qt.Check(t, qt.Equals[any](got["at_ns"], 3.0))
			qt.Check(t, qt.Equals[any](got["cwnd_packets"], 4.0))
			qt.Check(t, qt.Equals[any](got["new_losses"], 5.0))
		}
	}
}
