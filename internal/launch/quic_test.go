// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
)

const quicNetwork = `name: quic
topology: {kind: dumbbell, senders: 1, receivers: 1, rate: 100Mbps, delay: 10ms,
  links: [{link: S0-S1, %s}]}
schemes: [cubic]
frame: 1514B
switch: {pfc: {off: true}, port_buffer: 500KB}
duration: 1000s
warmup: 0ms
sample: 1s
seed: %d
captures: [A0]
programs:
  - {name: server, host: B0, command: [%[3]s, server], server: true}
  - {name: client, host: A0, after: {program: server, says: listening},
     command: [%[3]s, B0, "%[4]d"]}
expect:
  - {what: it ends well, program: client, exit: 0}
`

// A library of QUIC shakes hands over a link that loses 1% in bursts. Each seed has losses of its
// own, and does the same again. Most handshakes lose nothing, and take as long as on a clean link;
// a loss costs its timeouts.
func TestQUICOverBurstsOfLosses(t *testing.T) {
	program := buildModule(t, "quic")
	type shaken struct {
		run    *result.Run
		tookMs []float64
	}
	shake := func(loss string, seed, count, times int) (all []shaken) {
		e, err := experiment.Parse("quic.yaml",
			fmt.Appendf(nil, quicNetwork, loss, seed, program, count))
		qt.Assert(t, qt.IsNil(err))
		for _, run := range runTimes(t, e, "cubic", times) {
			var said struct {
				Took []float64 `json:"handshake_ms"`
			}
			out := run.Programs[1].Files[result.StdoutFile]
			qt.Assert(t, qt.IsNil(json.Unmarshal(out, &said)))
			qt.Assert(t, qt.HasLen(said.Took, count))
			all = append(all, shaken{run, said.Took})
		}
		return all
	}
	const (
		count, rttMs = 400, 60.0
		lossy        = "error_rate: 0.01, error_burst: 3"
		computesMs   = 0.1 // frames of a handshake on three links of 100 Mbit/s take 0.8 ms
	)
	clean := shake("delay: 10ms", 1, 2, 1)[0].tookMs
	qt.Check(t, qt.IsTrue(clean[1] > rttMs && clean[1] < rttMs+2), qt.Commentf("%v", clean))
	first := shake(lossy, 1, count, 1)[0]
	for _, again := range shake(lossy, 1, count, 2) { // each beside a busy CPU
		qt.Check(t, qt.HasLen(result.Diff(first.run, again.run), 0))
	}
	other := shake(lossy, 2, count, 1)[0]
	qt.Check(t, qt.IsFalse(slices.Equal(first.tookMs, other.tookMs)))

	for _, took := range [][]float64{first.tookMs, other.tookMs} {
		slices.Sort(took)
		qt.Check(t, qt.IsTrue(took[count/2] < clean[1]+computesMs), qt.Commentf("%v", took))
		late := 0
		for _, ms := range took {
			if ms > clean[1]+computesMs {
				late++
			}
		}
		t.Logf("%d of %d handshakes are late; 99%%: %.1f ms, most: %.1f ms", late, count,
			took[count*99/100], took[count-1])
		// a burst begins with 0.34%% of packets, of which a handshake has about ten
		qt.Check(t, qt.IsTrue(late > 0 && late < count/10), qt.Commentf("%d", late))
	}
}
