// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/launch"
	"github.com/pcn-linux/pcn/internal/result"
)

func TestWatcher(t *testing.T) {
	var out bytes.Buffer
	v := newWatcher(&out, "hol", 4)
	now := time.Unix(1000, 0)
	v.began, v.now = now, func() time.Time { return now }
	frame := func(from string, kind result.PFCKind) result.PFCEvent {
		return result.PFCEvent{From: from, To: "S0", Class: 3, Kind: kind}
	}
	v.set("pfc", 1) // shows, and the next not before two seconds have passed
	out.Reset()
	v.see(1, "pcn, seed 1", &result.Moment{PFC: []result.PFCEvent{frame("S1", result.Pause),
		frame("S2", result.Pause)}})
	qt.Check(t, qt.Equals(out.String(), ""))
	now = now.Add(10 * time.Second)
	v.see(1, "pcn, seed 1", &result.Moment{TimeNs: 1_500_000, PFC: []result.PFCEvent{
		frame("S1", result.Resume)}, Samples: []result.Sample{
		{Kind: result.KindPort, Name: "S0->S1", QueueMaxBytes: 1000},
		{Kind: result.KindPort, Name: "S1->R1", QueueMaxBytes: 8_000_000},
		{Kind: result.KindPort, Name: "S1->R0"},
		{Kind: result.KindFlow, Name: "F0", RateBps: 20e9},
	}})
	qt.Check(t, qt.Equals(out.String(), `hol: 25% of 4 runs, 30s left
pcn, seed 1 at 1.5ms
  queues  S1->R1 8MB  S0->S1 1KB
  rates   F0 20Gbps
  PAUSE   2 frames until now, 1 ports are stopped
`))
	out.Reset()
	v.see(1, "pcn, seed 1", nil)
	now = now.Add(10 * time.Second)
	v.set("pcn", 0.5)
	qt.Check(t, qt.Equals(out.String(), "hol: 38% of 4 runs, 33s left\n"))
}

// On a terminal, what was shown is overwritten.
func TestWatcherOnATerminal(t *testing.T) {
	var out bytes.Buffer
	v := newWatcher(&out, "hol", 1)
	v.terminal = true
	v.set("pcn", 0.5)
	out.Reset()
	v.finish()
	qt.Check(t, qt.Equals(out.String(), "\x1b[1A\x1b[J"))
}

// A run of the simulator is shown, and forgotten when it has ended.
func TestRunWatch(t *testing.T) {
	file := filepath.Join(t.TempDir(), "small.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, []byte(small), 0o600)))
	e, err := loadExperiment(t.Context(), file, nil)
	qt.Assert(t, qt.IsNil(err))
	var out bytes.Buffer
	engine := launch.NewSimulator()
	v := newShower(&out, e.Name, launch.Count(e), true, engine)
	_, err = launch.Run(t.Context(), launch.Options{Experiment: e, Engine: engine,
		Out: filepath.Join(t.TempDir(), "run"), Progress: v.set})
	qt.Assert(t, qt.IsNil(err))
	v.finish()
	qt.Check(t, qt.StringContains(out.String(), "  queues  "))
	qt.Check(t, qt.StringContains(out.String(), "  rates   "))
	qt.Check(t, qt.HasLen(v.(*watcher).watched, 0))
}
