// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/netns-lab/experiment"
)

// Difference is one thing that two runs do not have in common.
type Difference struct {
	What string // such as "seed", or "port S0->S1 in series.csv"
	AtNs *int64 // when; nil if it is of no moment
	A, B string // the values that differ; [None] if a run has no such thing
}

// None is the value of what a run does not have.
const None = "none"

// String returns the difference in one line.
func (d Difference) String() string {
	what := d.What
	if d.AtNs != nil {
		what = "at " + experiment.Duration(*d.AtNs).String() + ": " + what
	}
	return what + ": " + d.A + " / " + d.B
}

// inputs are the fields of the manifest that name what a run was made from.
var inputs = []string{
	"guest_sha256", "kernel", "kernel_sha256", "qemu", "experiment_sha256", "scheme_sha256",
}

// asked are the fields that say what was to run. Those of neither list are measured.
var asked = []string{
	"tool", "experiment", "case", "scheme", "seed", "dilation_shift", "duration_ns", "warmup_ns",
	"sample_ns", "base_rtt_ns", "deterministic",
}

// Diff returns where two runs part: first what they were made from and what was asked, then the
// first event in time (of the PFC log, of the series or of ports' states) that differs, the first
// flow, completion and port that differ, and what else the manifests measured differently. It
// returns nothing if they differ in the wall clock at most.
func Diff(a, b *Run) []Difference {
	manifest := diffColumns(columnsOf(a.Manifest, "json"), columnsOf(b.Manifest, "json"))
	isInput := func(d Difference) bool { return slices.Contains(inputs, d.What) }
	isAsked := func(d Difference) bool { return slices.Contains(asked, d.What) }
	isMeasured := func(d Difference) bool { return !isInput(d) && !isAsked(d) && d.What != "wall" }

	differences := append(keep(manifest, isInput), keep(manifest, isAsked)...)
	differences = append(differences, firstEvent(a, b)...)
	differences = append(differences, firstRow(sortFlows(a.Flows), sortFlows(b.Flows), compareFlows, func(f Flow) row {
		return row{what: "flow " + f.Name + " in " + flowsFile, columns: columnsOf(f, "csv")}
	})...)
	differences = append(differences, firstRow(sortCompletions(a.Completions), sortCompletions(b.Completions), compareCompletions, func(c Completion) row {
		return row{what: "flow " + c.Flow + " in " + completionFile, columns: columnsOf(c, "csv")}
	})...)
	differences = append(differences, firstRow(sortPorts(a.Ports), sortPorts(b.Ports), comparePorts, func(p Port) row {
		return row{what: "port " + p.Name + " in " + portsFile, columns: columnsOf(p, "csv")}
	})...)
	return append(differences, keep(manifest, isMeasured)...)
}

func keep(all []Difference, wanted func(Difference) bool) []Difference {
	var kept []Difference
	for _, d := range all {
		if wanted(d) {
			kept = append(kept, d)
		}
	}
	return kept
}

// firstEvent returns the first difference of the PFC log, of repeated PAUSE frames, of the series and of ports' states,
// merged in the order of time. A row of a bin counts as of the start of its bin.
func firstEvent(a, b *Run) []Difference {
	events := firstRow(sortPFC(a.PFC), sortPFC(b.PFC), comparePFC, func(e PFCEvent) row {
		return row{what: e.link() + " in " + pfcFile, atNs: new(e.SentNs), columns: columnsOf(e, "csv")}
	})
	repeats := firstRow(sortRepeats(a.PauseRepeats), sortRepeats(b.PauseRepeats), compareRepeats, func(p PauseRepeats) row {
		return row{what: p.link() + " in " + repeatsFile, atNs: new(p.TimeNs), columns: columnsOf(p, "csv")}
	})
	samples := firstRow(sortSeries(a.Series), sortSeries(b.Series), compareSamples, func(s Sample) row {
		return row{what: fmt.Sprintf("%s %s in %s", s.Kind, s.Name, seriesFile), atNs: new(s.TimeNs), columns: columnsOf(s.row(), "csv")}
	})
	states := firstRow(sortStates(a.States), sortStates(b.States), compareStates, func(s State) row {
		return row{what: "port " + s.Port + " in " + statesFile, atNs: new(s.TimeNs), columns: columnsOf(s, "csv")}
	})
	all := slices.Concat(events, repeats, samples, states)
	slices.SortStableFunc(all, func(x, y Difference) int { return cmp.Compare(*x.AtNs, *y.AtNs) })
	return all[:min(len(all), 1)]
}

// row is a row of a file: what it is about, when, and its values.
type row struct {
	what    string
	atNs    *int64
	columns []column
}

// firstRow returns the first difference of two sorted lists: two items of the same
// place in the order with other values, or one that only one list has.
func firstRow[T any](a, b []T, compare func(T, T) int, rowOf func(T) row) []Difference {
	for i := range max(len(a), len(b)) {
		onlyA := i >= len(b) || i < len(a) && compare(a[i], b[i]) < 0
		onlyB := i >= len(a) || i < len(b) && compare(b[i], a[i]) < 0
		switch {
		case onlyA:
			r := rowOf(a[i])
			return []Difference{{What: r.what, AtNs: r.atNs, A: inWords(r.columns), B: None}}
		case onlyB:
			r := rowOf(b[i])
			return []Difference{{What: r.what, AtNs: r.atNs, A: None, B: inWords(r.columns)}}
		case !reflect.DeepEqual(a[i], b[i]):
			r := rowOf(a[i])
			left, right := valuesOf(diffColumns(r.columns, rowOf(b[i]).columns))
			return []Difference{{What: r.what, AtNs: r.atNs, A: left, B: right}}
		}
	}
	return nil
}

// column is a named value of a row or of the manifest.
type column struct{ name, value string }

// columnsOf returns the fields of a struct by their tag.
func columnsOf(record any, tag string) []column {
	v := reflect.ValueOf(record)
	var columns []column
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get(tag), ",")
		columns = append(columns, column{name, textOf(v.Field(i))})
	}
	return columns
}

// textOf writes a value; a missing one is empty.
func textOf(v reflect.Value) string {
	if v.Kind() != reflect.Pointer {
		return fmt.Sprint(v.Interface())
	}
	if v.IsNil() {
		return ""
	}
	return fmt.Sprint(v.Elem().Interface())
}

// diffColumns returns the columns, of two rows of the same type, that differ.
func diffColumns(a, b []column) []Difference {
	var differences []Difference
	for i := range a {
		if a[i] != b[i] {
			differences = append(differences, Difference{What: a[i].name, A: cmp.Or(a[i].value, None), B: cmp.Or(b[i].value, None)})
		}
	}
	return differences
}

// valuesOf writes the differing columns of two rows, each side on its own.
func valuesOf(differences []Difference) (a, b string) {
	var left, right []column
	for _, d := range differences {
		left, right = append(left, column{d.What, d.A}), append(right, column{d.What, d.B})
	}
	return inWords(left), inWords(right)
}

func inWords(columns []column) string {
	var words []string
	for _, c := range columns {
		if c.value != "" {
			words = append(words, c.name+" "+c.value)
		}
	}
	return strings.Join(words, ", ")
}
