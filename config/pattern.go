// SPDX-License-Identifier: Apache-2.0

package config

import (
	"slices"
	"strings"
)

// Patterns of how files write values, as regular expressions for a whole text.
var (
	RatePattern     = quantityPattern("", rateUnits)
	DurationPattern = quantityPattern("-?", durationUnits)
	BytesPattern    = quantityPattern("", slices.Concat(bytesUnits, binaryUnits))
	RatioPattern    = `^-?` + numberPattern + `(/-?` + numberPattern + `)?%?$`
	QuantityPattern = strings.Join(
		[]string{RatePattern, DurationPattern, BytesPattern, RatioPattern}, "|",
	)
)

const numberPattern = `[0-9]{1,20}(\.[0-9]{1,20})?`

// quantityPattern returns the pattern of a number with one of the units, or of 0.
func quantityPattern(sign string, units []unit) string {
	var names []string
	for _, u := range units {
		names = append(names, u.name)
	}
	return `^(0|` + sign + numberPattern + `(` + strings.Join(names, "|") + `))$`
}
