// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/pcapgo"

	"github.com/pcn-linux/pcn/cnp"
	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/job"
	"github.com/pcn-linux/pcn/internal/report"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

const small = resulttest.Small

// cases are two, of which the second has a duration of its own.
const cases = `
cases:
  - {name: slow, set: {flows.F1.initial_rate: 10Gbps}}
  - {name: short, set: {duration: 12ms}}
`

func parse(t *testing.T, text string) *experiment.Experiment {
	t.Helper()
	e, err := experiment.Parse("small.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	return e
}

// another is small by another name.
func another(t *testing.T) *experiment.Experiment {
	t.Helper()
	return parse(t, strings.Replace(small, "name: small\ntitle: Two",
		"name: another\ntitle: Another two", 1))
}

// fig2 makes up a run of each job and leaves it in out.
func fig2(t *testing.T, e *experiment.Experiment, out string) {
	t.Helper()
	all, err := Jobs(e)
	qt.Assert(t, qt.IsNil(err))
	for _, j := range all {
		qt.Assert(t, qt.IsNil(save(resulttest.Fig2(j.Experiment, j.Scheme), out)))
	}
}

// labels are those of a group's runs.
func labels(g report.Group) []string {
	var all []string
	for _, r := range g.Runs {
		all = append(all, r.Manifest.Label())
	}
	return all
}

func TestJobs(t *testing.T) {
	plain := parse(t, small)
	varied := parse(t, small+cases)
	some := parse(t, small+strings.Replace(cases, "{name: slow", "{name: slow, schemes: [pcn]", 1))
	for _, c := range []struct {
		name string
		e    *experiment.Experiment
		o    experiment.Changes
		want []string
	}{
		{"no cases", plain, experiment.Changes{}, []string{"pfc", "pcn"}},
		{"a baseline", plain, experiment.Changes{Schemes: []string{"bbr", "pcn"}},
			[]string{"bbr", "pcn"}},
		{"cases", varied, experiment.Changes{},
			[]string{"slow/pfc", "slow/pcn", "short/pfc", "short/pcn"}},
		{"one case", varied, experiment.Changes{Cases: []string{"short"}},
			[]string{"short/pfc", "short/pcn"}},
		{"a case for one scheme", some, experiment.Changes{},
			[]string{"slow/pcn", "short/pfc", "short/pcn"}},
		{"another scheme", some, experiment.Changes{Schemes: []string{"reno"}},
			[]string{"short/reno"}},
		{"one scheme", varied, experiment.Changes{Schemes: []string{"reno"}},
			[]string{"slow/reno", "short/reno"}},
	} {
		e, err := c.e.With(c.o)
		qt.Assert(t, qt.IsNil(err))
		all, err := Jobs(e)
		qt.Assert(t, qt.IsNil(err))
		var got []string
		for _, j := range all {
			got = append(got, j.Label())
		}
		qt.Check(t, qt.DeepEquals(got, c.want), qt.Commentf(c.name))
		qt.Check(t, qt.Equals(Count(e), len(c.want)), qt.Commentf(c.name))
	}
}

func TestNoJob(t *testing.T) {
	some := parse(t, small+strings.Replace(cases, "{name: slow", "{name: slow, schemes: [pcn]", 1))
	e, err := some.With(experiment.Changes{Schemes: []string{"reno"}, Cases: []string{"slow"}})
	qt.Assert(t, qt.IsNil(err))
	_, err = Jobs(e)
	qt.Check(t, qt.ErrorMatches(err, "no case of experiment .* is run with reno"))
	qt.Check(t, qt.Equals(Count(e), 0))
}

// Runs are found wherever they are below a folder, grouped by experiment, and in the order of the
// file.
func TestReadRuns(t *testing.T) {
	plain := parse(t, small)
	other := another(t)
	varied := parse(t, small+cases)
	dir := t.TempDir()
	for name, e := range map[string]*experiment.Experiment{"a [1]": other, "b": plain,
		"c": varied} {
		fig2(t, e, filepath.Join(dir, name))
	}
	fig2(t, plain, filepath.Join(dir, "too", "deep", "down", "there"))
	bare := []string{"pfc", "pcn"}
	inCases := []string{"slow/pfc", "slow/pcn", "short/pfc", "short/pcn"}

	for _, c := range []struct {
		name string
		dirs []string
		want [][]string // labels of each group
	}{
		{"a run", []string{"b/pcn"}, [][]string{{"pcn"}}},
		{"runs, in the order of the file", []string{"b/pcn", "b/pfc"}, [][]string{bare}},
		{"an experiment", []string{"b"}, [][]string{bare}},
		{"a folder with a pattern as its name", []string{"a [1]"}, [][]string{bare}},
		{"an experiment with cases", []string{"c"}, [][]string{inCases}},
		{"a case", []string{"c/short"}, [][]string{{"short/pfc", "short/pcn"}}},
		{"runs of cases, in the order of the file", []string{"c/short/pcn", "c/slow/pfc"},
			[][]string{{"slow/pfc", "short/pcn"}}},
		{"the same twice", []string{"b", "b"}, [][]string{{"pfc", "pfc", "pcn", "pcn"}}},
		{"several experiments", []string{"c", "b/pcn", "a [1]/pfc"},
			[][]string{inCases, {"pcn"}, {"pfc"}}},
		{"all", []string{""}, [][]string{bare, bare, inCases}},
	} {
		var dirs []string
		for _, d := range c.dirs {
			dirs = append(dirs, filepath.Join(dir, d))
		}
		groups, err := ReadRuns(dirs)
		qt.Assert(t, qt.IsNil(err), qt.Commentf(c.name))
		var got [][]string
		for _, g := range groups {
			got = append(got, labels(g))
			for _, r := range g.Runs {
				qt.Check(t, qt.Equals(r.Manifest.ExperimentSHA256, g.Experiment.Hash()),
					qt.Commentf(c.name))
			}
		}
		qt.Check(t, qt.DeepEquals(got, c.want), qt.Commentf(c.name))
	}

	_, err := ReadRuns([]string{t.TempDir()})
	qt.Check(t, qt.ErrorMatches(err, ".* holds no run: give the folder that `pcn run` named.*"))
	_, err = ReadRuns([]string{filepath.Join(dir, "nowhere")})
	qt.Check(t, qt.ErrorMatches(err, "look for runs: .*nowhere: no such file or directory"))
}

// A group's experiment is as it was changed for its runs, and has no scheme or case that was not
// run.
func TestReadRunsRestoresChanges(t *testing.T) {
	plain := parse(t, small)
	varied := parse(t, small+cases)
	for _, c := range []struct {
		name     string
		e        *experiment.Experiment
		o        experiment.Changes
		duration map[string]experiment.Duration // by case
	}{
		{"nothing", plain, experiment.Changes{},
			map[string]experiment.Duration{"": plain.Duration}},
		{"all", plain, experiment.Changes{
			Seed: new(uint64(7)), Duration: new(5 * experiment.Millisecond), Dilation: new(uint(9)),
			Schemes: []string{"pcn", "bbr"},
		}, map[string]experiment.Duration{"": 5 * experiment.Millisecond}},
		{"nothing in cases", varied, experiment.Changes{},
			map[string]experiment.Duration{"slow": plain.Duration,
				"short": 12 * experiment.Millisecond}},
		{"a case", varied, experiment.Changes{Cases: []string{"short"},
			Schemes: []string{"dcqcn"}},
			map[string]experiment.Duration{"short": 12 * experiment.Millisecond}},
		{"all in cases", varied, experiment.Changes{Duration: new(5 * experiment.Millisecond),
			Seed: new(uint64(3))},
			map[string]experiment.Duration{"slow": 5 * experiment.Millisecond,
				"short": 5 * experiment.Millisecond}},
	} {
		e, err := c.e.With(c.o)
		qt.Assert(t, qt.IsNil(err))
		dir := t.TempDir()
		fig2(t, e, dir)
		groups, err := ReadRuns([]string{dir})
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.HasLen(groups, 1))
		got := groups[0].Experiment
		qt.Check(t, qt.DeepEquals(got.Schemes, e.Schemes), qt.Commentf(c.name))
		qt.Check(t, qt.DeepEquals(got.CaseNames(), e.CaseNames()), qt.Commentf(c.name))
		for name, duration := range c.duration {
			v, err := got.Case(name)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(v.Duration, duration), qt.Commentf(c.name))
			qt.Check(t, qt.Equals(v.Seed, e.Seed), qt.Commentf(c.name))
			qt.Check(t, qt.Equals(v.Dilation, e.Dilation), qt.Commentf(c.name))
		}
	}
}

