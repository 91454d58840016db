// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

const ownControlsYAML = `name: own-controls
topology: {kind: dumbbell, senders: 2, rate: 1Gbps, delay: 50us, bottleneck: {rate: 100Mbps}}
switch: {pfc: {off: true}, port_buffer: 50KB}
marking: {kmin: 1GB, kmax: 1GB, pmax: 1}
schemes: [reno]
duration: 100ms
flows:
  - {name: F0, from: A0, to: B0}
  - {name: F1, from: A1, to: B1, start: 20ms}
`

// TestControlOfFlows: flows that have a control of their own do what they do under its scheme, to
// the byte, and not what they do under the file's.
func TestControlOfFlows(t *testing.T) {
	t.Parallel()
	flowsOf := func(scheme, old, new string) string {
		file := filepath.Join(t.TempDir(), "own.yaml")
		text := strings.ReplaceAll(ownControlsYAML, old, new)
		qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
		out := filepath.Join(t.TempDir(), "out")
		stdout, stderr, code := run(t, "run", file, "--out", out)
		qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
		flows := string(read(t, out, scheme, "flows.csv")) +
			string(read(t, out, scheme, "series.csv"))
		return strings.ReplaceAll(flows, scheme, "") // in a column
	}
	cubic := flowsOf("cubic", "[reno]", "[cubic]")
	qt.Check(t, qt.Equals(flowsOf("reno", "from:", "control: cubic, from:"), cubic))
	qt.Check(t, qt.Not(qt.Equals(flowsOf("reno", "from: A1", "control: cubic, from: A1"), cubic)))
}
