// SPDX-License-Identifier: Apache-2.0

package report

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
	"github.com/pcn-linux/pcn/netns-lab/experiments"
)

// The tests in this file look at a report in Chromium as readers do: light and dark, wide and
// narrow. They check properties of the layout rather than compare screenshots with golden ones.
// Golden pictures change with each version of the browser and of its fonts and rasteriser; a
// tolerance that allows for that, some percent of the pixels, also allows for a missing curve or
// for text outside of its panel. The properties are those that a look at screenshots was for.
//
// PCN_SCREENSHOTS=DIR also writes the screenshots, to look at.

//go:embed testdata/look.js
var lookAtPage string

//go:embed testdata/act.js
var usePage string

// newBrowser starts Chromium. It skips the test where there is none.
func newBrowser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: the report is not looked at (scripts/setup.sh --dev installs it)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()))
	for _, flag := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
		"disable-background-networking", "disable-component-update", "disable-sync"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: `window.thrown = [];
				addEventListener("error", (e) => window.thrown.push(e.message));`})
		return err
	}))
	return ctx
}

func do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	qt.Assert(t, qt.IsNil(chromedp.Do(ctx, steps...)))
}

// ask returns the value of a script, which may be a promise.
func ask[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	qt.Assert(t, qt.IsNil(err))
	return v
}

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

// atSize sets the size of the screen and the preferred colours.
func atSize(width int64, scheme string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.EmulateViewport(width, 900),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: scheme}}})
			return err
		}))
}

func setScripts(enabled bool) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, emulation.SetScriptExecutionDisabled,
			emulation.SetScriptExecutionDisabledParams{Value: !enabled})
		return err
	})
}

// scrollThrough draws every figure: the script draws those that come near to the screen.
const scrollThrough = `(async () => {
	for (let y = 0; y < document.body.scrollHeight; y += 400) {
		scrollTo(0, y);
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
	}
	scrollTo(0, 0);
	return document.querySelectorAll("figure[data-live] .live").length;
})()`

func TestReportInBrowser(t *testing.T) {
	ctx := newBrowser(t)
	address := demo(t)
	for _, width := range []int64{1400, 400} {
		for _, scheme := range []string{"light", "dark"} {
			t.Run(fmt.Sprintf("%d %s", width, scheme), func(t *testing.T) {
				do(t, ctx, atSize(width, scheme), chromedp.Navigate(address))
				// PAUSE, throughput, queues, rates
				qt.Check(t, qt.Equals(ask[int](t, ctx, scrollThrough), 4))
				wrong := ask[[]string](t, ctx, lookAtPage)
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
	ctx := newBrowser(t)
	do(t, ctx, atSize(1400, "light"), chromedp.Navigate(demo(t)))
	at := ask[struct{ X, Y float64 }](t, ctx, `(async () => {
		const figure = document.querySelectorAll("figure[data-live]")[1];
		figure.scrollIntoView();
		await new Promise((done) => setTimeout(done, 300));
		const at = figure.querySelector(".u-over").getBoundingClientRect();
		return {x: at.left, y: at.top};
	})()`)
	do(t, ctx, chromedp.DragAndDropXY(at.X+100, at.Y+40, at.X+200, at.Y+40, 5))
	got := ask[struct {
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
	ctx := newBrowser(t)
	do(t, ctx, atSize(400, "light"), setScripts(false), chromedp.Navigate(demo(t)),
		setScripts(true))
	qt.Check(t, qt.Equals(ask[int](t, ctx, `[...document.querySelectorAll(".still svg")].
		filter((s) => s.getClientRects().length).length`), 6))
	qt.Check(t, qt.IsTrue(ask[int](t, ctx, `document.querySelectorAll("svg.net").length`) > 2))
	qt.Check(t, qt.Equals(ask[int](t, ctx, `document.querySelectorAll(".live").length`), 0))
}