// Every PFC event becomes one frame, at its time, on the interface of the port that sent it.
func TestCapture(t *testing.T) {
	e := parse(t, small)
	run := resulttest.Fig2(e, "pfc")
	path := filepath.Join(t.TempDir(), "x.pcapng")
	qt.Assert(t, qt.IsNil(writeCapture(path, run)))
	f, err := os.Open(path)
	qt.Assert(t, qt.IsNil(err))
	t.Cleanup(func() { f.Close() })
	r, err := pcapgo.NewNgReader(f, pcapgo.NgReaderOptions{WantMixedLinkType: true})
	qt.Assert(t, qt.IsNil(err))
	for i, event := range run.PFC {
		data, info, err := r.ReadPacketData()
		qt.Assert(t, qt.IsNil(err), qt.Commentf("frame %d", i))
		iface, err := r.Interface(info.InterfaceIndex)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(iface.Name, event.From+"->"+event.To))
		qt.Assert(t, qt.Equals(info.Timestamp.UnixNano(), cnp.CaptureBaseNs+event.SentNs))
		frame, err := cnp.ParsePFC(data)
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(frame.Classes, 1<<event.Class))
		qt.Assert(t, qt.Equals(frame.Quanta[event.Class] != 0, event.Kind == result.Pause))
	}
	_, _, err = r.ReadPacketData()
	qt.Check(t, qt.IsNotNil(err))
}

