// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"io"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
)

const twoCases = `
name: twice
topology: {kind: fig1}
schemes: [pfc, qcn, timely, pcn, cubic]
duration: 19ms
flows:
  - {name: F0, from: H0, to: R0}
  - {name: F1, from: H1, to: R1}
bursts:
  - {name: burst, from: H2..H15, to: R1, size: 64KB}
cases:
  - {name: calm, set: {bursts.burst.size: 32KB}}
  - {name: wild}
figures:
  send_rate: [F0, F1]
  rates: [S0->S1]
  reference:
    - {figure: throughput, scheme: pcn, name: F1, label: from the paper, points: [[5ms, 10Gbps]]}
expect:
  - {what: F1 recovers, metric: recovery_time, flows: [F1], target: 18Gbps, max: 15ms}
  - {what: both keep going, metric: mean_rate, flows: [F0, F1], case: wild, min: 1Gbps}
  - {what: nothing is lost, metric: lost_packets, max: 0}
compare:
  - what: throughput loss lasts
    metric: recovery_time
    flows: [F0+F1]
    target: 38Gbps
    paper: {pfc: 3.1ms, qcn: 20ms, timely: 60ms, pcn: 1.4ms}
    within: 50%
    order: true
    ratios: {to: pcn, min: 4}
`

// both returns the experiment with two cases, and runs of all schemes in both.
func both(t *testing.T) (*experiment.Experiment, []*result.Run) {
	t.Helper()
	e, err := experiment.Parse("twice.yaml", []byte(twoCases))
	qt.Assert(t, qt.IsNil(err))
	var runs []*result.Run
	for _, name := range e.CaseNames() {
		c, err := e.Case(name)
		qt.Assert(t, qt.IsNil(err))
		for _, scheme := range c.Schemes {
			runs = append(runs, resulttest.Fig2(c, scheme))
		}
	}
	return e, runs
}

func renderMany(t *testing.T, groups ...Group) string {
	t.Helper()
	var buf bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteMany(&buf, groups)))
	return buf.String()
}

func titles(page string) []string {
	var found []string
	for _, m := range regexp.MustCompile(`<figcaption><b>(.*?)</b>`).FindAllStringSubmatch(page,
		-1) {
		found = append(found, m[1])
	}
	return found
}

func TestOverviewOfManyExperiments(t *testing.T) {
	e, runs := both(t)
	hol := load(t)
	holRuns := fig2(hol)
	holRuns[1].Manifest.Verdict, holRuns[1].Manifest.Reasons = result.Invalid, []string{"late"}
	holRuns[0].Manifest.Wall = result.Wall{StartedAt: time.Unix(1e9, 0), TotalS: 100, BootS: 2.5}
	page := renderMany(t, Group{Experiment: e, Runs: runs}, Group{Experiment: hol, Runs: holRuns})

	got := rows(page)
	for _, want := range []string{
		"twice|calm/PFC|valid|2 of 2|1 of 1|56.0 s|4.0 s|38703|691|",
		"twice|wild/PCN|valid|3 of 3|1 of 1|56.0 s|4.0 s|38703|691|",
		"twice|calm/TIMELY|valid|1 of 2not met: F1 recovers|0 of 1not met: throughput loss lasts|56.0 s|4.0 s|38703|691|",
		"twice|calm/CUBIC|valid|2 of 2||56.0 s|4.0 s|38703|691|",
		"hol|PFC|valid|5 of 5||100.0 s|2.5 s|38703|387|",
		"hol|PCN|invalid|7 of 7||56.0 s|4.0 s|38703|691|",
	} {
		qt.Check(t, qt.SliceContains(got, want))
	}
	qt.Check(t, qt.StringContains(page, "<title>Runs of twice, hol</title>"))
	qt.Check(t, qt.StringContains(page, `<section id="experiment-1">`))
	qt.Check(t, qt.StringContains(page, `<a href="#experiment-2">hol</a>`))
	qt.Check(t, qt.StringContains(page, "All 10 runs are valid."))
	qt.Check(t,
		qt.StringContains(page, `<b>PCN</b> <span class="invalid">run is invalid</span><br>late`))
}

