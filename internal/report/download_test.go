// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"encoding/csv"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// Every format has every figure, and the same runs give the same bytes.
func TestFiguresAsFiles(t *testing.T) {
	e := load(t)
	starts := map[Format]string{"svg": "<?xml", "pdf": "%PDF-", "csv": "Panel,Curve,",
		"png": "\x89PNG"}
	write := func(f Figure, format Format) string {
		var buf bytes.Buffer
		qt.Assert(t, qt.IsNil(f.Write(&buf, format)))
		return buf.String()
	}
	figures, err := Figures(Group{Experiment: e, Runs: fig2(e)})
	qt.Assert(t, qt.IsNil(err))
	again, err := Figures(Group{Experiment: e, Runs: fig2(e)})
	qt.Assert(t, qt.IsNil(err))
	var names []string
	for i, f := range figures {
		names = append(names, f.Name)
		for _, format := range Formats() {
			data := write(f, format)
			qt.Check(t, qt.IsTrue(strings.HasPrefix(data, starts[format])),
				qt.Commentf("%s: %.20q", format, data))
			qt.Check(t, qt.IsTrue(data == write(again[i], format)), qt.Commentf("%s", format))
		}
	}
	qt.Check(t, qt.DeepEquals(names, []string{"hol-a-pause-rate", "hol-b-throughput",
		"hol-c-queue-length"}))
	qt.Check(t, qt.ErrorMatches(figures[0].Write(nil, "gif"), `.*unknown format "gif": want .*`))
}

// A file of values has those of the run, whatever a figure shows of them.
func TestValuesOfFigures(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	r := resulttest.Fig2(e, "pfc")
	figures, err := Figures(Group{Experiment: e, Runs: []*result.Run{r}})
	qt.Assert(t, qt.IsNil(err))
	values := map[string][][]string{}
	for _, f := range figures {
		var buf bytes.Buffer
		qt.Assert(t, qt.IsNil(f.Write(&buf, "csv")))
		values[f.title], err = csv.NewReader(&buf).ReadAll()
		qt.Assert(t, qt.IsNil(err))
	}
	f1, err := r.FlowRate("F1")
	qt.Assert(t, qt.IsNil(err))
	rates := values["Throughput"]
	qt.Check(t, qt.DeepEquals(rates[0], []string{"Panel", "Curve", "Time (ms)", "Value", "Unit"}))
	n := 0
	for _, row := range rates[1:] {
		if row[0] != "PFC Throughput" || row[1] != "F1" {
			continue
		}
		qt.Assert(t, qt.Equals(row[3], valueText(f1.Values[n]*1e-9)))
		qt.Assert(t, qt.Equals(row[4], "Gbit/s"))
		n++
	}
	qt.Check(t, qt.Equals(n, len(f1.Values)))
	bars := values["F0 and F1 together lose throughput for"]
	qt.Check(t, qt.DeepEquals(bars[1], []string{"Recovery time", "measured", "PFC", "3.3", "ms"}))
}
