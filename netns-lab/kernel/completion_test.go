// SPDX-License-Identifier: Apache-2.0

package kernel

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/workload"
)

const workloadYAML = `
name: workload
topology: {kind: leaf-spine, leaves: 2, spines: 2, hosts: 2, rate: 10Gbps, delay: 5us, spine_links: {rate: 40Gbps, delay: 2us}}
frame: 1000B
schemes: [pcn]
warmup: 0ms
duration: 0.6ms
sample: 50us
workload: {cdf: ali-storage-2019, load: 0.3, incast: 1..2, until: 0.3ms}
`

// TestIdealCompletion: counted by hand, packet by packet, for frames of 1000 B of which 66 are
// headers.
func TestIdealCompletion(t *testing.T) {
	p, err := newPlan(parse(t, workloadYAML))
	qt.Assert(t, qt.IsNil(err))
	// A byte takes 0.8 ns at 10 Gbit/s and 0.2 ns at 40 Gbit/s. There and back, delays are 20 us at
	// a leaf and 28 us over a spine, and the ACK of 66 B takes 2 x 52.8 ns on its way at a leaf, 2
	// x 13.2 ns more over a spine.
	const atLeaf, overSpine = 20_000 + 105.6, 28_000 + 132
	for _, c := range []struct {
		to   string
		size uint64
		want float64
	}{
		{"H1", 1, atLeaf + 2*53.6},               // 67 B over two links
		{"H1", 934, atLeaf + 2*800},              // one full frame
		{"H1", 935, atLeaf + 2*800 + 53.6},       // the second has 67 B, and waits behind the first
		{"H1", 9340, atLeaf + 11*800},            // ten full frames
		{"H2", 1, overSpine + 2*53.6 + 2*13.4},   // four links
		{"H2", 935, overSpine + 2*1000 + 53.6},   // waits at both hosts' links, and catches up between
		{"H2", 9340, overSpine + 11*800 + 2*200}, // faster links between do not count but for one frame
		{"H2", 9341, overSpine + 11*800 + 400 + 53.6},
	} {
		got := p.idealNs("H0", c.to, c.size)
		// each of up to four links rounds down, there and back
		qt.Check(t, qt.IsTrue(float64(got) <= c.want && c.want-float64(got) < 8),
			qt.Commentf("%d B to %s: %d ns, want %g", c.size, c.to, got, c.want))
	}
}

// TestWorkload: flows complete, none faster than can be; and so do those of the trace that the run
// recorded.
func TestWorkload(t *testing.T) {
	run := runShort(t, workloadYAML, "pcn")
	qt.Check(t, qt.Equals(run.Manifest.Verdict, result.Valid), qt.Commentf("%s", run.Manifest.Reasons))
	flows := parse(t, workloadYAML).Flows
	qt.Assert(t, qt.HasLen(run.Completions, len(flows)))
	qt.Assert(t, qt.HasLen(run.Trace, len(flows)))
	done := 0
	for i, c := range run.Completions {
		f := flows[i]
		about := qt.Commentf("%+v", c)
		qt.Check(t, qt.Equals(run.Trace[i], workload.Flow{StartNs: int64(f.Start), Src: f.From, Dst: f.To, SizeBytes: uint64(f.Size)}))
		qt.Check(t, qt.Equals(c.Flow+c.Src+c.Dst, f.Name+f.From+f.To))
		qt.Check(t, qt.Equals(c.SizeBytes, uint64(f.Size)), about)
		qt.Check(t, qt.Equals(c.StartNs, int64(f.Start)), about) // to the ns
		if c.FCTNs == nil {
			qt.Check(t, qt.IsNil(c.Slowdown), about)
			continue
		}
		done++
		qt.Check(t, qt.IsTrue(*c.Slowdown >= 1 && *c.Slowdown < 20), about)
		if i == 0 { // which is alone
			qt.Check(t, qt.IsTrue(*c.Slowdown < 1.1), about)
		}
	}
	qt.Check(t, qt.IsTrue(done >= 6 && done >= len(flows)*3/4), qt.Commentf("%d of %d flows", done, len(flows)))

	again := runShort(t, replayOf(t, run), "pcn")
	qt.Assert(t, qt.DeepEquals(again.Trace, run.Trace))
	for i, c := range again.Completions {
		was := run.Completions[i]
		about := qt.Commentf("%s, %d B: %d ns, was %d", c.Flow, c.SizeBytes, value(c.FCTNs),
			value(was.FCTNs))
		qt.Check(t, qt.Equals(c.StartNs, was.StartNs), about)
		qt.Check(t, qt.Equals(c.IdealNs, was.IdealNs), about)
		qt.Check(t, qt.Equals(c.FCTNs == nil, was.FCTNs == nil), about)
		// the kernel's timers are at another place of their tick
		if c.FCTNs != nil && was.FCTNs != nil {
			off := *c.FCTNs - *was.FCTNs
			qt.Check(t, qt.IsTrue(max(off, -off) < 2000+*was.FCTNs/20), about)
		}
	}
}

// replayOf is the experiment with the trace that a run recorded in place of the workload.
func replayOf(t *testing.T, run *result.Run) string {
	t.Helper()
	var text bytes.Buffer
	qt.Assert(t, qt.IsNil(workload.WriteTrace(&text, run.Trace)))
	before, _, _ := strings.Cut(workloadYAML, "workload: {")
	return fmt.Sprintf("%strace: {file: trace.csv}\nfiles: {trace.csv: %q}\n", before, text.String())
}

// value is 0 if there is none.
func value(ns *int64) int64 {
	if ns == nil {
		return 0
	}
	return *ns
}
