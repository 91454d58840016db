// SPDX-License-Identifier: Apache-2.0

package autorule

import (
	"flag"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/sim"
)

// All 50 networks take two minutes of CPU: `go test ./tests/autorule -v -networks 50`. Others come
// from other streams. Continuous integration runs the first few.
var (
	networks = flag.Int("networks", 8, "how many networks to run")
	stream   = flag.Uint64("stream", 1, "the stream of random numbers that they come from")
)

// loops is how long a run lasts, from the start of all flows on: a loop is T and the round trip.
const loops = 100

// With `T: auto` and `w_min: auto` nothing is lost, the link is used, and flows are equal, from
// their start on.
func TestAutoRule(t *testing.T) {
	for _, b := range Bottlenecks(*stream, *networks) {
		t.Run(strings.ReplaceAll(b.String(), "/", " per "), func(t *testing.T) {
			t.Parallel()
			e := parse(t, b.Experiment(1, 1_000_000))
			values := e.Section("pcn")
			loopNs := int64(values.Get("T").Number) + int64(b.RTTNs)
			e = parse(t, b.Experiment(loops, loopNs))
			run, err := sim.New().Run(t.Context(), e, "pcn", func(float64) {})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid))
			qt.Check(t, qt.Equals(run.Manifest.BaseRTTNs, int64(b.RTTNs)/2*2))
			for _, o := range result.Evaluate(e, run) {
				t.Logf("%s, T %s, w_min %s: %s %s", b, values.Get("T"), values.Get("w_min"),
					o.Expect.What, o.Value())
				qt.Check(t, qt.IsTrue(o.Pass), qt.Commentf("%s: %s", o.Expect.What, o.Value()))
			}
		})
	}
}

func parse(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("bottleneck.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err), qt.Commentf("%s", text))
	return e
}
