// SPDX-License-Identifier: Apache-2.0

package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
)

// report collects what was wrong and what grew.
type report struct {
	mu         sync.Mutex
	w          io.Writer
	began      time.Time
	violations []string
	samples    []*sample
	totals     map[string]float64
	clients    map[string]int
}

func newReport(w io.Writer) *report {
	return &report{w: w, began: time.Now(), totals: map[string]float64{}}
}

// sample is a measurement at a checkpoint, in the order in which values were added.
type sample struct {
	at     time.Time
	names  []string
	values map[string]float64
}

func (s *sample) add(name string, value float64) {
	if s.values == nil {
		s.values = map[string]float64{}
	}
	s.names = append(s.names, name)
	s.values[name] = value
}

func (r *report) printf(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print(format, args...)
}

func (r *report) print(format string, args ...any) {
	fmt.Fprintf(r.w, "%8.1fs %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// violation records that a bound does not hold. The run goes on.
func (r *report) violation(format string, args ...any) {
	r.mu.Lock()
	defer r.mu.Unlock()
	text := strings.TrimSpace(fmt.Sprintf(format, args...))
	r.violations = append(r.violations, text)
	r.print("VIOLATION: %s", text)
}

func (r *report) addSample(s *sample) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.samples = append(r.samples, s)
}

func (r *report) add(name string, value float64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.totals[name] += value
}

// growth is what a value did in the run.
type growth struct {
	Name        string
	First, Last float64
	PerHour     float64 // of the line through the samples; 0 if there are fewer than two
}

// warmUp samples come before caches and pools are full. With few samples only the first goes.
func warmUp(samples int) int { return max(min(1, samples-1), samples/4) }

// growths fits a line through each value's samples after the warm-up.
func growths(samples []*sample) []growth {
	if len(samples) == 0 {
		return nil
	}
	samples = samples[warmUp(len(samples)):]
	var all []growth
	for _, name := range samples[0].names {
		g := growth{Name: name, First: samples[0].values[name],
			Last: samples[len(samples)-1].values[name]}
		var n, sumX, sumY, sumXX, sumXY float64
		for _, s := range samples {
			x, y := s.at.Sub(samples[0].at).Hours(), s.values[name]
			n, sumX, sumY, sumXX, sumXY = n+1, sumX+x, sumY+y, sumXX+x*x, sumXY+x*y
		}
		if d := n*sumXX - sumX*sumX; d > 0 {
			g.PerHour = (n*sumXY - sumX*sumY) / d
		}
		all = append(all, g)
	}
	return all
}

// Bounds of growth. A rate is judged only if there are enough samples to tell it from noise.
const (
	enoughSamples     = 12
	maxServeBytes     = 256 << 20
	maxServeBytesHour = 16 << 20
	maxSlabBytesHour  = 256 << 20 // of a machine that others may use
)

// check compares growth with the bounds.
func (g growth) check(samples int) string {
	switch {
	case strings.HasPrefix(g.Name, "serve") && strings.HasSuffix(g.Name, "open files") &&
		samples >= 3 && g.Last > g.First+2:
		return fmt.Sprintf("%s: from %.0f to %.0f: want at most 2 more", g.Name, g.First, g.Last)
	case strings.HasSuffix(g.Name, "resident bytes") && g.Last > maxServeBytes:
		return fmt.Sprintf("%s: %.0f: want at most %d", g.Name, g.Last, maxServeBytes)
	case samples < enoughSamples:
		return ""
	case strings.HasSuffix(g.Name, "resident bytes") && g.PerHour > maxServeBytesHour:
		return fmt.Sprintf("%s: grows %.0f an hour: want at most %d", g.Name, g.PerHour,
			maxServeBytesHour)
	case strings.Contains(g.Name, "SUnreclaim") && g.PerHour > maxSlabBytesHour:
		return fmt.Sprintf("%s: grows %.0f an hour: want at most %d", g.Name, g.PerHour,
			maxSlabBytesHour)
	}
	return ""
}

// interim prints what grew so far, since a long run may be ended by others.
func (r *report) interim() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.print("%d checkpoints, %d violations", len(r.samples), len(r.violations))
	r.printGrowths(growths(r.samples))
}

func (r *report) printGrowths(all []growth) {
	fmt.Fprintf(r.w, "\n%-36s %14s %14s %14s %16s\n", "what", "first", "last", "an hour", "a month")
	for _, g := range all {
		fmt.Fprintf(r.w, "%-36s %14.0f %14.0f %+14.1f %+16.0f\n", g.Name, g.First, g.Last,
			g.PerHour, g.PerHour*hoursOfMonth)
	}
}

const hoursOfMonth = 30 * 24

// finish prints the report; the error says how many bounds did not hold.
func (r *report) finish() error {
	all := growths(r.samples)
	for _, g := range all {
		if problem := g.check(len(r.samples)); problem != "" {
			r.violation("%s", problem)
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	fmt.Fprintf(r.w, "\n%d checkpoints in %v; clients that ended:", len(r.samples),
		time.Since(r.began).Round(time.Second))
	for _, kind := range slices.Sorted(maps.Keys(r.clients)) {
		fmt.Fprintf(r.w, " %s %d", kind, r.clients[kind])
	}
	fmt.Fprintln(r.w)
	for _, name := range slices.Sorted(maps.Keys(r.totals)) {
		fmt.Fprintf(r.w, "%s: %.0f\n", name, r.totals[name])
	}
	r.printGrowths(all)
	if len(r.samples) < enoughSamples {
		fmt.Fprintf(r.w, "Too few checkpoints to judge growth: %d, want %d.\n", len(r.samples),
			enoughSamples)
	}
	for _, v := range r.violations {
		fmt.Fprintln(r.w, "VIOLATION:", v)
	}
	if n := len(r.violations); n > 0 {
		return fmt.Errorf("%d bounds do not hold", n)
	}
	fmt.Fprintln(r.w, "All bounds hold.")
	return nil
}
