// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"context"
	_ "embed"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/experiment"
	"github.com/pcn-linux/pcn/internal/report/look"
	"github.com/pcn-linux/pcn/internal/result"
	"github.com/pcn-linux/pcn/internal/result/resulttest"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// The tests in this file look at pages in Chromium as readers do: light and dark, wide and narrow.
// They check the layout, and hold screenshots against golden ones: package look.

//go:embed testdata/act.js
var usePage string

// demo writes the report of hol with PFC and PCN, with all of its figures, and returns its address.
func demo(t *testing.T) string {
	t.Helper()
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(experiment.Changes{Schemes: []string{"pfc", "pcn"},
		Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	return pageFile(t, render(t, e, fig2(e)))
}

func setScripts(enabled bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: !enabled})
		return err
	})
}

func TestReportInBrowser(t *testing.T) {
	// PAUSE, throughput, queues, rates, and two comparisons with the paper
	qt.Check(t, qt.Equals(look.Page(t, "report", demo(t)), 6))
}

func TestSweepInBrowser(t *testing.T) {
	s := sweepOf(3)
	m := s.Metrics[0]
	m.Name = "queue again"
	s.Metrics = append(s.Metrics, m)
	qt.Check(t, qt.Equals(look.Page(t, "sweep", pageFile(t, pageOf(t, s))), 2))
	s.PointHeader = []string{"T", "w_min"}
	for i := range s.Metrics[0].Rows {
		s.Metrics[0].Rows[i].Columns = []string{[]string{"1us", "2us"}[i/2],
			[]string{"1/2", "1/4"}[i%2]}
	}
	qt.Check(t, qt.Equals(look.Page(t, "sweep-map", pageFile(t, pageOf(t, s))), 0))
}

func TestReproductionInBrowser(t *testing.T) {
	qt.Check(t, qt.Equals(look.Page(t, "reproduction", pageFile(t, reproductionPage(t))), 3))
}

func TestTopologyInBrowser(t *testing.T) {
	e, err := experiments.Load("clos-full")
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), "clos.svg")
	f, err := os.Create(path)
	qt.Assert(t, qt.IsNil(err))
	qt.Assert(t, qt.IsNil(WriteTopology(f, e.Topology.Network())))
	qt.Assert(t, qt.IsNil(f.Close()))
	look.Picture(t, "topology", pageFile(t, `<!DOCTYPE html><title>Clos</title><img src="`+path+
		`" style="max-width: 100%">`))
}

// reproductionPage has two figures of a paper: one with curves over time of several seeds.
func reproductionPage(t *testing.T) string {
	t.Helper()
	e := load(t)
	b := NewBands(e)
	for seed := range 5 {
		r := resulttest.Fig2(e, "pcn")
		for i := range r.Series {
			r.Series[i].RateBps = r.Series[i].RateBps * uint64(100+seed) / 100
		}
		qt.Assert(t, qt.IsNil(b.Add(r)))
	}
	claim := ReproducedClaim{What: "PCN: throughput is lost for", Quote: "recovers in 1.4 ms",
		Paper: "1.4 ms (at most 2 ms)", Simulation: "600us [500us to 700us], n = 5", Kernel: "-",
		Verdict: "met", Met: true, Command: "pcn reproduce pcn-fig2", Min: math.Inf(-1), Max: 2e6,
		Low: 5e5, Value: 6e5, High: 7e5, HasValue: true}
	missed := claim
	missed.Verdict, missed.Met, missed.Missed = "not met", false, "the burst is shorter"
	missed.Low, missed.Value, missed.High = 2.5e6, 2.6e6, 2.7e6
	var page bytes.Buffer
	qt.Assert(t, qt.IsNil(WriteReproduction(&page, Reproduction{
		Summary: "1 of 2 claims is met, 1 is not.",
		Figures: []ReproducedFigure{
			{ID: "pcn-fig2", Title: "a burst", Note: "With five seeds.", Bands: []*Bands{b},
				Claims: []ReproducedClaim{claim}},
			{ID: "pcn-fig5", Title: "sizes", Sweeps: []Sweep{sweepOf(3)},
				Claims: []ReproducedClaim{missed}},
		},
	})))
	return page.String()
}

