// SPDX-License-Identifier: Apache-2.0

package launch

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/go-quicktest/qt"
	"github.com/gopacket/gopacket/pcapgo"

	"pcn/cnp"
	"pcn/netns-lab/experiments"
	"pcn/netns-lab/result"
	"pcn/netns-lab/result/resulttest"
)

func TestReadRuns(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	dir := t.TempDir()
	for _, scheme := range []string{"pfc", "pcn"} {
		qt.Assert(t, qt.IsNil(save(resulttest.Fig2(e, scheme), filepath.Join(dir, scheme))))
	}
	for _, dirs := range [][]string{{dir}, {filepath.Join(dir, "pcn"), filepath.Join(dir, "pfc")}} {
		got, runs, err := ReadRuns(dirs)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(got.Hash(), e.Hash()))
		qt.Check(t, qt.HasLen(runs, 2))
	}

	other, err := experiments.Load("hol-shared-buffer")
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(save(resulttest.Fig2(other, "pcn"), filepath.Join(dir, "other"))))
	_, _, err = ReadRuns([]string{filepath.Join(dir, "pcn"), filepath.Join(dir, "other")})
	qt.Check(t, qt.ErrorMatches(err, "runs of different experiments can't be compared: hol .* and hol-shared-buffer .*"))
	_, _, err = ReadRuns([]string{t.TempDir()})
	qt.Check(t, qt.ErrorMatches(err, ".* holds no run: give the folder that `pcn run` named.*"))
}

// Every PFC event becomes one frame, at its time, on the interface of the port that sent it.
func TestCapture(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	run := resulttest.Fig2(e, "pfc")
	path := filepath.Join(t.TempDir(), "x.pcapng")
	qt.Assert(t, qt.IsNil(WriteCapture(path, run)))
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
	qt.Check(t, qt.IsNil(prepare(dir)))
	qt.Check(t, qt.IsNil(prepare(filepath.Join(dir, "a", "b"))))
	qt.Check(t, qt.ErrorMatches(prepare(dir), "result folder .* is not empty: choose another with --out, or remove it"))
	file := filepath.Join(dir, "file")
	qt.Assert(t, qt.IsNil(os.WriteFile(file, nil, 0o600)))
	qt.Check(t, qt.ErrorMatches(prepare(file), "look into the result folder: .*"))
}

func TestProgress(t *testing.T) {
	var got []float64
	w := &progressWriter{report: func(done float64) { got = append(got, done) }}
	for _, part := range []string{"boot\npro", "gress 1 4\nprogress 2", " 4\r\nprogress x 4\nprogress 1 0\n", "progress 4 4\n"} {
		n, err := w.Write([]byte(part))
		qt.Assert(t, qt.IsNil(err))
		qt.Assert(t, qt.Equals(n, len(part)))
	}
	qt.Check(t, qt.DeepEquals(got, []float64{0.25, 0.5, 1}))
}

func TestGuestChecksItsArguments(t *testing.T) {
	for _, args := range [][]string{nil, {"guest"}, {"other", "pcn", "1", "1", "1"}, {"guest", "pcn", "x", "1", "1"}, {"guest", "pcn", "1", "1", "-1"}} {
		qt.Check(t, qt.ErrorMatches(guest(args), "guest called with .*"))
	}
}

func TestReportIsTheSame(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	var pages [2][]byte
	for i := range pages {
		path := filepath.Join(t.TempDir(), ReportFile)
		qt.Assert(t, qt.IsNil(WriteReport(path, e, []*result.Run{resulttest.Fig2(e, "pfc"), resulttest.Fig2(e, "pcn")})))
		pages[i], err = os.ReadFile(path)
		qt.Assert(t, qt.IsNil(err))
	}
	qt.Check(t, qt.IsTrue(bytes.Equal(pages[0], pages[1])))
}

func TestRunWithoutKernel(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	_, err = Run(context.Background(), Options{Experiment: e, Out: filepath.Join(t.TempDir(), "out")})
	qt.Check(t, qt.ErrorMatches(err, `no microVM kernel.*run scripts/setup\.sh.*`))
}