// Each run of the same scheme counts its own expectations.
func TestOverviewOfSeveralSeeds(t *testing.T) {
	e := load(t)
	other := resulttest.Fig2(e, "pcn")
	other.Manifest.Seed = 2
	other.Ports[0].DroppedRingPackets = 1
	got := rows(renderMany(t, Group{Experiment: e,
		Runs: []*result.Run{resulttest.Fig2(e, "pcn"), other}}))
	qt.Check(t, qt.SliceContains(got, "hol|PCN, seed 1|valid|7 of 7||56.0 s|4.0 s|38703|691|"))
	qt.Check(t, qt.SliceContains(got,
		"hol|PCN, seed 2|valid|6 of 7not met: no packet is lost||56.0 s|4.0 s|38703|691|"))
}

func TestWriteManyErrors(t *testing.T) {
	e := load(t)
	qt.Check(t, qt.ErrorMatches(WriteMany(io.Discard, nil), `report: there are no runs .*`))
	qt.Check(t, qt.ErrorMatches(WriteMany(io.Discard,
		[]Group{{Experiment: e, Runs: fig2(e)}, {Experiment: e}}),
		`report: there are no runs .*`))
	qt.Check(t, qt.ErrorMatches(WriteMany(failingWriter{}, []Group{{Experiment: e, Runs: fig2(e)}}),
		`write report of experiments hol: disk full`))

	r := resulttest.Fig2(e, "pcn")
	r.Manifest.Case = "calm"
	qt.Check(t, qt.ErrorMatches(Write(io.Discard, Group{Experiment: e, Runs: []*result.Run{r}}),
		`report: a run of scheme pcn has case "calm", but experiment hol has no such case`))
}

func TestSeveralCases(t *testing.T) {
	e, runs := both(t)
	page := render(t, e, runs)
	qt.Assert(t, qt.DeepEquals(titles(page), []string{
		// what was found: beside the paper
		"(a) Throughput loss lasts 1.1 ms (PCN) to 6.4 ms (QCN); not reached or " +
			"not measured with TIMELY.",
		"(b) From the first to the last PAUSE of H0 or H1: 0 ms (calm/PCN) to 2.8 ms (4 of them).",
		"(c) Throughput is lost for 1.1 ms (calm/PCN) to over 19 ms (calm/TIMELY).",
		"(d) The queue of S1-&gt;R1 grows to 7.6 MB with each of 5.",
		"(e) On average F0 receives 2.78 Gbit/s (calm/TIMELY) to 25.7 Gbit/s (calm/PCN).",
		"(f) On average S0-&gt;S1 sends 5.37 Gbit/s (calm/TIMELY) to 39.4 Gbit/s (calm/PCN).",
		// over the cases
		"(g) Recovery time of F0&#43;F1 is 1.1 ms (calm/PCN and wild/PCN) to 6.4 ms (calm/QCN " +
			"and wild/QCN); not reached or not measured with calm/TIMELY and wild/TIMELY.",
		// of one case only: both keep going
		"(h) Recovery time of F1 is 3.3 ms (4 of them) to 10.7 ms (calm/PCN and wild/PCN); " +
			"not reached or not measured with calm/TIMELY and wild/TIMELY.",
	}))
	// Over time there is the first case alone, and the caption says so.
	throughput := svgElement.FindAllString(page, -1)[2]
	qt.Check(t, qt.StringContains(throughput, ">calm/PFC: throughput loss 3.3ms<"))
	qt.Check(t, qt.Not(qt.StringContains(throughput, "wild")))
	qt.Check(t, qt.Equals(strings.Count(page, " Case calm only, the first of 2.</figcaption>"), 5))

	// The tables are of all cases, and those with something to see are open.
	qt.Check(t,
		qt.StringContains(page,
			"<details open>\n<summary>Case calm: <span class=\"invalid\">9 of 10 expectations met</span></summary>"))
	got := rows(page)
	qt.Check(t, qt.SliceContains(got,
		"wild/TIMELY|both keep going||2.784Gbps, 2.585Gbps|at least 1Gbps|yes|"))
	qt.Check(t, qt.SliceContains(got, "Seed|1|1|1|1|1|"))

	// What is compared and expected is drawn over the cases once.
	e.Expect = append(e.Expect, experiment.Expect{What: "the sum recovers",
		Measure: e.Compare[0].Measure, Max: new(experiment.Quantity{Value: 70e6})})
	qt.Check(t, qt.HasLen(titles(render(t, e, runs)), 8))
	e.Expect = e.Expect[:3]

	runs[2].Series, runs[7].Series = runs[0].Series, runs[0].Series // TIMELY as PFC
	qt.Check(t, qt.StringContains(render(t, e, runs),
		"<details>\n<summary>Case calm: <span class=\"valid\">10 of 10 expectations met</span></summary>"))
}

