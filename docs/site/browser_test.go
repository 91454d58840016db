// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/go-quicktest/qt"

	"github.com/pcn-linux/pcn/internal/report/look"
)

// written writes a site, and returns the address of its folder.
func written(t *testing.T, s *site) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "site")
	qt.Assert(t, qt.IsNil(s.write(out)))
	return "file://" + out + "/"
}

// What strangers read first has contrast and no line that is wider than a telephone.
func TestPagesInBrowser(t *testing.T) {
	address := written(t, sharedSite(t))
	browser := look.Browser(t)
	for _, name := range []string{"index", "tutorial", "experiments", "schemes-pcn", "cli"} {
		look.Layout(t, browser, name, address+name+".html")
	}
}

const sampleText = `# Sample

A paragraph with ` + "`code`" + `, a [link](docs/tutorial.md), and **bold** text. It is long enough
for several lines on a telephone, and has no meaning.

` + "```console\n$ bin/pcn run hol --algo pfc,pcn --duration 19ms --engine sim --out one\n```" + `

## Table

| you want to | use | because |
|---|---|---|
| try an idea on thousands of nodes | ns-3 or htsim, simulators | more models, larger networks |
| know what hardware does | a testbed | nothing replaces it |

> A quotation.

1. one
2. two
`

// The front page looks as it did. Its text is a sample, so that editing a document does not change
// the picture.
func TestFrontPageInBrowser(t *testing.T) {
	texts := map[string]string{}
	for name := range sharedSite(t).byPath {
		texts[name] = "# " + filepath.Base(name) + "\n\nText.\n"
	}
	texts["README.md"] = sampleText
	s, err := load(repositoryRoot, "", texts)
	qt.Assert(t, qt.IsNil(err))
	address := written(t, s)
	qt.Check(t, qt.Equals(look.Page(t, "front", address+"index.html"), 0))
	info, err := os.Stat(filepath.Join(address[len("file://"):], "index.html"))
	qt.Assert(t, qt.IsNil(err))
	qt.Check(t, qt.IsTrue(info.Size() < 1e6))
}

// Readers find what these pages have another word for, and what they misspell; commands are copied
// without their prompts, and each page leads to the next.
func TestSearchInBrowser(t *testing.T) {
	ctx := look.Browser(t)
	address := written(t, sharedSite(t))
	look.Do(t, ctx, look.AtSize(1400, "light"), chromedp.Navigate(address+"tutorial.html"))
	for query, want := range map[string]string{"rollback": "", "uninstall": "",
		"pandas":     "notebook",
		"all-reduce": "", "floating point": "", "pausse": "", "sceme": "",
		"zzzzqq": "Nothing found"} {
		found := look.Ask[string](t, ctx, `(() => {
			const query = document.getElementById("query");
			query.value = "`+query+`";
			query.dispatchEvent(new Event("input"));
			return document.getElementById("found").textContent;
		})()`)
		qt.Check(t, qt.StringContains(strings.ToLower(found), strings.ToLower(want)),
			qt.Commentf("%s", query))
		qt.Check(t, qt.Equals(strings.HasPrefix(found, "Nothing found"), query == "zzzzqq"),
			qt.Commentf("%s: %s", query, found))
	}
	copied := look.Ask[string](t, ctx, `(async () => {
		let text = "";
		Object.defineProperty(navigator, "clipboard", {value: {writeText: (t) => { text = t; }}});
		const block = [...document.querySelectorAll(".code")]
			.find((b) => b.querySelector("pre").textContent.startsWith("$ "));
		block.querySelector("button").click();
		await 0;
		return text;
	})()`)
	qt.Check(t, qt.Not(qt.Equals(copied, "")))
	qt.Check(t, qt.Not(qt.StringContains(copied, "$ ")))
	qt.Check(t, qt.Equals(look.Ask[int](t, ctx,
		`document.querySelectorAll(".next a[rel=prev], .next a[rel=next]").length`), 2))
	qt.Check(t, qt.IsTrue(look.Ask[int](t, ctx,
		`document.querySelectorAll(".contents a").length`) > 2))
}

// The page with the simulator, read from the disk, opens with figures at once, and draws what its
// reader chooses: the same as pcn run.
func TestSimulatorInBrowser(t *testing.T) {
	s := *sharedSite(t)
	var err error
	s.simulator, err = newSimulatorSite(t.Context(), repositoryRoot)
	qt.Assert(t, qt.IsNil(err))
	address := written(t, &s) + "in-browser.html"
	ctx := look.Browser(t)
	// what the page does when it is idle begins when the test says so
	look.Do(t, ctx, look.First("window.requestIdleCallback = (idle) => { window.idle = idle; };"))
	look.Do(t, ctx, look.AtSize(1400, "light"))
	var first string
	look.Quickly(t, maxFig2, func() (seconds float64) {
		first, seconds = readerWaits(t, ctx, address)
		return seconds
	})
	qt.Check(t, qt.Equals(look.Ask[string](t, ctx, moved(-4)+simulated), first))
	for _, scheme := range []string{"dcqcn", "timely", "qcn", "ldcp", "hpcc", "ibcc"} {
		drawn := look.Ask[string](t, ctx, `(() => {
			const form = document.getElementById("simulator");
			form.scheme.value = "`+scheme+`";
			form.burst.value = 16;
			form.dispatchEvent(new Event("input"));
		})(), `+simulated)
		qt.Check(t, qt.StringContains(drawn, " with "+strings.ToUpper(scheme)+"."),
			qt.Commentf("%s", scheme))
	}
	qt.Check(t, qt.Equals(look.Ask[int](t, ctx, "thrown.length"), 0))
	look.Layout(t, look.Browser(t), "in-browser", address)
}

