// SPDX-License-Identifier: Apache-2.0

package config

import (
	"regexp"
	"strings"
	"testing"

	"github.com/go-quicktest/qt"
)

// A text that is read has the pattern of its kind. One that has it is read, but for what is too
// large or no whole number of the base unit.
func TestPatternsAreThoseOfValues(t *testing.T) {
	texts := []string{
		"0", "1", "-1", "0.5", ".5", "5.", "1/128", "-1/2", "1/2/3", "5%", "1/2%", "half", "", " 1",
		"1e3",
		"40Gbps", "40 Gbps", "0.5Mbps", "-1kbps", "1bps", "1Kbps", "0Gbps", "9999999999999Gbps",
		"0.5bps",
		"5us", "-1ms", "1.5s", "3ns", "5µs", "5m", "0.1ns", "64KB", "64KiB", "1MiB", "-1B", "1GB",
		"1TB", "0.3B",
		"0.123456789012345678901s", "123456789012345678901s",
	}
	for _, kind := range []struct {
		name, pattern string
		parse         func(string) error
	}{
		{"rate", RatePattern, func(s string) error { _, err := ParseRate(s); return err }},
		{"time", DurationPattern, func(s string) error { _, err := ParseDuration(s); return err }},
		{"size", BytesPattern, func(s string) error { _, err := ParseBytes(s); return err }},
		{"ratio", RatioPattern, func(s string) error { _, err := ParseRatio(s); return err }},
		{
			"quantity", QuantityPattern,
			func(s string) error { _, err := ParseQuantity(s); return err },
		},
	} {
		pattern := regexp.MustCompile(kind.pattern)
		for _, text := range texts {
			err := kind.parse(text)
			comment := qt.Commentf("%s %q: %v", kind.name, text, err)
			if err == nil {
				qt.Check(t, qt.IsTrue(pattern.MatchString(text)), comment)
				continue
			}
			excused := strings.Contains(err.Error(), "out of range") || strings.Contains(
				err.Error(), "whole number",
			)
			qt.Check(t, qt.IsTrue(excused || !pattern.MatchString(text)), comment)
		}
	}
}
