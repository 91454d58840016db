// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

// fileOf returns the file that a document has in a block with its name.
func fileOf(t *testing.T, document, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../docs/" + document)
	qt.Assert(t, qt.IsNil(err))
	_, block, ok := strings.Cut(string(text), "```yaml file="+name+"\n")
	qt.Assert(t, qt.IsTrue(ok))
	block, _, _ = strings.Cut(block, "```")
	file := filepath.Join(t.TempDir(), name)
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(block), 0o600)))
	return file
}

// runsOnBoth runs a file on Linux and in the simulator. It returns each engine's runs by their
// labels.
func runsOnBoth(t *testing.T, file string) (linux, simulated map[string]*result.Run) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	stdout, stderr, code := run(t, "run", file, "--engine", "kernel,sim", "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s%s", stdout, stderr))
	groups, err := launch.ReadRuns([]string{out})
	qt.Assert(t, qt.IsNil(err))
	linux, simulated = map[string]*result.Run{}, map[string]*result.Run{}
	for _, g := range groups {
		for _, r := range g.Runs {
			m := r.Manifest
			qt.Check(t, qt.Equals(m.Verdict, result.Valid), qt.Commentf("%v", m.Reasons))
			engine := linux
			if m.RanOn() == "sim" {
				engine = simulated
			}
			engine[result.LabelOf(m.Case, m.Scheme)] = r
		}
	}
	qt.Assert(t, qt.Equals(len(linux), len(simulated)))
	return linux, simulated
}

// A watchdog on Linux finds a storm in the same ns as the simulator's, and ends its action in the
// same: both look at ideal times. Hosts on Linux are a delay of their link ahead, so a packet more
// or less is in the queue.
func TestStormsOnBothEngines(t *testing.T) {
	t.Parallel()
	linux, simulated := runsOnBoth(t, fileOf(t, "storms.md", "small-storm.yaml"))
	qt.Assert(t, qt.HasLen(simulated, 4))
	for label, want := range simulated {
		got := linux[label]
		qt.Assert(t, qt.HasLen(got.Watchdog, len(want.Watchdog)), qt.Commentf("%s", label))
		qt.Check(t, qt.Equals(len(want.Watchdog) == 0, strings.HasPrefix(label, "none/")))
		for i, w := range want.Watchdog {
			g := got.Watchdog[i]
			apart := math.Abs(float64(g.DroppedPackets) - float64(w.DroppedPackets))
			qt.Check(t, qt.IsTrue(apart <= 8), qt.Commentf("%s: %d and %d packets dropped", label,
				g.DroppedPackets, w.DroppedPackets))
			qt.Check(t, qt.Equals(w.DroppedPackets > 0, strings.HasPrefix(label, "drop/")))
			g.DroppedPackets = w.DroppedPackets
			qt.Check(t, qt.Equals(g, w), qt.Commentf("%s", label))
		}
		pauses := func(r *result.Run) (n [2]int) {
			for _, e := range r.PFC {
				if e.From == "H2" { // the broken adapter
					n[0]++
					qt.Check(t, qt.Equals(e.EffectNs-e.SentNs, 5000))
				} else {
					n[1]++
				}
			}
			return n
		}
		qt.Check(t, qt.Equals(pauses(got), pauses(want)), qt.Commentf("%s", label))
		for i, p := range want.Ports {
			qt.Check(t, qt.Equals(got.Ports[i].PauseSent, p.PauseSent),
				qt.Commentf("%s: %s", label, p.Name))
		}
	}
}

// Classes share a link by their weights on both engines, and PFC and drops keep the same queue.
func TestClassesOnBothEngines(t *testing.T) {
	t.Parallel()
	linux, simulated := runsOnBoth(t, fileOf(t, "classes.md", "classes.yaml")) // meets its bounds
	qt.Assert(t, qt.HasLen(simulated, 2))
	for label, want := range simulated {
		for i, p := range want.Ports {
			if p.Name != "S0->R0" {
				continue
			}
			got := linux[label].Ports[i]
			qt.Check(t, qt.IsTrue(math.Abs(float64(got.QueueMaxBytes)/float64(p.QueueMaxBytes)-1) <
				0.01), qt.Commentf("%s: %d and %d B", label, got.QueueMaxBytes, p.QueueMaxBytes))
			qt.Check(t, qt.IsTrue(got.DroppedTailPackets > 0 && p.DroppedTailPackets > 0))
		}
		pauses, wanted := len(linux[label].PFC), len(want.PFC)
		qt.Check(t, qt.IsTrue(math.Abs(float64(pauses-wanted)) <= 0.02*float64(wanted)),
			qt.Commentf("%s: %d and %d PAUSE and RESUME", label, pauses, wanted))
	}
}

// A switch with values of its own keeps another queue than the others, the same on both engines.
func TestOwnSwitchesOnBothEngines(t *testing.T) {
	t.Parallel()
	const text = `
name: own
topology: {kind: dumbbell, senders: 2, receivers: 1, rate: 10Gbps, delay: 2us,
  links: [{link: B0-S1, rate: 2.5Gbps}]}
frame: 1000B
schemes: [pfc]
warmup: 0ms
duration: 1ms
switch: {buffer: 4MB, pfc: {xoff: 200KB}, own: [{at: S1, xoff: 60KB}]}
flows: [{name: F, from: A0..A1, to: B0, start: 0ms}]
`
	file := filepath.Join(t.TempDir(), "own.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(text), 0o600)))
	linux, simulated := runsOnBoth(t, file)
	for _, engine := range []map[string]*result.Run{linux, simulated} {
		for _, p := range engine["pfc"].Ports {
			// what comes in until PAUSE works: 4 us of 10 Gbit/s, and two frames
			if p.Name == "S1->B0" {
				qt.Check(t, qt.IsTrue(p.QueueMaxBytes > 60_000 && p.QueueMaxBytes <= 67_000),
					qt.Commentf("%d B", p.QueueMaxBytes))
			}
			if p.Name == "S0->S1" { // of two ingress ports, each with the XOFF of all
				qt.Check(t, qt.IsTrue(p.QueueMaxBytes > 400_000 && p.QueueMaxBytes <= 414_000),
					qt.Commentf("%d B", p.QueueMaxBytes))
			}
		}
	}
}
