// SPDX-License-Identifier: Apache-2.0

package kernel

import "github.com/pcn-linux/pcn/internal/experiment"

// window is the measured time, on the papers' clock: whole bins, from the warm-up on.
type window struct {
	t0Ns     uint64 // t = 0
	endNs    uint64
	warmupNs uint64
	sampleNs uint64 // length of a bin
}

func newWindow(e *experiment.Experiment, t0Ns uint64) window {
	return window{
		t0Ns: t0Ns, endNs: t0Ns + uint64(e.Duration),
		warmupNs: uint64(e.Warmup), sampleNs: uint64(e.Sample),
	}
}

func (w window) beginNs() uint64 { return w.t0Ns - w.warmupNs }

// since converts a time to one counted from t = 0.
func (w window) since(ns uint64) int64 { return int64(ns - w.t0Ns) }

// bins are the first bin, and the one after the last.
func (w window) bins() (first, end uint64) { return w.beginNs() / w.sampleNs, w.endNs / w.sampleNs }
