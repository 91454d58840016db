// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"

	"pcn/netns-lab/result"
)

const dctcpYAML = `name: dctcp-oracle
topology: {kind: dumbbell, senders: 2, rate: 40Gbps, delay: 5us}
schemes: [pcn_dctcp, dctcp]
warmup: 0ms
duration: 5ms
sample: 20us
flows:
  - {name: F0, from: A0, to: B0, start: 0ms}
  - {name: F1, from: A1, to: B1, start: 0ms}
`

// TestDCTCPIsTheKernels: our DCTCP and the kernel's, in the same scenario, have the same windows.
func TestDCTCPIsTheKernels(t *testing.T) {
	file := filepath.Join(t.TempDir(), "dctcp.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(dctcpYAML), 0o600)))
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := run(t, "run", file, "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	ours, kernels := windows(t, filepath.Join(out, "pcn_dctcp")), windows(t, filepath.Join(out, "dctcp"))
	for _, flow := range []string{"F0", "F1"} {
		a, b := ours[flow], kernels[flow]
		qt.Assert(t, qt.HasLen(a, 250))
		qt.Assert(t, qt.HasLen(b, 250))
		sumA, sumB := 0.0, 0.0
		for i := range a {
			sumA, sumB = sumA+a[i], sumB+b[i]
			// marks fall on other packets as soon as one event is a nanosecond off
			qt.Check(t, qt.IsTrue(math.Abs(a[i]-b[i]) <= 0.15*b[i]), qt.Commentf("%s, bin %d: %g packets, the kernel's %g", flow, i, a[i], b[i]))
		}
		qt.Check(t, qt.IsTrue(math.Abs(sumA-sumB) <= 0.03*sumB), qt.Commentf("%s: mean %g packets, the kernel's %g", flow, sumA/250, sumB/250))
	}
}

// windows are the congestion windows of each flow at the end of each bin, in packets.
func windows(t *testing.T, dir string) map[string][]float64 {
	t.Helper()
	r, err := result.Read(dir)
	qt.Assert(t, qt.IsNil(err))
	out := map[string][]float64{}
	for _, s := range r.Series {
		if s.Kind == result.KindSender {
			out[s.Name] = append(out[s.Name], float64(s.CwndPackets))
		}
	}
	return out
}