// pageFile writes a page, and returns its address.
func pageFile(t *testing.T, page string) string {
	t.Helper()
	qt.Check(t, qt.IsTrue(len(page) < maxPage), qt.Commentf("%d bytes", len(page)))
	path := filepath.Join(t.TempDir(), "page.html")
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(page), 0o600)))
	return "file://" + path
}

// Readers zoom, read values, hide curves, and move through time.
func TestReportAnswers(t *testing.T) {
	ctx := look.Browser(t)
	look.Do(t, ctx, look.AtSize(1400, "light"), chromedp.Navigate(demo(t)))
	// Figures are drawn when they come near, and those above move this one: it must stand still.
	at := look.Ask[struct{ X, Y float64 }](t, ctx, `(async () => {
		const figure = document.querySelector("figure[data-file$=-throughput]");
		let at, still = 0;
		for (let turn = 0; still < 10; turn++) {
			if (turn === 3000)
				throw new Error(at ? "the figure still moves: it is at " + JSON.stringify(at) :
					"the figure is not drawn; errors of the page: " + window.thrown.join("; "));
			figure.scrollIntoView();
			await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
			const now = figure.querySelector(".over")?.getBoundingClientRect();
			still = now && at && now.left === at.left && now.top === at.top ? still + 1 : 0;
			at = now;
		}
		return {x: at.left, y: at.top};
	})()`)
	look.Do(t, ctx, chromedp.DragAndDropXY(at.X+100, at.Y+40, at.X+200, at.Y+40, 5))
	got := look.Ask[struct {
		Tip, Followed, TipHalf, When, Later, CSV string
		Address, AddressAfter                    string
		Pressed                                  []string
		Zoomed, ZoomedOut, FollowedLink          int
		Before, After, Shown                     int
	}](t, ctx, usePage)
	qt.Check(t, qt.StringContains(got.Tip, "F0: "))
	// The network is at the cursor's time, and figures at the slider's.
	qt.Check(t, qt.IsTrue(math.Abs(msIn(t, got.Tip)-msIn(t, got.Followed)) < 0.2))
	qt.Check(t, qt.IsTrue(math.Abs(msIn(t, got.TipHalf)-msIn(t, got.When)) < 0.2))
	// One zoom is that of all figures over time, and the address has it.
	qt.Check(t, qt.IsTrue(got.Zoomed >= 2), qt.Commentf("%d figures are zoomed", got.Zoomed))
	qt.Check(t, qt.Equals(got.ZoomedOut, 0))
	qt.Check(t, qt.Equals(got.FollowedLink, got.Zoomed))
	qt.Check(t, qt.Matches(got.Address, `#experiment-1&ms=[0-9.]+,[0-9.]+`))
	qt.Check(t, qt.Equals(got.AddressAfter, ""))
	// Alone, all again, without it, and with it.
	qt.Check(t, qt.DeepEquals(got.Pressed,
		[]string{"true,false", "true,true", "false,true", "true,true"}))
	qt.Check(t, qt.Not(qt.Equals(got.When, got.Later)))
	qt.Check(t, qt.IsTrue(got.Before > got.After), qt.Commentf("%d, %d", got.Before, got.After))
	qt.Check(t, qt.Equals(got.Shown, 2)) // one picture for each run
	qt.Check(t, qt.Equals(got.CSV, "Panel,Curve,Time (ms),Value,Unit"))
}

