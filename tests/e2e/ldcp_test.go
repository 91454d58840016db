// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
)

const feedbackYAML = `name: ldcp-feedback
topology: {kind: star, hosts: 4, rate: 40Gbps, delay: 7.5us}
schemes: [ldcp]
ldcp: {first_rtt: ect} # no losses: behind one AccECN's sender assumes that its three bits wrapped
switch: {pfc: {off: true}}
warmup: 0ms
duration: 2ms
sample: 20us
flows:
  - {name: F, from: H0..H3, to: R0, start: 0ms}
cases:
  - {name: echo-every-2nd, set: {ldcp.ack_every: 2}}
  - {name: accecn-every-2nd, set: {ldcp.ack_every: 2, ldcp.feedback: accecn}}
`

// TestLDCPFeedback: senders hear of every mark, also from ACKs that cover two packets, by the echo and by AccECN.
func TestLDCPFeedback(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "feedback.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(feedbackYAML), 0o600)))
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := run(t, "run", file, "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	for _, feedback := range []string{"echo-every-2nd", "accecn-every-2nd"} {
		r, err := result.Read(filepath.Join(out, feedback, "ldcp"))
		qt.Assert(t, qt.IsNil(err))
		packets := uint64(0)
		for _, f := range r.Flows {
			packets += f.Packets
			// marks of the last round trip are under way
			missing := int64(f.MarkedPackets) - int64(f.EchoedPackets)
			qt.Check(t, qt.IsTrue(f.EchoedPackets > 20 && missing <= 10 && missing >= 0),
				qt.Commentf("%s, flow %s: %d packets marked, the sender heard of %d", feedback, f.Name, f.MarkedPackets, f.EchoedPackets))
		}
		for _, p := range r.Ports {
			if p.Name == "R0->S0" {
				qt.Check(t, qt.IsTrue(p.SentPackets < packets*3/4), qt.Commentf("%s: %d ACKs for %d packets", feedback, p.SentPackets, packets))
			}
		}
	}
}
