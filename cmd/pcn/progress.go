// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"os"
	"sync"

	"github.com/schollz/progressbar/v3"
	"golang.org/x/term"
)

// progress is one line for all schemes, with the time left.
type progress struct {
	mu   sync.Mutex
	bar  *progressbar.ProgressBar
	done map[string]float64
	of   int
}

const progressSteps = 1000

func newProgress(w io.Writer, what string, schemes []string) *progress {
	visible := false
	if f, ok := w.(*os.File); ok {
		visible = term.IsTerminal(int(f.Fd()))
	}
	return &progress{
		done: map[string]float64{},
		of:   len(schemes),
		bar: progressbar.NewOptions(progressSteps,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetVisibility(visible),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(40),
			progressbar.OptionClearOnFinish(),
		),
	}
}

// set tells how far a scheme is, 0 to 1. Drawing is for show: its errors do not matter.
func (p *progress) set(scheme string, done float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done[scheme] = done
	var sum float64
	for _, d := range p.done {
		sum += d
	}
	_ = p.bar.Set(int(sum / float64(p.of) * progressSteps))
}

func (p *progress) finish() { _ = p.bar.Finish() }