// A curve of many values is drawn by few, and none of its peaks is lost, nor a gap or an end.
func TestLongCurvesInBrowser(t *testing.T) {
	ctx := look.Browser(t)
	look.Do(t, ctx, look.AtSize(1400, "light"), chromedp.Navigate(demo(t)))
	got := look.Ask[struct {
		Pieces, Kept, Few, Peaks, Seen int
		Left, Right                    float64
	}](t, ctx, `(() => {
		const n = 200000, peaks = [17, 60001, 123456, 199990], xs = [], ys = [];
		for (let i = 0; i < n; i++) {
			xs.push(i);
			ys.push(i === 90000 ? null : peaks.includes(i) ? 1 : (i * 7919 % 1000) / 2000);
		}
		const u = Object.assign(Object.create(Panel.prototype),
			{min: 0, max: n - 1, width: 500, height: 100, o: {yMin: 0, yMax: 1}});
		const pieces = u.pieces(xs, ys), all = pieces.flat();
		u.max = 99;
		return {pieces: pieces.length, kept: all.length, left: all[0][0], right: all.at(-1)[0],
			peaks: all.filter(([, y]) => y === 0).length, few: u.pieces(xs, ys).flat().length,
			seen: nearest(xs, 1234.4)};
	})()`)
	qt.Check(t, qt.Equals(got.Pieces, 2))
	qt.Check(t, qt.Equals(got.Peaks, 4))
	qt.Check(t, qt.IsTrue(got.Kept <= 4*502), qt.Commentf("%d values", got.Kept))
	qt.Check(t, qt.Equals(got.Left, 0.0))
	qt.Check(t, qt.Equals(got.Right, 500.0))
	qt.Check(t, qt.IsTrue(got.Few >= 100 && got.Few <= 102), qt.Commentf("%d values", got.Few))
	qt.Check(t, qt.Equals(got.Seen, 1234))
}

// msIn returns the time in a text, such as 1.2 of "t = 1.2 ms".
func msIn(t *testing.T, text string) float64 {
	t.Helper()
	m := regexp.MustCompile(`(-?[0-9.]+) ms`).FindStringSubmatch(text)
	qt.Assert(t, qt.HasLen(m, 2), qt.Commentf("%q has no time", text))
	ms, err := strconv.ParseFloat(m[1], 64)
	qt.Assert(t, qt.IsNil(err))
	return ms
}

// Without scripts, readers see every figure as a picture, and the network at a few moments.
func TestReportWithoutScripts(t *testing.T) {
	ctx := look.Browser(t)
	look.Do(t, ctx, look.AtSize(400, "light"), setScripts(false), chromedp.Navigate(demo(t)),
		setScripts(true))
	qt.Check(t, qt.Equals(look.Ask[int](t, ctx, `[...document.querySelectorAll(".still svg")].
		filter((s) => s.getClientRects().length).length`), 6))
	qt.Check(t, qt.IsTrue(look.Ask[int](t, ctx, `document.querySelectorAll("svg.net").length`) > 2))
	qt.Check(t, qt.Equals(look.Ask[int](t, ctx, `document.querySelectorAll(".live").length`), 0))
}

// A report of several seeds has their dots and intervals, and says whose figures over time are.
func TestSeedsInBrowser(t *testing.T) {
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.With(experiment.Changes{Schemes: []string{"pfc", "pcn"},
		Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	runs := fig2(e)
	summary := &result.SeedsSummary{}
	for i, factor := range []float64{1, 0.9, 1.2, 0.8, 1.1} { // seed 1's values are the medians
		j := result.Judge(e, runs)
		j.Seed = uint64(i + 1)
		for _, o := range j.Compared {
			for i := range o.Values {
				o.Values[i].Measured.Value *= factor
			}
		}
		summary.Seeds = append(summary.Seeds, j)
	}
	var page bytes.Buffer
	qt.Assert(t, qt.IsNil(Write(&page, Group{Experiment: e, Runs: runs,
		Seeds: []*result.SeedsSummary{summary}})))
	text := page.String()
	qt.Check(t, qt.StringContains(text, "Medians of 5 seeds. All 10 runs are valid."))
	qt.Check(t, qt.StringContains(text, "Of seed 1 alone."))
	qt.Check(t, qt.StringContains(text, `"dots":[[`))
	qt.Check(t, qt.StringContains(text, "F0 and F1 together lose throughput for "))
	qt.Check(t, qt.Equals(look.Page(t, "seeds", pageFile(t, text)), 6))
}
