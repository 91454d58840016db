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
	shake := func(loss string, seed, count int) (*result.Run, []float64) {
		e, err := experiment.Parse("quic.yaml",
			fmt.Appendf(nil, quicNetwork, loss, seed, program, count))
		qt.Assert(t, qt.IsNil(err))
		run := runPrograms(t, e, "cubic")
		var said struct {
			Took []float64 `json:"handshake_ms"`
		}
		qt.Assert(t, qt.IsNil(json.Unmarshal(run.Programs[1].Files[result.StdoutFile], &said)))
		qt.Assert(t, qt.HasLen(said.Took, count))
		return run, said.Took
	}
	const (
		count, rttMs = 400, 60.0
		lossy        = "error_rate: 0.01, error_burst: 3"
		computesMs   = 0.1 // frames of a handshake on three links of 100 Mbit/s take 0.8 ms
	)
	_, clean := shake("delay: 10ms", 1, 2)
	qt.Check(t, qt.IsTrue(clean[1] > rttMs && clean[1] < rttMs+2), qt.Commentf("%v", clean))
	first, took := shake(lossy, 1, count)
	again, _ := shake(lossy, 1, count)
	qt.Check(t, qt.HasLen(result.Diff(first, again), 0))
	busy(t)
	again, _ = shake(lossy, 1, count)
	qt.Check(t, qt.HasLen(result.Diff(first, again), 0))
	_, other := shake(lossy, 2, count)
	qt.Check(t, qt.IsFalse(slices.Equal(took, other)))

	for _, took := range [][]float64{took, other} {
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
