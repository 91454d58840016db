// SPDX-License-Identifier: Apache-2.0

package report

import (
	"strings"
	"testing"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

// loaded returns hol with a workload, and runs of two schemes whose flows took 1 to 4 times their
// ideal, or twice that.
func loaded(t *testing.T) (*experiment.Experiment, []*result.Run) {
	t.Helper()
	text := string(load(t).Source()) + "workload: {cdf: fb-hadoop, load: 0.01, until: 10us}\n"
	e, err := experiment.Parse("loaded.yaml", []byte(text))
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(experiment.Changes{Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	e.Compare, e.Expect, e.Figures.SendRate, e.Figures.Reference = nil, nil, nil, nil
	var runs []*result.Run
	for i, scheme := range []string{"pfc", "pcn"} {
		r := resulttest.Fig2(e, scheme)
		for k := range int64(4) {
			c := result.Completion{Flow: "w", Group: "w", SizeBytes: uint64(5000 + 3000*k),
				FCTNs: new((k + 1) * int64(i+1) * 1e6), IdealNs: 1e6}
			r.Completions = append(r.Completions, result.NewCompletion(c))
		}
		r.Completions = append(r.Completions,
			result.Completion{Flow: "w", Group: "w", SizeBytes: 2e6, IdealNs: 1e6})
		for k := range r.Ports {
			r.Ports[k].Tier = "switch"
			if strings.HasPrefix(r.Ports[k].Node, "H") || strings.HasPrefix(r.Ports[k].Node, "R") {
				r.Ports[k].Tier = "host"
			}
		}
		runs = append(runs, r)
	}
	return e, runs
}

func TestReportOfAWorkload(t *testing.T) {
	e, runs := loaded(t)
	page := render(t, e, runs)
	var found []string
	for _, row := range rows(page) {
		if strings.Contains(row, "of 4|") || strings.Contains(row, "of 2|") || strings.Contains(row,
			"of 5|") || strings.Contains(row, "of 1|") || strings.Contains(row, "|switch|") {
			found = append(found, row)
		}
	}
	qt.Check(t, qt.DeepEquals(found, []string{
		"PFC|all|4 of 5|2.5ms|2ms|4ms|4ms|4ms|2.5|2|4|4|4|",
		"PFC|&lt; 10KB|2 of 2|1.5ms|1ms|2ms|2ms|2ms|1.5|1|2|2|2|",
		"PFC|10KB to 100KB|2 of 2|3.5ms|3ms|4ms|4ms|4ms|3.5|3|4|4|4|",
		"PFC|1MB or more|0 of 1|||||||||||",
		"PCN|all|4 of 5|5ms|4ms|8ms|8ms|8ms|5|4|8|8|8|",
		"PCN|&lt; 10KB|2 of 2|3ms|2ms|4ms|4ms|4ms|3|2|4|4|4|",
		"PCN|10KB to 100KB|2 of 2|7ms|6ms|8ms|8ms|8ms|7|6|8|8|8|",
		"PCN|1MB or more|0 of 1|||||||||||",
		// 8 frames for one each 14, 26 and 28 us, that stop ports for 12, 23 and 25 us, until 3200
		// us
		"PFC|switch|419|3352|7.509ms|",
		"PCN|switch|41|328|492us|",
	}))
	qt.Check(t, qt.StringContains(page, "PAUSE by tier"))

	figures := svgElement.FindAllString(page, -1)
	qt.Assert(t, qt.HasLen(figures, 3+5))
	for i, want := range [][]string{
		{">Mean (ms)<", ">99th percentile (ms)<", ">all<", ">2.5ms<", ">5ms<", ">8ms<", ">none<"},
		{">Mean<", ">2.5<", ">none<"},
		{">Slowdown<", ">Share of flows (%)<", ">PCN<"},
		{">from switch<", ">PAUSE frames per ms<", ">Stopped (ms)<"},
		{">Queue (KB)<", ">ports of switch<"},
	} {
		for _, text := range want {
			qt.Check(t, qt.StringContains(figures[3+i], text), qt.Commentf("figure %d", i))
		}
		qt.Check(t, qt.Not(qt.StringContains(figures[3+i], "NaN")))
	}
	qt.Check(t, qt.Equals(page, render(t, e, runs)))
}

// TestReportOfAnOlderWorkload: a result without tiers and completions is drawn too.
func TestReportOfAnOlderWorkload(t *testing.T) {
	e, runs := loaded(t)
	for _, r := range runs {
		r.Completions = nil
		for i := range r.Ports {
			r.Ports[i].Tier = ""
		}
	}
	page := render(t, e, runs)
	qt.Check(t, qt.Not(qt.StringContains(page, "NaN")))
	qt.Check(t, qt.Not(qt.StringContains(page, ">from switch|")))
}

func TestSizesInWords(t *testing.T) {
	for text, want := range map[string]string{"..10KB": "< 10KB", "10KB..100KB": "10KB to 100KB",
		"1MB..": "1MB or more"} {
		s, err := experiment.ParseSizes(text)
		qt.Assert(t, qt.IsNil(err))
		qt.Check(t, qt.Equals(formatSizes(s), want))
		qt.Check(t, qt.Equals(s.String(), text))
	}
	qt.Check(t, qt.Equals(formatSizes(experiment.Sizes{}), "all"))
}

func TestLogTicks(t *testing.T) {
	label := func(low, high float64) (labels []string) {
		for _, tick := range (logTicks{}).Ticks(low, high) {
			labels = append(labels, tick.Label)
		}
		return labels
	}
	qt.Check(t, qt.DeepEquals(label(0, 1.1), []string{"1", "2", "5", "10"}))
	qt.Check(t, qt.DeepEquals(label(-1, 3), []string{"0.1", "1", "10", "100", "1000"}))
}
