// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"sync"

	"github.com/schollz/progressbar/v3"

	"github.com/pcn-linux/pcn/internal/launch"
)

// progress draws one bar for all runs, with the time left. It is invisible off a terminal.
type progress struct {
	mu   sync.Mutex
	bar  *progressbar.ProgressBar
	done map[string]float64 // by run, 0 to 1
	runs int
}

// shower shows how far runs are: a bar, or with --watch the runs themselves.
type shower interface {
	set(run string, done float64)
	finish()
}

// newShower returns what shows the runs of these engines.
func newShower(w io.Writer, what string, runs int, watch bool, engines ...launch.Engine) shower {
	if !watch {
		return newProgress(w, what, runs)
	}
	v := newWatcher(w, what, runs)
	v.follow(engines...)
	return v
}

// enginesOf returns the engines without their names.
func enginesOf(named []launch.Named) []launch.Engine {
	var all []launch.Engine
	for _, n := range named {
		all = append(all, n.Engine)
	}
	return all
}

const progressSteps = 1000

func newProgress(w io.Writer, what string, runs int) *progress {
	return &progress{
		done: map[string]float64{},
		runs: runs,
		bar: progressbar.NewOptions(progressSteps,
			progressbar.OptionSetWriter(w),
			progressbar.OptionSetVisibility(isTerminal(w)),
			progressbar.OptionSetDescription(what),
			progressbar.OptionSetPredictTime(true),
			progressbar.OptionSetWidth(40),
			progressbar.OptionClearOnFinish(),
		),
	}
}

// set draws that a run is done to this part, 0 to 1. It ignores errors of drawing.
func (p *progress) set(run string, done float64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.runs == 0 {
		return // nobody said how many there are
	}
	p.done[run] = done
	var sum float64
	for _, d := range p.done {
		sum += d
	}
	_ = p.bar.Set(int(sum / float64(p.runs) * progressSteps))
}

// next starts the bar anew, for other runs.
func (p *progress) next(what string, runs int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.done, p.runs = map[string]float64{}, runs
	p.bar.Reset()
	p.bar.Describe(what)
}

func (p *progress) finish() { _ = p.bar.Finish() }