// The runs of one case are drawn, whichever it is, and their tables are not folded.
func TestOneOfSeveralCases(t *testing.T) {
	e, runs := both(t)
	page := render(t, e, runs[5:])
	qt.Check(t, qt.StringContains(page, ">wild/PFC: throughput loss 3.3ms<"))
	qt.Check(t, qt.Not(qt.StringContains(page, "only, the first of")))
	qt.Check(t, qt.Equals(strings.Count(page, "<details"), 1)) // of the parameters
	qt.Check(t, qt.HasLen(titles(page), 6))                    // nothing is over cases
	qt.Check(t, qt.StringContains(page, "All 5 runs are valid."))
}

func TestComparedTable(t *testing.T) {
	e, runs := both(t)
	got := rows(render(t, e, runs))
	for _, want := range []string{
		"throughput loss lasts|PFC|3.1ms|3.3ms|1.06|1.55ms to 4.65ms|yes|",
		"|QCN|20ms|6.4ms|0.32|10ms to 30ms|no|",
		"|TIMELY|60ms|not measured: calm: F0&#43;F1: not reached within the remaining 19ms of the run||30ms to 90ms|no|",
		"|CUBIC||3.3ms||||",
		"|pcn &lt; pfc &lt; qcn &lt; timely|pcn 1.1ms, pfc 3.3ms, qcn 6.4ms, timely not reached|yes|",
		"|each at least 4 times pcn|pfc 3 times, qcn 5.82 times, timely over 17.3 times|no|",
	} {
		qt.Check(t, qt.SliceContains(got, want))
	}
}

func TestParametersOfSchemes(t *testing.T) {
	e, err := experiment.Parse("x.yaml", []byte(strings.Replace(twoCases, "schemes: [pfc,",
		"switch: {pfc: {off: true}}\nschemes: [dcqcn, pcn_dctcp, ldcp, pfc,", 1)))
	qt.Assert(t, qt.IsNil(err))
	var runs []*result.Run
	for _, scheme := range e.Schemes {
		runs = append(runs, &result.Run{Manifest: result.Manifest{Scheme: scheme}})
	}
	qt.Check(t, qt.DeepEquals(schemesInWords(e, runs), []string{
		"DCQCN set paper, marks from 5KB to 200KB by up to 0.01",
		"PCN_DCTCP g 0.0625, initial_alpha 1, burst 0ns, bound_cut false, " +
			"slow_start_delay 0ns, marks from 120KB to 120KB by up to 1",
		"LDCP alpha 1, beta 0.5, gamma 0.25, eta 0.5, initial_window 0B, burst 0ns, ask_acks false, ack_every 1, feedback echo, first_rtt drop, doubt false, doubt_hold 500ms, wred_k 30KB, marks from 20KB to 80KB by up to 1",
		"QCN min_rate 5Mbps, rate_ai 20Mbps, rate_hai 200Mbps, timer 15ms, byte_counter 150KB, fast_recovery 5, half_from ai, gd 0.0078125, min_decrease_factor 0.5, hai_after_packets 500, loss_cut true, qeq 104KB, sample_base 150KB, w 2, sample_jitter 0.15",
		"TIMELY set snippet",
		"PCN min_rate 1Mbps, w_min 0.0078125, w_max 0.5, feedback cnp, catch_up 0, idle_cut 1, young 0B, w_young 0.0078125, patience 0, burst 0ns, doubt false, careful_start false, doubt_hold 500ms, loss_cut true, T 50us, congested_share 0.95, rate_unit 1Mbps, T_jitter 0, pause_is_silence false, window armed",
		"CUBIC marks from 120KB to 120KB by up to 1",
	}))
	qt.Check(t, qt.HasLen(schemesInWords(e, runs[3:4]), 0))
	qt.Check(t, qt.Equals(pfcInWords(e.Switch.PFC), "off"))
	some := experiment.PFC{XOFF: 512e3, XON: 510e3, Schemes: []string{"pcn", "pfc"}}
	qt.Check(t, qt.Equals(pfcInWords(some), "static, XOFF 512KB, XON 510KB, for PCN, PFC only"))
}

func TestLastSendingRate(t *testing.T) {
	qt.Check(t, qt.Equals(sendRateInWords(&result.Flow{SendRateBps: 20e9}), "20Gbps"))
	qt.Check(t, qt.Equals(sendRateInWords(&result.Flow{SendRateBps: 9.5e9, CwndPackets: 12}),
		"9.5Gbps, window 12 packets"))
}
