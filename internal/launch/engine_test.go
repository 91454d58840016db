// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// fakeEngine makes up results, and knows how many jobs it has at a time.
type fakeEngine struct {
	exclusive bool
	fails     string // label of the job that does
	lateBelow uint   // dilation below which runs are late by half
	mu        sync.Mutex
	at, most  int
	cpus      []int
	done      []string
}

func (e *fakeEngine) Exclusive() bool { return e.exclusive }

func (e *fakeEngine) Fingerprint(j job.Job) (string, error) { return j.Label(), nil }

func (e *fakeEngine) Run(
	_ context.Context, j job.Job, cpu int, progress func(float64),
) (*result.Run, error) {
	e.mu.Lock()
	e.at++
	e.most = max(e.most, e.at)
	e.cpus, e.done = append(e.cpus, cpu), append(e.done, j.Label())
	e.mu.Unlock()
	progress(0.5)
	e.mu.Lock()
	e.at--
	e.mu.Unlock()
	if j.Label() == e.fails {
		return nil, errors.New("broken")
	}
	run := resulttest.Fig2(j.Experiment, j.Scheme)
	if m := &run.Manifest; m.DilationShift < e.lateBelow {
		m.HostLateness.ACKs.P99Ns = m.BaseRTTNs * 15 / 100 // the bound is 5%
	}
	return run, nil
}

// Whatever the engine is, jobs are shared out, told of, stamped and saved in the same way.
func TestRunInAnyEngine(t *testing.T) {
	for _, exclusive := range []bool{false, true} {
		t.Run(fmt.Sprint("exclusive ", exclusive), func(t *testing.T) {
			e := parse(t, small+cases)
			engine := &fakeEngine{exclusive: exclusive}
			var mu sync.Mutex
			told := map[string]float64{}
			out := filepath.Join(t.TempDir(), "out")
			runs, err := Run(t.Context(), Options{
				Experiment: e, Engine: engine, Out: out,
				Progress: func(run string, done float64) {
					mu.Lock()
					defer mu.Unlock()
					told[run] = done
				},
			})
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.HasLen(told, 4))
			labels := []string{"slow/pfc", "slow/pcn", "short/pfc", "short/pcn"}
			for i, label := range labels {
				qt.Check(t, qt.Equals(runs[i].Manifest.Label(), label))
				qt.Check(t, qt.Equals(runs[i].Manifest.Tool, Tool()))
				qt.Check(t, qt.Not(qt.Equals(runs[i].Manifest.Wall.Host, "nowhere")))
				_, err := os.Stat(filepath.Join(out, label, captureFile))
				qt.Check(t, qt.IsNil(err))
			}
			_, err = os.Stat(filepath.Join(out, ReportFile))
			qt.Check(t, qt.IsNil(err))
			if exclusive {
				qt.Check(t, qt.Equals(engine.most, 1))
				qt.Check(t, qt.DeepEquals(engine.done, labels))
				qt.Check(t, qt.DeepEquals(engine.cpus, []int{noCPU, noCPU, noCPU, noCPU}))
			} else {
				qt.Check(t, qt.IsFalse(slices.Contains(engine.cpus, noCPU)))
			}
		})
	}
}

// After a job has failed, an exclusive engine gets no other.
func TestRunFails(t *testing.T) {
	engine := &fakeEngine{exclusive: true, fails: "slow/pcn"}
	out := filepath.Join(t.TempDir(), "out")
	_, err := Run(t.Context(), Options{
		Experiment: parse(t, small+cases), Engine: engine, Out: out,
	})
	qt.Check(t, qt.ErrorMatches(err, "run slow/pcn: broken"))
	qt.Check(t, qt.DeepEquals(engine.done, []string{"slow/pfc", "slow/pcn"}))
	_, err = result.Read(filepath.Join(out, "slow/pfc"))
	qt.Check(t, qt.IsNil(err))
}

// TestLateRunsAreRunAgain: a dilation that was chosen is raised twice at most, by as much as the
// run was late; one of the file's never.
func TestLateRunsAreRunAgain(t *testing.T) {
	for _, test := range []struct {
		keys      string
		lateBelow uint
		tried     []uint
		last      uint
	}{
		{"", 0, nil, 10},
		{"", 12, []uint{10}, 12},
		{"", 13, []uint{10, 12}, 14},
		{"", 16, []uint{10, 12}, 14}, // late still
		{"dilation: 10\n", 12, nil, 10},
	} {
		engine := &fakeEngine{lateBelow: test.lateBelow}
		pool, err := NewPool(engine, nil)
		qt.Assert(t, qt.IsNil(err))
		j := job.Job{Experiment: parse(t, small+test.keys), Scheme: "pcn"}
		run, err := pool.Run(t.Context(), j, func(float64) {})
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.DeepEquals(run.Manifest.DilationsTried, test.tried))
		qt.Check(t, qt.Equals(run.Manifest.DilationShift, test.last))
		qt.Check(t, qt.HasLen(engine.done, len(test.tried)+1))
	}
}

// Engines that simulate build no network.
func TestUpAndDownNeedsANetwork(t *testing.T) {
	pool, err := NewPool(&fakeEngine{}, nil)
	qt.Assert(t, qt.IsNil(err))
	e := &experiment.Experiment{}
	_, err = pool.UpAndDown(t.Context(), job.Job{Experiment: e, Scheme: "pcn"})
	qt.Check(t, qt.ErrorMatches(err, "this engine builds no network: .*"))
}
