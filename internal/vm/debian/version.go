// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
)

// CompareVersions orders kernel releases by their numbers: 7.10 comes after 7.9.
func CompareVersions(a, b string) int {
	return cmp.Or(slices.Compare(numbers(a), numbers(b)), strings.Compare(a, b))
}

// numbers returns the runs of digits in a release.
func numbers(s string) []int {
	var out []int
	for _, f := range strings.FieldsFunc(s, func(r rune) bool { return r < '0' || r > '9' }) {
		// a run of digits too long for an int orders as 0
		n, _ := strconv.Atoi(f)
		out = append(out, n)
	}
	return out
}
