// SPDX-License-Identifier: Apache-2.0

// Package look shows pages to tests in Chromium, as readers see them: light and dark, wide and
// narrow.
package look

import (
	"context"
	_ "embed"
	"os/exec"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/performance"
	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"
)

// atPage is a script that looks at a page and returns what is wrong with it.
//
//go:embed look.js
var atPage string

// Browser starts Chromium. It skips the test where there is none.
func Browser(t *testing.T) context.Context {
	t.Helper()
	path, err := exec.LookPath("chromium")
	if err != nil {
		t.Skip("no chromium: pages are not looked at (scripts/setup.sh --dev installs it)")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path),
		chromedp.UserDataDir(t.TempDir()))
	for _, flag := range []string{"no-sandbox", "disable-gpu", "disable-quic", "no-first-run",
		"disable-background-networking", "disable-component-update", "disable-sync",
		"hide-scrollbars", "disable-lcd-text"} {
		options = append(options, chromedp.Flag(flag, true))
	}
	// so that a page that never answers is named: a busy machine takes minutes for these pages
	ctx, cancel := context.WithTimeout(t.Context(), 25*time.Minute)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewExecAllocator(ctx, options...)
	t.Cleanup(cancel)
	ctx, cancel = chromedp.NewContext(ctx)
	t.Cleanup(cancel)
	Do(t, ctx, chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, performance.Enable, performance.EnableParams{
			TimeDomain: performance.EnableTimeDomainThreadTicks})
		return err
	}), First(`window.thrown = [];
		addEventListener("error", (e) => window.thrown.push(e.message));`))
	return ctx
}

// First runs a script in each page before the page's own.
func First(script string) chromedp.Action[chromedp.Void] {
	return chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
		_, err := cdp.Call(ctx, target, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	})
}

// Do takes steps in the browser.
func Do(t *testing.T, ctx context.Context, steps ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	qt.Assert(t, qt.IsNil(chromedp.Do(ctx, steps...)))
}

// Ask returns the value of a script, which may be a promise.
func Ask[T any](t *testing.T, ctx context.Context, script string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](script, chromedp.EvalAwaitPromise))
	qt.Assert(t, qt.IsNil(err))
	return v
}

// AtSize sets the width of the screen and the preferred colours: light or dark.
func AtSize(width int64, colors string) chromedp.Action[chromedp.Void] {
	return chromedp.Steps(chromedp.EmulateViewport(width, 900),
		chromedp.Func(func(ctx context.Context, target *chromedp.Target) error {
			_, err := cdp.Call(ctx, target, emulation.SetEmulatedMedia,
				emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{
					{Name: "prefers-color-scheme", Value: colors}}})
			return err
		}))
}

// scrollThrough makes the page's script draw every figure, as it draws those that come near to the
// screen. It returns how many it drew.
const scrollThrough = `(async () => {
	for (let y = 0; y < document.documentElement.scrollHeight; y += 400) {
		scrollTo(0, y);
		await new Promise((done) => requestAnimationFrame(() => setTimeout(done, 20)));
	}
	scrollTo(0, 0);
	return document.querySelectorAll("figure[data-live] .live").length;
})()`
