// SPDX-License-Identifier: Apache-2.0

package job

import (
	"testing"

	"github.com/go-quicktest/qt"
)

func TestGuestChecksItsArguments(t *testing.T) {
	for _, args := range [][]string{
		nil,
		{"guest"},
		{"other", "", "pcn", "1", "1", "1"},
		{"guest", "", "pcn", "x", "1", "1"},
		{"guest", "", "pcn", "1", "1", "-1"},
		{"guest", "pcn", "1", "1", "1"},
	} {
		_, _, err := Parse("/experiment.yaml", args)
		qt.Check(t, qt.ErrorMatches(err, "guest called with .*"))
	}
}
