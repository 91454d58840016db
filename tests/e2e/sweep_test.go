// SPDX-License-Identifier: Apache-2.0

package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/go-quicktest/qt"
	"golang.org/x/sys/unix"
)

// A sweep of four short runs.
const (
	tinyNet = `name: net
topology: {kind: fig1, burst_hosts: 2}
schemes: [pcn]
warmup: 100us
duration: 100us
sample: 50us
flows:
  - {name: F0, from: H0, to: R0, start_jitter: 10us}
  - {name: F1, from: H1, to: R1, start_jitter: 10us}
bursts: [{name: burst, from: H2..H3, to: R1, size: 64KB}]
`
	tinySweep = `name: tiny
experiment: net.yaml
parameters: {bursts.burst.size: [4KB, 8KB]}
seeds: 1..2
metrics:
  - {name: queue, metric: queue_max, ports: [S1->R1]}
  - {name: f0, metric: mean_rate, flows: [F0]}
`
	tinyCells = 4
)

// sweepFile writes the sweep and its experiment into a folder.
func sweepFile(t *testing.T, dir string) string {
	t.Helper()
	return writeSweep(t, dir, tinySweep, tinyNet)
}

// writeSweep writes a sweep and its experiment, net.yaml, into a folder. It returns its path.
func writeSweep(t *testing.T, dir, sweep, net string) string {
	t.Helper()
	path := filepath.Join(dir, "tiny.yaml")
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(dir, "net.yaml"), []byte(net), 0o644)))
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(sweep), 0o644)))
	return path
}

// cellsIn are the finished runs of a sweep.
func cellsIn(out string) []string {
	sums, _ := filepath.Glob(filepath.Join(out, "cells", "[a-z]*", "SHA256SUMS")) // the pattern is well-formed
	var cells []string
	for _, path := range sums {
		cells = append(cells, filepath.Base(filepath.Dir(path)))
	}
	return cells
}

// waitCell waits until a run of the sweep is finished.
func waitCell(t *testing.T, out string) []string {
	t.Helper()
	const poll = 10 * time.Millisecond
	for end := time.Now().Add(cpuPatience); time.Now().Before(end); time.Sleep(poll) {
		if cells := cellsIn(out); len(cells) > 0 {
			return cells
		}
	}
	t.Fatalf("no cell was finished in %s", cpuPatience)
	return nil
}

func TestSweep(t *testing.T) { localSweep(t) }

// swept is the folder of a sweep that has ended, for all tests that want one.
var swept struct {
	once sync.Once
	dir  string
}

// localSweep is the folder of the sweep, run here.
func localSweep(t *testing.T) string {
	t.Helper()
	swept.once.Do(func() {
		dir := filepath.Join(filepath.Dir(pcn), "sweep") // until all tests have ended
		qt.Assert(t, qt.IsNil(os.Mkdir(dir, 0o755)))
		sweepOnceMore(t, dir)
		swept.dir = filepath.Join(dir, "out")
	})
	qt.Assert(t, qt.IsTrue(swept.dir != ""), qt.Commentf("the sweep failed"))
	return swept.dir
}

// stoppedSweep is a sweep that stands still in the middle: a run is finished and others are not. A test that waits
// for the CPU misses the middle of a sweep of milliseconds, so that it begins again then.
func stoppedSweep(t *testing.T, file, out string) *exec.Cmd {
	t.Helper()
	for range 50 {
		sweep := exec.Command(pcn, "sweep", file, "--out", out)
		qt.Assert(t, qt.IsNil(sweep.Start()))
		waitCell(t, out)
		qt.Assert(t, qt.IsNil(sweep.Process.Signal(unix.SIGSTOP)))
		waitStopped(t, sweep.Process.Pid)
		if len(cellsIn(out)) < tinyCells {
			return sweep
		}
		_ = sweep.Process.Kill() // it may have ended
		_ = sweep.Wait()
		qt.Assert(t, qt.IsNil(os.RemoveAll(out)))
	}
	t.Fatal("50 sweeps of four runs had finished all before they could be stopped")
	return nil
}

// waitStopped waits until a signal has stopped a process, or it has ended.
func waitStopped(t *testing.T, pid int) {
	t.Helper()
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WSTOPPED|unix.WEXITED|unix.WNOWAIT, nil)
	qt.Assert(t, qt.IsNil(err))
}