// readerWaits opens the page and chooses. It returns the figures that the page opened with, and for
// how many seconds a reader waits at most: for them, for the first choice or for further ones. It
// is CPU time, as it would be on a machine with nothing else to do.
func readerWaits(
	t *testing.T, ctx context.Context, address string,
) (first string, seconds float64) {
	t.Helper()
	before := cpuSeconds(t)
	look.Do(t, ctx, chromedp.Navigate(address))
	first = look.Ask[string](t, ctx, drawnFigures)
	opening := cpuSeconds(t) - before
	qt.Check(t, qt.Matches(first, `(?s)Throughput is lost for 3\.2 ms with PFC and `+
		`0\.6 ms with PCN\.<svg.*From the first to the last PAUSE of H0 or H1: .*`))
	qt.Check(t, qt.IsTrue(look.Ask[bool](t, ctx, "typeof simulatorProgram === 'undefined'")))
	look.Ask[string](t, ctx, "idle(), "+ready)
	slower := slowerThanUsual(t, ctx)
	before = cpuSeconds(t)
	changed := look.Ask[string](t, ctx, moved(1)+simulated)
	chosen := cpuSeconds(t) - before
	qt.Check(t, qt.Not(qt.Equals(changed, first)))
	quickest := math.Inf(1)
	for range 3 {
		before = cpuSeconds(t)
		look.Ask[string](t, ctx, moved(1)+simulated)
		quickest = min(quickest, cpuSeconds(t)-before)
	}
	slower = max(slower, slowerThanUsual(t, ctx))
	t.Logf("CPU seconds: %.2f to open the page, %.2f for the first choice, %.2f for further ones, "+
		"of both runs; CPUs are %.2f times slower than usual", opening, chosen, quickest, slower)
	return first, max(opening, chosen, quickest) / slower
}

// maxFig2 is how long a reader may wait for Fig. 2, in seconds. It is held against CPU time, which
// is the wall-clock time on one CPU that has nothing else to do.
const maxFig2 = 2.0

// yardstick is a script that computes, and reads and writes 8 MB here and there. No change of the
// page makes it slower. usualS is its CPU time on a machine with nothing else to do.
const (
	yardstick = `(() => {
		const cells = new Int32Array(1 << 21);
		let x = 1, sum = 0;
		for (let i = 0; i < 1e8; i++) {
			x = (Math.imul(x, 1664525) + 1013904223) | 0;
			sum = (sum + cells[x >>> 11]) | 0;
			cells[x >>> 11] = i;
		}
		return sum;
	})()`
	usualS = 0.45
)

// slowerThanUsual returns how many times as much CPU time as usual the browser takes for the same
// work: twice as much where other processes use the caches and the other half of each core. It is
// at least 1.
func slowerThanUsual(t *testing.T, ctx context.Context) float64 {
	t.Helper()
	before := cpuSeconds(t)
	look.Ask[int](t, ctx, yardstick)
	return max((cpuSeconds(t)-before)/usualS, 1)
}

// moved asks for another seed, as a reader does who moves the slider.
func moved(seeds int) string {
	return fmt.Sprintf(`(() => {
		const form = document.getElementById("simulator");
		form.seed.value = Number(form.seed.value) + %d;
		form.dispatchEvent(new Event("input"));
	})(), `, seeds)
}

// cpuSeconds returns the CPU time of this process's descendants: the browser's processes.
func cpuSeconds(t *testing.T) float64 {
	t.Helper()
	const ticksPerSecond = 100 // USER_HZ, on all architectures of ours
	parents, ticks := map[int]int{}, map[int]int{}
	files, err := filepath.Glob("/proc/[0-9]*/stat")
	qt.Assert(t, qt.IsNil(err))
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		var pid, parent, user, system int
		_, err = fmt.Sscan(filepath.Base(filepath.Dir(file)), &pid)
		qt.Assert(t, qt.IsNil(err))
		_, after, _ := bytes.Cut(text, []byte(") ")) // names may have spaces
		fields := strings.Fields(string(after))
		_, err = fmt.Sscan(fields[1]+" "+fields[11]+" "+fields[12], &parent, &user, &system)
		qt.Assert(t, qt.IsNil(err))
		parents[pid], ticks[pid] = parent, user+system
	}
	sum := 0
	for pid := range parents {
		above := parents[pid]
		for above != 0 && above != os.Getpid() {
			above = parents[above]
		}
		if above != 0 {
			sum += ticks[pid]
		}
	}
	return float64(sum) / ticksPerSecond
}

// drawnFigures is a script for the headings and the pictures.
const drawnFigures = `[...document.querySelectorAll("#simulated figure")]
	.map((f) => f.querySelector("figcaption").textContent + f.querySelector("svg").outerHTML)
	.join("")`

// ready waits until the page has the simulator.
const ready = `(async () => {
	const {state} = document.getElementById("simulator").elements;
	while (!state.value.startsWith("The simulator is ready"))
		await new Promise((done) => setTimeout(done, 50));
	return state.value;
})()`

// simulated waits for both runs, and returns the figures.
const simulated = `(async () => {
	const {state} = document.getElementById("simulator").elements;
	while (!state.value.startsWith("20 ms")) await new Promise((done) => setTimeout(done, 50));
	return ` + drawnFigures + `;
})()`
