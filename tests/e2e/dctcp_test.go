// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
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

// TestDCTCPIsTheKernels: our DCTCP and the kernel's, in the same scenario, have the same windows. Marks fall on other
// packets as soon as one event is a nanosecond off, so which of the flows has the larger share for the whole run is chance
// (the kernel's own differ by 6%), and what is held closely is what both have together.
func TestDCTCPIsTheKernels(t *testing.T) {
	t.Parallel()
	const bins = 250
	file := filepath.Join(t.TempDir(), "dctcp.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(dctcpYAML), 0o600)))
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := run(t, "run", file, "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	ours, kernels := windows(t, filepath.Join(out, "pcn_dctcp")), windows(t, filepath.Join(out, "dctcp"))
	allA, allB := 0.0, 0.0
	for _, flow := range []string{"F0", "F1"} {
		a, b := ours[flow], kernels[flow]
		qt.Assert(t, qt.HasLen(a, bins))
		qt.Assert(t, qt.HasLen(b, bins))
		sumA, sumB := 0.0, 0.0
		for i := range a {
			sumA, sumB = sumA+a[i], sumB+b[i]
			near := b[max(i-1, 0):min(i+2, bins)] // a window that doubles in a round trip is sampled before or behind an ACK
			qt.Check(t, qt.IsTrue(a[i] >= 0.85*slices.Min(near) && a[i] <= 1.15*slices.Max(near)), qt.Commentf("%s, bin %d: %g packets, the kernel's %g", flow, i, a[i], near))
		}
		qt.Check(t, qt.IsTrue(math.Abs(sumA-sumB) <= 0.05*sumB), qt.Commentf("%s: mean %g packets, the kernel's %g", flow, sumA/bins, sumB/bins))
		allA, allB = allA+sumA, allB+sumB
	}
	qt.Check(t, qt.IsTrue(math.Abs(allA-allB) <= 0.01*allB), qt.Commentf("together: mean %g packets, the kernel's %g", allA/bins, allB/bins))
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
