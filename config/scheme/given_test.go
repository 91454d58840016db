// SPDX-License-Identifier: Apache-2.0

package scheme_test

import (
	"math"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/config/scheme"
)

var network = scheme.Network{LineRateBps: 40e9, BaseRTTNs: 10_000, FrameBytes: 1000}

// What no file could say is refused too: keys that there are not, values of another kind, numbers
// that are none.
func TestValuesAreChecked(t *testing.T) {
	pcn := scheme.Builtin().Sections()["pcn"]
	for _, c := range []struct {
		key   string
		value scheme.Value
		want  scheme.Problem
	}{
		{"w_maxi", scheme.Value{Kind: scheme.KindRatio, Number: 0.1},
			scheme.Problem{"w_maxi", "there is no such parameter", `did you mean "w_max"?`}},
		{"w_min", scheme.Value{Kind: scheme.KindTime, Number: 0.1},
			scheme.Problem{"w_min", "it is a time", "want a ratio"}},
		{"w_min", scheme.Value{Kind: scheme.KindRatio, Number: math.NaN()},
			scheme.Problem{"w_min", "NaN is out of range", "0.0000152587890625 to w_max = 0.5"}},
		{"feedback", scheme.Value{Kind: scheme.KindChoice, Number: 7},
			scheme.Problem{"feedback", "there is no choice 7", "cnp, ack, auto, ece"}},
	} {
		_, problems := pcn.Resolve(scheme.Settings{Given: map[string]scheme.Value{c.key: c.value}},
			network)
		qt.Assert(t, qt.IsTrue(len(problems) > 0), qt.Commentf("%s", c.key))
		qt.Check(t, qt.Equals(problems[0], c.want))
	}
}

// The base RTT counts where a parameter is left to it, and only there.
func TestBaseRTTIsUsed(t *testing.T) {
	timely := scheme.Builtin().Sections()["timely"]
	for text, want := range map[string]bool{"0": true, "20us": false} {
		v, err := timely.Param("min_rtt").Parse(text)
		qt.Assert(t, qt.IsNil(err))
		values,
			problems := timely.Resolve(scheme.Settings{Given: map[string]scheme.Value{"min_rtt": v}}, network)
		qt.Assert(t, qt.HasLen(problems, 0))
		qt.Check(t, qt.Equals(values.Uses("base_rtt"), want), qt.Commentf("min_rtt %s", text))
		qt.Check(t, qt.IsTrue(values.Uses("line_rate")))
	}
}