// sweepOnceMore kills a sweep, goes on, and then finds a cell that is damaged: a run that is finished is not run again, all
// others are, and their bytes do not depend on it.
func sweepOnceMore(t *testing.T, dir string) {
	t.Helper()
	file, out := sweepFile(t, dir), filepath.Join(dir, "out")
	first := stoppedSweep(t, file, out)
	_, stderr, code := run(t, "sweep", file, "--out", out)
	qt.Check(t, qt.Equals(code, 1))
	qt.Check(t, qt.StringContains(stderr, "another pcn sweep is running"))
	qt.Assert(t, qt.IsNil(first.Process.Kill()))
	qt.Assert(t, qt.IsNotNil(first.Wait()))
	// what a kill in the middle of writing leaves
	half := filepath.Join(out, "cells", ".cell-half")
	qt.Assert(t, qt.IsNil(os.MkdirAll(half, 0o755)))

	finished := cellsIn(out)
	before := manifests(t, out, finished)
	stdout, stderr, code := run(t, "sweep", file, "--out", out)
	qt.Assert(t, qt.Equals(code, 0), qt.Commentf("%s", stderr))
	qt.Check(t, qt.StringContains(stdout, "report.html"))
	all := cellsIn(out)
	qt.Assert(t, qt.HasLen(all, tinyCells))
	qt.Check(t, qt.DeepEquals(manifests(t, out, finished), before))
	_, err := os.Stat(half)
	qt.Check(t, qt.ErrorIs(err, os.ErrNotExist))

	damaged := filepath.Join(out, "cells", all[0])
	copied := filepath.Join(dir, "copied")
	qt.Assert(t, qt.IsNil(os.CopyFS(copied, os.DirFS(out))))
	series := read(t, damaged, "series.csv")
	series[len(series)/2] ^= 1
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(damaged, "series.csv"), series, 0o644)))
	stdout, _, code = run(t, "sweep", file, "--out", out, "--dry-run")
	qt.Check(t, qt.Equals(code, 0))
	qt.Check(t, qt.StringContains(stdout, "4 runs, 1 to do"))
	before = manifests(t, out, all[1:])
	_, _, code = run(t, "sweep", file, "--out", out)
	qt.Assert(t, qt.Equals(code, 0))
	qt.Check(t, qt.DeepEquals(manifests(t, out, all[1:]), before))
	sameSweep(t, out, copied)
}

// TestOtherSeedOtherBytes compares each two cells of the sweep that differ only in the seed.
func TestOtherSeedOtherBytes(t *testing.T) {
	out := localSweep(t)
	bySeed := map[string]map[uint64]string{} // folders, by the hash of the experiment
	for _, cell := range cellsIn(out) {
		folder := filepath.Join(out, "cells", cell)
		m := manifestOf(t, folder)
		if bySeed[m.ExperimentSHA256] == nil {
			bySeed[m.ExperimentSHA256] = map[uint64]string{}
		}
		bySeed[m.ExperimentSHA256][m.Seed] = folder
	}
	qt.Assert(t, qt.HasLen(bySeed, tinyCells/2))
	for _, folders := range bySeed {
		qt.Assert(t, qt.HasLen(folders, 2))
		qt.Check(t, qt.SliceContains(differing(t, folders[1], folders[2]), "series.csv"))
		stdout, stderr, code := run(t, "diff", folders[1], folders[2])
		qt.Check(t, qt.Equals(code, 5), qt.Commentf("%s%s", stdout, stderr))
		qt.Check(t, qt.StringContains(stdout, "seed"))
	}
}

// manifests are those of cells, with the time of the machine at which they ran.
func manifests(t *testing.T, out string, cells []string) []string {
	t.Helper()
	var texts []string
	for _, c := range cells {
		texts = append(texts, string(read(t, out, "cells", c, "manifest.json")))
	}
	return texts
}

// sameSweep fails if two sweeps have not the same bytes, wall-clock fields of manifests and with them their sums aside.
func sameSweep(t *testing.T, a, b string) {
	t.Helper()
	for _, name := range []string{"sweep.csv", "summary.csv", "report.html"} {
		qt.Check(t, qt.IsTrue(string(read(t, a, name)) == string(read(t, b, name))), qt.Commentf("%s differs", name))
	}
	cells := cellsIn(a)
	qt.Assert(t, qt.DeepEquals(cells, cellsIn(b)))
	for _, c := range cells {
		differ := differing(t, filepath.Join(a, "cells", c), filepath.Join(b, "cells", c))
		differ = slices.DeleteFunc(differ, func(name string) bool { return strings.HasSuffix(name, "SHA256SUMS") })
		qt.Check(t, qt.HasLen(differ, 0), qt.Commentf("%s", c))
	}
}