func TestFoldersAreNotMixed(t *testing.T) {
	dir := t.TempDir()
	qt.Check(t, qt.IsNil(prepare(dir, false)))
	qt.Check(t, qt.IsNil(prepare(filepath.Join(dir, "a", "b"), false)))
	qt.Check(t, qt.ErrorMatches(prepare(dir, false),
		"result folder .* is not empty: choose another with --out, or remove it"))
	file := filepath.Join(dir, "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o600)))
	qt.Check(t, qt.ErrorMatches(prepare(file, false), "look into the result folder: .*"))
}

func TestProgress(t *testing.T) {
	var got []float64
	report := func(done float64) { got = append(got, done) }
	w := &lineWriter{hear: func(line string) { hearProgress(line, report) }}
	for _, part := range []string{"boot\npro", "gress 1 4\nprogress 2",
		" 4\r\nprogress x 4\nprogress 1 0\n", "progress 4 4\n"} {
		n, err := w.Write([]byte(part))
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(n, len(part)))
	}
	qt.Check(t, qt.DeepEquals(got, []float64{0.25, 0.5, 1}))
}

// The guest does the job that the host has, on the same file.
func TestGuestDoesTheJob(t *testing.T) {
	plain := parse(t, small)
	for _, c := range []struct {
		name string
		e    *experiment.Experiment
		o    experiment.Changes
		args [][]string // of each job
	}{
		{"as in the file", plain, experiment.Changes{}, [][]string{
			{"guest", "", "pfc", "1", "15000000", "10"},
			{"guest", "", "pcn", "1", "15000000", "10"},
		}},
		{"changed", plain, experiment.Changes{
			Seed: new(uint64(1 << 63)), Duration: new(3 * experiment.Millisecond),
			Dilation: new(uint(4)), Schemes: []string{"yeah"},
		}, [][]string{
			{"guest", "", "yeah", "9223372036854775808", "3000000", "4"},
		}},
		{"cases", parse(t, small+cases), experiment.Changes{Schemes: []string{"pcn"}}, [][]string{
			{"guest", "slow", "pcn", "1", "15000000", "10"},
			{"guest", "short", "pcn", "1", "12000000", "10"},
		}},
		{"changed cases", parse(t, small+cases),
			experiment.Changes{Duration: new(3 * experiment.Millisecond), Cases: []string{"short"},
				Schemes: []string{"pfc"}}, [][]string{
				{"guest", "short", "pfc", "1", "3000000", "10"},
			}},
	} {
		e, err := c.e.With(c.o)
		qt.Assert(t, qt.IsNil(err))
		all, err := Jobs(e)
		qt.Assert(t, qt.IsNil(err))
		var args [][]string
		for _, j := range all {
			config := guestConfig(j, job.Run)
			args = append(args, config.Args)
			qt.Check(t, qt.Equals(config.Seed, e.Seed), qt.Commentf(c.name))

			file := filepath.Join(t.TempDir(), "experiment.yaml")
			qt.Assert(t, qt.IsNil(os.WriteFile(file, config.Files[0].Data, 0o600)))
			task, got, err := job.Parse(file, config.Args)
			qt.Assert(t, qt.IsNil(err))
			qt.Check(t, qt.Equals(task, job.Run))
			qt.Check(t, qt.Equals(got.Label(), j.Label()))
			same := func(e *experiment.Experiment) []any {
				return []any{e.Seed, e.Duration,
					e.Dilation.Shift, e.Flows, e.Hash()}
			}
			qt.Check(t, qt.DeepEquals(same(got.Experiment), same(j.Experiment)),
				qt.Commentf(c.name))
		}
		qt.Check(t, qt.DeepEquals(args, c.args), qt.Commentf(c.name))
	}
}

