// SPDX-License-Identifier: Apache-2.0

package result

import (
	"cmp"
	"maps"
	"slices"
)

// sorted returns rows in their order: the same slice if they have it, as a million flows do.
func sorted[T any](rows []T, compare func(a, b T) int) []T {
	if slices.IsSortedFunc(rows, compare) {
		return rows
	}
	rows = slices.Clone(rows)
	slices.SortStableFunc(rows, compare)
	return rows
}

func compareFlows(a, b Flow) int {
	return compareNatural(a.Name, b.Name)
}

func compareRepeats(a, b PauseRepeats) int {
	return cmp.Or(cmp.Compare(a.TimeNs, b.TimeNs), compareNatural(a.From, b.From),
		compareNatural(a.To, b.To), cmp.Compare(a.Class, b.Class))
}

func compareWatchdog(a, b WatchdogEvent) int {
	return cmp.Or(cmp.Compare(a.DetectedNs, b.DetectedNs), compareNatural(a.Port, b.Port),
		cmp.Compare(a.Class, b.Class))
}

func compareQdiscs(a, b QdiscSample) int {
	return cmp.Or(cmp.Compare(a.TimeNs, b.TimeNs), compareNatural(a.Port, b.Port))
}

func compareCompletions(a, b Completion) int {
	return compareNatural(a.Flow, b.Flow)
}

func comparePorts(a, b Port) int {
	return compareNatural(a.Name, b.Name)
}

// sortSeries sorts by time, then kind, then name. There are far more samples than names and times,
// and names are slow to compare: so it sorts those, and then puts samples into their places.
func sortSeries(series []Sample) []Sample {
	if slices.IsSortedFunc(series, compareSamples) {
		return series // as it was read
	}
	type line struct {
		kind Kind
		name string
	}
	lineOf := func(s Sample) line { return line{s.Kind, s.Name} }
	byLine := sortedByKey(series, lineOf, func(a, b line) int {
		return cmp.Or(cmp.Compare(a.kind, b.kind), compareNatural(a.name, b.name))
	})
	return sortedByKey(byLine, func(s Sample) int64 { return s.TimeNs }, cmp.Compare[int64])
}

// sortedByKey returns rows sorted by a key that many of them share; equal ones keep their order.
func sortedByKey[T any, K comparable](rows []T, keyOf func(T) K, compare func(a, b K) int) []T {
	count := map[K]int{}
	for _, row := range rows {
		count[keyOf(row)]++
	}
	next := make(map[K]int, len(count)) // place of the next row with this key
	place := 0
	for _, key := range slices.SortedFunc(maps.Keys(count), compare) {
		next[key] = place
		place += count[key]
	}
	sorted := make([]T, len(rows))
	for _, row := range rows {
		key := keyOf(row)
		sorted[next[key]] = row
		next[key]++
	}
	return sorted
}

func compareSamples(a, b Sample) int {
	if c := cmp.Or(cmp.Compare(a.TimeNs, b.TimeNs), cmp.Compare(a.Kind, b.Kind)); c != 0 {
		return c // most differ here, and names are slow to compare
	}
	return compareNatural(a.Name, b.Name)
}

func comparePFC(a, b PFCEvent) int {
	if c := cmp.Compare(a.SentNs, b.SentNs); c != 0 {
		return c
	}
	return cmp.Or(compareNatural(a.From, b.From), compareNatural(a.To, b.To),
		cmp.Compare(a.Class, b.Class))
}

// compareNatural orders H2 before H10.
func compareNatural(a, b string) int {
	x, y := a, b
	for x != "" && y != "" {
		var p, q string
		p, x = splitRun(x)
		q, y = splitRun(y)
		if p == q {
			continue
		}
		if isDigit(p[0]) && isDigit(q[0]) {
			return cmp.Or(cmp.Compare(len(p), len(q)), cmp.Compare(p, q))
		}
		return cmp.Compare(p, q)
	}
	return cmp.Or(cmp.Compare(len(x), len(y)), cmp.Compare(a, b))
}

// splitRun splits off the digits, or the other characters, at the start of s.
func splitRun(s string) (first, rest string) {
	i := 1
	for i < len(s) && isDigit(s[i]) == isDigit(s[0]) {
		i++
	}
	return s[:i], s[i:]
}

func isDigit(c byte) bool {
	return c >= '0' && c <= '9'
}
