// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
	"github.com/pcn-linux/pcn/netns-lab/report/look"
)

// The tests in this file look at a report in Chromium as readers do: light and dark, wide and
// narrow. They check properties of the layout rather than compare screenshots with golden ones.
// Golden pictures change with each version of the browser and of its fonts and rasteriser; a
// tolerance that allows for that, some percent of the pixels, also allows for a missing curve or
// for text outside of its panel. The properties are those that a look at screenshots was for.
//
// PCN_SCREENSHOTS=DIR also writes the screenshots, to look at.

//go:embed testdata/act.js
var usePage string

// demo writes the report of hol with PFC and PCN, with all of its figures, and returns its address.
func demo(t *testing.T) string {
	t.Helper()
	e, err := experiments.Load("hol")
	qt.Assert(t, qt.IsNil(err))
	e, err = e.Override(experiment.Override{Schemes: []string{"pfc", "pcn"},
		Duration: new(19 * experiment.Millisecond)})
	qt.Assert(t, qt.IsNil(err))
	path := filepath.Join(t.TempDir(), "report.html")
	page := render(t, e, fig2(e))
	qt.Check(t, qt.IsTrue(len(page) < 1e6), qt.Commentf("%d bytes", len(page)))
	qt.Assert(t, qt.IsNil(os.WriteFile(path, []byte(page), 0o600)))
	return "file://" + path
}

func setScripts(enabled bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: !enabled})
		return err
	})
}

func TestReportInBrowser(t *testing.T) {
	ctx := look.Browser(t)
	address := demo(t)
	for _, width := range []int64{1400, 400} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d %s", width, scheme), func(t *testing.T) {
				look.Do(t, ctx, look.AtSize(width, scheme), chromedp.Navigate(address))
				// PAUSE, throughput, queues, rates, and two comparisons with the paper
				qt.Check(t, qt.Equals(look.Ask[int](t, ctx, look.ScrollThrough), 6))
				wrong := look.Ask[[]string](t, ctx, look.AtPage)
				qt.Check(t, qt.HasLen(wrong, 0), qt.Commentf("%s", strings.Join(wrong, "\n")))
				if dir := os.Getenv("PCN_SCREENSHOTS"); dir != "" {
					picture, err := chromedp.Run(ctx, chromedp.FullScreenshot(100))
					qt.Assert(t, qt.IsNil(err))
					name := fmt.Sprintf("report-%d-%s.png", width, scheme)
					qt.Check(t, qt.IsNil(os.WriteFile(filepath.Join(dir, name), picture, 0o600)))
				}
			})
		}
	}
}

// Readers zoom, read values, hide curves, and move through time.
func TestReportAnswers(t *testing.T) {
	ctx := look.Browser(t)
	look.Do(t, ctx, look.AtSize(1400, "light"), chromedp.Navigate(demo(t)))
	at := look.Ask[struct{ X, Y float64 }](t, ctx, `(async () => {
		const figure = document.querySelectorAll("figure[data-live]")[1];
		figure.scrollIntoView();
		await new Promise((done) => setTimeout(done, 300));
		const at = figure.querySelector(".u-over").getBoundingClientRect();
		return {x: at.left, y: at.top};
	})()`)
	look.Do(t, ctx, chromedp.DragAndDropXY(at.X+100, at.Y+40, at.X+200, at.Y+40, 5))
	got := look.Ask[struct {
		Tip, Pressed, When, Later, CSV string
		Reset, ZoomedOut               bool
		Before, After, Shown           int
	}](t, ctx, usePage)
	qt.Check(t, qt.StringContains(got.Tip, "F0: "))
	qt.Check(t, qt.IsTrue(got.Reset))
	qt.Check(t, qt.IsTrue(got.ZoomedOut))
	qt.Check(t, qt.Equals(got.Pressed, "false"))
	qt.Check(t, qt.Not(qt.Equals(got.When, got.Later)))
	qt.Check(t, qt.IsTrue(got.Before > got.After), qt.Commentf("%d, %d", got.Before, got.After))
	qt.Check(t, qt.Equals(got.Shown, 2)) // one picture for each run
	qt.Check(t, qt.Equals(got.CSV, "Panel,Curve,Time (ms),Value,Unit"))
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