// Congestion controls of Linux are modules, ours are not.
func TestGuestModules(t *testing.T) {
	for scheme, want := range map[string][]string{
		"pfc": nil, "pcn": nil, "dcqcn": nil, "pcn_dctcp": nil,
		"bbr": {"tcp_bbr"}, "dctcp": {"tcp_dctcp"}, "reno": {"tcp_reno"},
	} {
		qt.Check(t, qt.DeepEquals(guestConfig(job.Job{Experiment: &experiment.Experiment{},
			Scheme: scheme}, job.Run).Modules, want), qt.Commentf(scheme))
	}
}

// The report of an experiment depends on nothing but what was measured; that of several also shows
// the cost.
func TestReportIsTheSame(t *testing.T) {
	plain := parse(t, small)
	other := another(t)
	pageOf := func(totalS float64, all ...*experiment.Experiment) string {
		var groups []report.Group
		for _, e := range all {
			run := resulttest.Fig2(e, "pcn")
			run.Manifest.Wall.TotalS = totalS
			groups = append(groups, report.Group{Experiment: e, Runs: []*result.Run{run}})
		}
		path := filepath.Join(t.TempDir(), ReportFile)
		qt.Assert(t, qt.IsNil(WriteReport(path, groups)))
		page, err := os.ReadFile(path)
		qt.Assert(t, qt.IsNil(err))
		return string(page)
	}
	qt.Check(t, qt.IsTrue(pageOf(11, plain) == pageOf(99, plain)))
	both := pageOf(11, plain, other)
	qt.Check(t, qt.IsTrue(both == pageOf(11, plain, other)))
	qt.Check(t, qt.IsFalse(both == pageOf(99, plain, other)))
	qt.Check(t, qt.StringContains(both, plain.Title))
	qt.Check(t, qt.StringContains(both, other.Title))
}

func TestRunWithoutKernel(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err := NewMicroVMs("", false)
	qt.Check(t, qt.ErrorMatches(err, `no microVM kernel.*run pcn setup`))
}

// A pcn that go build made, without make, says what to do.
func TestRunWithoutGuest(t *testing.T) {
	_, err := guestProgram(fstest.MapFS{"guest/README": &fstest.MapFile{}})
	qt.Check(t, qt.ErrorMatches(err, ".*run make build, and use bin/pcn"))
	program, err := guestProgram(fstest.MapFS{"guest/pcn-guest": {Data: []byte("ELF")}})
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.Equals(string(program), "ELF"))
}

func TestClaimKeepsOthersOut(t *testing.T) {
	out := filepath.Join(t.TempDir(), "out")
	release, err := claim(out, false)
	qt.Assert(t, qt.IsNil(err))
	_, err = claim(out, false)
	qt.Check(t, qt.ErrorMatches(err, "another pcn writes into result folder .*"))
	release()
	_, err = os.Stat(out)
	qt.Check(t, qt.ErrorIs(err, fs.ErrNotExist)) // nothing was written

	release, err = claim(out, false)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(os.WriteFile(filepath.Join(out, "result"), nil, 0o600)))
	release()
	_, err = claim(out, false)
	qt.Check(t, qt.ErrorMatches(err, "result folder .* is not empty: .*"))
}
