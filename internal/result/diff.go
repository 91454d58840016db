// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"

	"github.com/pcn-linux/pcn/internal/experiment"
)

// Difference is one difference between two runs.
type Difference struct {
	What string // such as "seed", or "port S0->S1 in series.csv"
	AtNs *int64 // nil if the difference has no time
	A, B string // the two values; [None] if a run has no such object
}

// None is the value of an object that a run lacks.
const None = "none"

// String returns the difference in one line.
func (d Difference) String() string {
	what := d.What
	if d.AtNs != nil {
		what = "at " + experiment.Duration(*d.AtNs).String() + ": " + what
	}
	return what + ": " + d.A + " / " + d.B
}

// inputs are the fields of the manifest that identify what a run was made from.
var inputs = []string{
	"guest_sha256", "kernel", "kernel_sha256", "qemu", "experiment_sha256", "scheme_sha256",
}

// settings are the fields that describe what was run. Fields in neither list are measured.
var settings = []string{
	"tool", "experiment", "case", "scheme", "engine", "seed", "dilation_shift", "duration_ns",
	"warmup_ns", "sample_ns", "base_rtt_ns", "deterministic", "machine",
}

// Diff returns the differences between two runs, in this order: different inputs, different
// settings, the first packet that hosts recorded and that differs, the first event in time (in the
// PFC log, the series or the states of ports), the first flow, completion and port that differ, and
// other fields of the manifest. It ignores the wall object.
func Diff(a, b *Run) []Difference {
	manifest := diffColumns(columnsOf(a.Manifest, "json"), columnsOf(b.Manifest, "json"))
	isInput := func(d Difference) bool { return slices.Contains(inputs, d.What) }
	isSetting := func(d Difference) bool { return slices.Contains(settings, d.What) }
	isMeasured := func(d Difference) bool {
		return !isInput(d) && !isSetting(d) && d.What != "wall"
	}

	differences := append(keep(manifest, isInput), keep(manifest, isSetting)...)
	differences = append(differences, firstPacket(a, b)...)
	differences = append(differences, firstEvent(a, b)...)
	differences = append(differences, diffPrograms(a, b)...)
	differences = append(differences, firstRow(a.Flows, b.Flows, compareFlows,
		func(f Flow) row {
			return row{what: "flow " + f.Name + " in " + flowsFile, columns: columnsOf(f, "csv")}
		})...)
	differences = append(differences, firstRow(a.Completions, b.Completions, compareCompletions,
		func(c Completion) row {
			return row{what: "flow " + c.Flow + " in " + completionFile,
				columns: columnsOf(c, "csv")}
		})...)
	differences = append(differences, firstRow(a.Ports, b.Ports, comparePorts,
		func(p Port) row {
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

// firstEvent returns the first difference in time among the PFC log, repeated PAUSE frames, the
// series and the states of ports. The time of a bin is its start.
func firstEvent(a, b *Run) []Difference {
	events := firstRow(a.PFC, b.PFC, comparePFC, func(e PFCEvent) row {
		return row{what: e.link() + " in " + pfcFile, atNs: new(e.SentNs),
			columns: columnsOf(e, "csv")}
	})
	repeats := firstRow(a.PauseRepeats, b.PauseRepeats, compareRepeats,
		func(p PauseRepeats) row {
			return row{what: p.link() + " in " + repeatsFile, atNs: new(p.TimeNs),
				columns: columnsOf(p, "csv")}
		})
	samples := firstRow(sortSeries(a.Series), sortSeries(b.Series), compareSamples,
		func(s Sample) row {
			return row{what: fmt.Sprintf("%s %s in %s", s.Kind, s.Name, seriesFile),
				atNs: new(s.TimeNs), columns: columnsOf(s.row(), "csv")}
		})
	states := firstRow(a.States, b.States, compareStates,
		func(s State) row {
			return row{what: "port " + s.Port + " in " + statesFile, atNs: new(s.TimeNs),
				columns: columnsOf(s, "csv")}
		})
	watchdog := firstRow(a.Watchdog, b.Watchdog, compareWatchdog,
		func(e WatchdogEvent) row {
			return row{what: "port " + e.Port + " in " + watchdogFile, atNs: new(e.DetectedNs),
				columns: columnsOf(e, "csv")}
		})
	qdiscs := firstRow(a.Qdiscs, b.Qdiscs, compareQdiscs,
		func(q QdiscSample) row {
			return row{what: "port " + q.Port + " in " + qdiscsFile, atNs: new(q.TimeNs),
				columns: columnsOf(q, "csv")}
		})
	all := slices.Concat(events, repeats, samples, states, watchdog, qdiscs)
	slices.SortStableFunc(all, func(x, y Difference) int { return cmp.Compare(*x.AtNs, *y.AtNs) })
	return all[:min(len(all), 1)]
}

// row is a row of a result file, ready to be shown.
type row struct {
	what    string // object and file
	atNs    *int64 // nil if the row has no time
	columns []column
}

// firstRow returns the first difference of two lists in their order: an item that only one list
// has, or two items that compare as equal but have different values.
func firstRow[T any](a, b []T, compare func(T, T) int, rowOf func(T) row) []Difference {
	a, b = sorted(a, compare), sorted(b, compare)
	for i := range max(len(a), len(b)) {
		onlyA := i >= len(b) || i < len(a) && compare(a[i], b[i]) < 0
		onlyB := i >= len(a) || i < len(b) && compare(b[i], a[i]) < 0
		switch {
		case onlyA:
			r := rowOf(a[i])
			return []Difference{{What: r.what, AtNs: r.atNs, A: formatColumns(r.columns), B: None}}
		case onlyB:
			r := rowOf(b[i])
			return []Difference{{What: r.what, AtNs: r.atNs, A: None, B: formatColumns(r.columns)}}
		case !reflect.DeepEqual(a[i], b[i]):
			r := rowOf(a[i])
			left, right := formatBoth(diffColumns(r.columns, rowOf(b[i]).columns))
			return []Difference{{What: r.what, AtNs: r.atNs, A: left, B: right}}
		}
	}
	return nil
}

// column is a named value of a row or of the manifest.
type column struct{ name, value string }

// columnsOf returns the fields of a struct, named by their json or csv tag.
func columnsOf(record any, tag string) []column {
	v := reflect.ValueOf(record)
	var columns []column
	for i := range v.NumField() {
		name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get(tag), ",")
		columns = append(columns, column{name, formatValue(v.Field(i))})
	}
	return columns
}

// formatValue returns "" for a nil pointer.
func formatValue(v reflect.Value) string {
	if v.Kind() != reflect.Pointer {
		return fmt.Sprint(v.Interface())
	}
	if v.IsNil() {
		return ""
	}
	return fmt.Sprint(v.Elem().Interface())
}

// diffColumns returns the columns in which two rows of the same type differ.
func diffColumns(a, b []column) []Difference {
	var differences []Difference
	for i := range a {
		if a[i] != b[i] {
			differences = append(differences, Difference{
				What: a[i].name, A: cmp.Or(a[i].value, None), B: cmp.Or(b[i].value, None),
			})
		}
	}
	return differences
}

// formatBoth returns the differing columns of either side.
func formatBoth(differences []Difference) (a, b string) {
	var left, right []column
	for _, d := range differences {
		left, right = append(left, column{d.What, d.A}), append(right, column{d.What, d.B})
	}
	return formatColumns(left), formatColumns(right)
}

func formatColumns(columns []column) string {
	var words []string
	for _, c := range columns {
		if c.value != "" {
			words = append(words, c.name+" "+c.value)
		}
	}
	return strings.Join(words, ", ")
}
