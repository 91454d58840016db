// SPDX-License-Identifier: Apache-2.0

//go:build linux

package npecn

import (
	"testing"

	"github.com/go-quicktest/qt"
)

// Package host tests what a Single does.
func TestSingleOptionsAreChecked(t *testing.T) {
	for _, c := range []struct {
		o    SingleOptions
		want string
	}{
		{SingleOptions{RateBps: 1, BufferBytes: 1e6}, `kind "": want 1 to 15 characters`},
		{SingleOptions{Kind: "a_name_too_long_", RateBps: 1, BufferBytes: 1e6}, "kind .*"},
		{SingleOptions{Kind: "a", BufferBytes: 1e6}, "rate is 0: want more"},
		{SingleOptions{Kind: "a", RateBps: 1, BufferBytes: 1513}, "buffer of 1513 bytes: .*"},
	} {
		_, err := LoadSingle(c.o)
		qt.Check(t, qt.ErrorMatches(err, "qdisc npecn: "+c.want))
	}
}
